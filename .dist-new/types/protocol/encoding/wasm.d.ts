/** The encodings of elements as a WebAssembly module of 3997 bytes, in base64. */
export declare const ENCODING_WASM_BASE64: string;
//# sourceMappingURL=wasm.d.ts.map