/** The shortening of what is summed as a WebAssembly module of 1062 bytes, in base64. */
export declare const CHECKSUM_WASM_BASE64: string;
//# sourceMappingURL=wasm.d.ts.map