/** The kernels as a WebAssembly module of 69625 bytes, in base64. */
export declare const KERNELS_WASM_BASE64: string;
//# sourceMappingURL=wasm.d.ts.map