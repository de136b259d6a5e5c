/** The sorting and adding up of rows as a WebAssembly module of 3023 bytes, in base64. */
export declare const ROW_LISTS_WASM_BASE64: string;
//# sourceMappingURL=wasm.d.ts.map