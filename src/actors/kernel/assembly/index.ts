// The kernels of a shard, one file per family. Everything here is compiled by
// scripts/build-kernels.mjs into ../wasm.ts; run it after every change.
//
// Rules of all kernels, because a replay must be exact to the bit on every machine:
// - pointers are byte addresses, n counts elements, any n from 0 on is right;
// - float32 is computed in f32 and float64 in f64; each operation rounds on its own, nothing is
//   fused, nothing comes from relaxed SIMD;
// - the last few elements go through the same vector expression as the rest, so that an element's
//   result does not depend on where it lies;
// - WebAssembly leaves the bits of a NaN open, so a kernel that computes floats stores NaNs in the
//   canonical form of nan.ts;
// - a rule takes what is too small for a normal product as 0, see lanes.ts; mix keeps denormals;
// - loops count elements down, or bytes from 0 up, instead of comparing addresses: the end of the
//   last block of a 4 GiB memory is address 2^32, which wraps to 0;
// - nothing is allocated, and nothing is kept between calls; what a call writes down for itself
//   lies in the module's own page.

export { adadeltaF32, adadeltaF64 } from "./adadelta";
export { adamF32, adamF64, adamwF32, adamwF64, amsgradF32, amsgradF64 } from "./adam";
export {
  adamRowsF32, adamRowsF64, adamwRowsF32, adamwRowsF64, amsgradRowsF32, amsgradRowsF64,
} from "./adam-rows";
export { clipF32, clipF64, proximalF32, proximalF64 } from "./bounds";
export {
  narrowBf16, narrowF16, widenBf16, widenF16,
} from "../../../protocol/encoding/assembly/index";
export {
  areBools, canonicalF32, canonicalF64, finiteBf16, finiteF16, finiteF32, finiteF64,
} from "./check";
export {
  addF32, addF64, addI32, addI64, addI8, addScaledF32, addScaledF64, orderF32, orderF64, scaleF32,
  scaleF64,
} from "./element-wise";
export { ftrlF32, ftrlF64 } from "./ftrl";
export { cosF64, powF64 } from "./functions";
export {
  distanceF32, distanceF64, measured, measureF32, measureF64, measureI32, measureI64, measureI8, measureU32, measureU64, measureU8,
} from "./measure";
export { mixF32, mixF64, mixI32, mixI64, mixI8, mixU32, mixU64, mixU8 } from "./mix";
export { momentumF32, momentumF64, nesterovF32, nesterovF64 } from "./momentum";
export { clearPieces, gatherPieces, measurePieces, scatterPieces } from "./pieces";
export { adagradF32, adagradF64, rmspropF32, rmspropF64 } from "./rms";
export {
  clearRows, countAll, countRows, gatherRows, groupRows, touchedRows, touchRows, numberRows, sameCounts,
  scatterRows,
} from "./rows";
export { sgdF32, sgdF64 } from "./sgd";
