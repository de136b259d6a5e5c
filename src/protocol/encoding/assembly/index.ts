// Narrowing, widening, the norm and the largest of float32 elements. Everything here is compiled by
// scripts/build-kernels.mjs into ../wasm.ts, and all but the norm into the kernels of a shard too;
// run it after every change. The rules are those of the kernels of a shard, see
// src/actors/kernel/assembly/index.ts, with two differences: pointers of encoded elements need no
// alignment, and the sum of squares is computed in f64.
//
// Widening goes in ascending order, eight elements at a time, all eight read before they are written:
// `from` may lie inside `to` if it ends where `to` ends. For narrowing the two must not overlap.

export { narrowBf16, narrowSquaresBf16, widenBf16 } from "./bfloat16";
export { narrowF16, narrowSquaresF16, widenF16 } from "./float16";
export { largestF32 } from "./largest";
export { squaresF32 } from "./squares";
