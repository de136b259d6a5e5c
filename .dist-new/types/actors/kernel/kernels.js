import { KERNELS_WASM_BASE64 } from "./wasm.js";
let compiled;
/**
 * Binds the kernels to `memory`, which needs at least one page; the first page is the module's own. The module is
 * compiled once per thread; an instance takes microseconds. No call leaves anything for the next one, except the
 * results of a measurement.
 */
export function instantiateKernels(memory) {
    compiled ??= new WebAssembly.Module(Buffer.from(KERNELS_WASM_BASE64, "base64"));
    const instance = new WebAssembly.Instance(compiled, { env: { memory } });
    // The names and signatures are those of assembly/index.ts; the tests call every one of them.
    return instance.exports;
}
//# sourceMappingURL=kernels.js.map