// Narrowing, widening, the norm and the largest of float32 elements, and the errors of rounding. Everything here is
// compiled by scripts/build-kernels.mjs into ../wasm.ts, and the narrowing and widening of halves into the kernels of
// a shard too; run it after every change. The rules are those of the kernels of a shard, see
// src/actors/kernel/assembly/index.ts, with two differences: pointers of encoded elements need no
// alignment, and the sum of squares is computed in f64.
//
// Widening of halves goes in ascending order, eight elements at a time, all eight read before they are written:
// `from` may lie inside `to` if it ends where `to` ends. For all else the ranges must not overlap.

export { narrowBf16, narrowSquaresBf16, widenBf16 } from "./bfloat16";
export { narrowE3m0, narrowInt8, widenE3m0, widenInt8 } from "./entries";
export { narrowF16, narrowSquaresF16, widenF16 } from "./float16";
export { addF32, errorsF32 } from "./groups";
export { largestF32 } from "./largest";
export { squaresF32 } from "./squares";
