// Signatures of the kernels. Operands are addresses in the memory that the kernels are bound to.

/** `value = alpha * value + beta * operand` over `n` elements, in place. */
export type MixKernel = (
  value: number,
  operand: number,
  n: number,
  alpha: number,
  beta: number,
) => void;

/** `value -= lr · gradient` over `n` elements, in place. */
export type SgdKernel = (value: number, gradient: number, n: number, lr: number) => void;

/** `target += source` over `n` elements, in place. */
export type AddKernel = (target: number, source: number, n: number) => void;

/** `target += scale · source` over `n` elements, in place. */
export type AddScaledKernel = (target: number, source: number, n: number, scale: number) => void;

/** Changes `n` elements in place by one number. */
export type ElementKernel = (target: number, n: number, by: number) => void;

/** A momentum rule; `decay` is lr · l2, the share of itself that the value loses. */
export type MomentumKernel = (
  value: number,
  gradient: number,
  momentum: number,
  n: number,
  lr: number,
  mu: number,
  decay: number,
) => void;

/** Adagrad. */
export type AdagradKernel = (
  value: number,
  gradient: number,
  squares: number,
  n: number,
  lr: number,
  epsilon: number,
  decay: number,
) => void;

/** RMSProp. */
export type RmspropKernel = (
  value: number,
  gradient: number,
  squares: number,
  n: number,
  lr: number,
  rho: number,
  epsilon: number,
  decay: number,
) => void;

/** Adadelta. */
export type AdadeltaKernel = (
  value: number,
  gradient: number,
  squares: number,
  deltas: number,
  n: number,
  lr: number,
  rho: number,
  epsilon: number,
  decay: number,
) => void;

/** Adam and AdamW; `lr` and `epsilon` include the bias correction. */
export type AdamKernel = (
  value: number,
  gradient: number,
  first: number,
  second: number,
  n: number,
  beta1: number,
  beta2: number,
  lr: number,
  epsilon: number,
  decay: number,
) => void;

/** AMSGrad: as {@link AdamKernel}, `most` being the largest second moment so far. */
export type AmsgradKernel = (
  value: number,
  gradient: number,
  first: number,
  second: number,
  most: number,
  n: number,
  beta1: number,
  beta2: number,
  lr: number,
  epsilon: number,
  decay: number,
) => void;

/**
 * Adam and AdamW of the rows of a list, each with the bias correction of its own next update. The columns
 * and `counts` are of all rows, `gradient` is contiguous; `lr` and `epsilon` are those of the
 * configuration.
 */
export type AdamRowsKernel = (
  value: number,
  gradient: number,
  first: number,
  second: number,
  counts: number,
  rows: number,
  n: number,
  rowElements: number,
  beta1: number,
  beta2: number,
  lr: number,
  epsilon: number,
  l2: number,
) => void;

/** AMSGrad, as {@link AdamRowsKernel}. */
export type AmsgradRowsKernel = (
  value: number,
  gradient: number,
  first: number,
  second: number,
  most: number,
  counts: number,
  rows: number,
  n: number,
  rowElements: number,
  beta1: number,
  beta2: number,
  lr: number,
  epsilon: number,
  l2: number,
) => void;

/** FTRL-Proximal; `alpha` must not be 0. */
export type FtrlKernel = (
  value: number,
  gradient: number,
  linear: number,
  squares: number,
  n: number,
  alpha: number,
  beta: number,
  l1: number,
  l2: number,
) => void;

/** The sum of the squares, in f64 and a fixed order, of the finite ones of `n` elements. */
export type MeasureKernel = (pointer: number, n: number) => number;

/** `n` elements from one width to another. */
export type ConvertKernel = (to: number, from: number, n: number) => void;

/** Moves `n` rows of `rowBytes` bytes between `packed`, where they are contiguous, and a column. */
export type GatherKernel = (
  packed: number,
  column: number,
  rows: number,
  n: number,
  rowBytes: number,
) => void;

/** As {@link GatherKernel}, the other way. */
export type ScatterKernel = (
  column: number,
  rows: number,
  packed: number,
  n: number,
  rowBytes: number,
) => void;
