import { KERNELS_WASM_BASE64 } from "./wasm.ts";

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

/** A momentum rule. `decay` is lr · l2: the value loses that share of itself. */
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

/** Returns the sum of the squares of the finite ones among `n` elements, in f64 and a fixed order. */
type MeasureKernel = (pointer: number, n: number) => number;

/** Orders `n` elements of two ranges pair by pair, in place: the smaller ones go to `least`. */
type OrderKernel = (least: number, most: number, n: number) => void;

/** Returns the sum of the squared differences of `n` elements, in f64 and a fixed order. */
type DistanceKernel = (a: number, b: number, n: number) => number;

/** Converts `n` elements from one width to another. */
type ConvertKernel = (to: number, from: number, n: number) => void;

/** Moves `n` rows of `rowBytes` bytes between `packed`, where they are contiguous, and a column. */
type GatherKernel = (
  packed: number,
  column: number,
  rows: number,
  n: number,
  rowBytes: number,
) => void;

/** Moves rows like {@link GatherKernel}, in the other direction. */
type ScatterKernel = (
  column: number,
  rows: number,
  packed: number,
  n: number,
  rowBytes: number,
) => void;

/**
 * Arithmetic on elements in one WebAssembly memory.
 *
 * Pointers are byte addresses in that memory, multiples of the element's size (of 16 for speed); `n`
 * counts elements and may be 0. The operands of a kernel are the same range or do not overlap.
 * Nothing checks the range: a range outside the memory traps after part of it has been written, so
 * callers pass what `ShardMemory` gave them.
 *
 * Results are the same bits on every machine. `float32` is computed in f32, with the coefficients
 * rounded to f32 first, `float64` in f64; every operation rounds to nearest even on its own and none
 * is fused. Whatever a float kernel stores as NaN is the canonical quiet NaN, `0x7fc00000` or
 * `0x7ff8000000000000`. Each kernel's formula stands above it in `assembly/`.
 *
 * Denormals. Mixing, adding and clipping keep them as IEEE 754 has them. The rules, `addScaled` and
 * `scale` take an operand as +0 where a product with it would be denormal, because processors
 * multiply, divide and take roots of denormals 2 to 10 times slower, and moments that decay while
 * gradients are 0 end there. With m = 2⁻¹²⁶ for float32 and 2⁻¹⁰²² for float64, the smallest normal
 * number, what counts as 0 is:
 * - an operand x of a product c·x, if |x| < m or |x| < m/|c|;
 * - a gradient that is squared with weight c, if |x| < √(m/c): 3.4e-18 for Adam in float32;
 * - a first moment of Adam below the least gradient that its second moment counts; all of them if β₁ is
 *   so small that its product with that gradient would be denormal;
 * - in FTRL, gradients, values, growths of the root and what L1 leaves of z, below √m;
 * - a coefficient below m, and then, outside steps that are divided by a root, the whole
 *   term, even if it multiplies an infinity or a NaN.
 * A second moment of Adam below 2m/β₂ counts as 2m/β₂ instead, so that it never falls below 2m.
 *
 * Measured by `bench/rules.ts` on an AMD EPYC, 1 MiB of float32: no rule takes more than 1.1 times as
 * long with denormal gradients, values, slots, products or squares as with ordinary numbers.
 */
export interface Kernels {
  readonly mixF32: MixKernel;
  readonly mixF64: MixKernel;
  /**
   * Integer mixes compute in f64 (64-bit elements are rounded to f64 first), cut the fraction off
   * and hold the result at the ends of the type's range; a NaN gives 0. Where C and numpy define the
   * conversion the result is theirs, and where they leave it open this is our rule.
   */
  readonly mixI32: MixKernel;
  /** Like {@link Kernels.mixI32}, but turns negative results into 0. */
  readonly mixU32: MixKernel;
  /** As {@link Kernels.mixI32}. */
  readonly mixI64: MixKernel;
  /** Like {@link Kernels.mixI32}, but turns negative results into 0. */
  readonly mixU64: MixKernel;
  /** As {@link Kernels.mixI32}. */
  readonly mixI8: MixKernel;
  /** Like {@link Kernels.mixI32}, but turns negative results into 0. */
  readonly mixU8: MixKernel;

  readonly addF32: AddKernel;
  readonly addF64: AddKernel;
  /** Adds modulo 2³², for int32 and uint32. */
  readonly addI32: AddKernel;
  /** Adds modulo 2⁶⁴, for int64 and uint64. */
  readonly addI64: AddKernel;
  /** Adds modulo 2⁸, for int8 and uint8. */
  readonly addI8: AddKernel;
  readonly addScaledF32: AddScaledKernel;
  readonly addScaledF64: AddScaledKernel;
  /** Multiplies every element. */
  readonly scaleF32: ElementKernel;
  /** As {@link Kernels.scaleF32}. */
  readonly scaleF64: ElementKernel;
  /** Limits every element to the range from −`by` to `by`, which is positive; a NaN stays. */
  readonly clipF32: ElementKernel;
  /** As {@link Kernels.clipF32}. */
  readonly clipF64: ElementKernel;
  /** Brings every element nearer to 0 by `by`, which is positive, and to +0 at most; a NaN stays. */
  readonly proximalF32: ElementKernel;
  /** As {@link Kernels.proximalF32}. */
  readonly proximalF64: ElementKernel;

  readonly sgdF32: SgdKernel;
  readonly sgdF64: SgdKernel;
  readonly momentumF32: MomentumKernel;
  readonly momentumF64: MomentumKernel;
  readonly nesterovF32: MomentumKernel;
  readonly nesterovF64: MomentumKernel;
  readonly adagradF32: AdagradKernel;
  readonly adagradF64: AdagradKernel;
  readonly rmspropF32: RmspropKernel;
  readonly rmspropF64: RmspropKernel;
  readonly adadeltaF32: AdadeltaKernel;
  readonly adadeltaF64: AdadeltaKernel;
  /** The epsilon is added under the root. */
  readonly adamF32: AdamKernel;
  /** As {@link Kernels.adamF32}. */
  readonly adamF64: AdamKernel;
  /** The epsilon is added to the root. */
  readonly adamwF32: AdamKernel;
  /** As {@link Kernels.adamwF32}. */
  readonly adamwF64: AdamKernel;
  readonly amsgradF32: AmsgradKernel;
  readonly amsgradF64: AmsgradKernel;
  readonly adamRowsF32: AdamRowsKernel;
  readonly adamRowsF64: AdamRowsKernel;
  readonly adamwRowsF32: AdamRowsKernel;
  readonly adamwRowsF64: AdamRowsKernel;
  readonly amsgradRowsF32: AmsgradRowsKernel;
  readonly amsgradRowsF64: AmsgradRowsKernel;
  readonly ftrlF32: FtrlKernel;
  readonly ftrlF64: FtrlKernel;

  // Lists of rows: `rows` is the address of `n` row numbers, uint32; `column` holds all rows of a block,
  // each of `rowBytes` bytes.

  /** Copies the rows of a list from a column to `packed`. */
  readonly gatherRows: GatherKernel;
  /** Copies rows from `packed` to their places in a column. */
  readonly scatterRows: ScatterKernel;
  /** Sets the rows of a list to 0. */
  readonly clearRows: (column: number, rows: number, n: number, rowBytes: number) => void;
  /** Writes a list of `n` consecutive rows. */
  readonly numberRows: (rows: number, first: number, n: number) => void;
  /** Adds 1 to the update counts, uint32, of the rows of a list; 2³² − 1 stays. */
  readonly countRows: (counts: number, rows: number, n: number) => void;
  /** Adds 1 to each of `n` update counts; 2³² − 1 stays. */
  readonly countAll: (counts: number, n: number) => void;
  /** Sets the byte of each row of a list to 1. */
  readonly touchRows: (touched: number, rows: number, n: number) => void;
  /**
   * Writes the numbers of the rows from `first` on, below `end`, whose byte is 1, at most `most` of them; returns how
   * many.
   */
  readonly touchedRows: (
    rows: number,
    touched: number,
    first: number,
    end: number,
    most: number,
  ) => number;
  /**
   * Divides a list of rows into groups of the same update count, in the order of the counts: writes each
   * group's count and end, both uint32, to `groups` and returns their number. If there are several,
   * writes places in the list, in the order of groups, to `order` and the row numbers to `sorted`.
   * `work`: 16 bytes a row, overwritten.
   */
  readonly groupRows: (
    groups: number,
    order: number,
    sorted: number,
    counts: number,
    rows: number,
    n: number,
    work: number,
  ) => number;
  /** Counts the rows from `first` on, below `end`, that have the same update count as `first`. */
  readonly sameCounts: (counts: number, first: number, end: number) => number;

  // Pieces: ranges of blocks that lie apart. A table has a row of five uint32 for each: its bytes, and its address in
  // up to four columns.

  /** Copies `n` pieces of a column to `packed`, one behind the other. */
  readonly gatherPieces: (packed: number, table: number, column: number, n: number) => void;
  /** Copies what lies one behind the other at `packed` to `n` pieces of a column. */
  readonly scatterPieces: (table: number, column: number, packed: number, n: number) => void;
  /** Sets `n` pieces of a column to 0. */
  readonly clearPieces: (table: number, column: number, n: number) => void;
  /**
   * Measures `n` runs of elements that follow each other; `counts` is the address of their lengths, uint32, `dtype` the
   * number of their type, not of half floats. Writes six float64 for each to `results`: the sum of squares, and what
   * {@link Kernels.measured} returns.
   */
  readonly measurePieces: (
    results: number,
    pointer: number,
    counts: number,
    n: number,
    dtype: number,
  ) => void;

  /** Returns `base` to the power `exponent`, with the same bits everywhere, unlike `Math.pow`. */
  readonly powF64: (base: number, exponent: number) => number;
  /** Returns the cosine of radians, with the same bits everywhere, unlike `Math.cos`. */
  readonly cosF64: (angle: number) => number;

  /** Measures elements. {@link Kernels.measured} returns the statistics besides the sum of squares. */
  readonly measureF32: MeasureKernel;
  readonly measureF64: MeasureKernel;
  readonly measureI32: MeasureKernel;
  readonly measureU32: MeasureKernel;
  /** Measures elements, each rounded to f64 first. */
  readonly measureI64: MeasureKernel;
  /** As {@link Kernels.measureI64}. */
  readonly measureU64: MeasureKernel;
  readonly measureI8: MeasureKernel;
  readonly measureU8: MeasureKernel;
  /**
   * Returns a result of the last measurement, by number: 0 sum, 1 least, 2 largest (∞ and −∞ of no elements), 3
   * zeros, all of the finite elements, and 4 the number of elements that are not finite.
   */
  readonly measured: (result: number) => number;

  /** Orders pairs of elements; −0 is below 0. A NaN goes to both sides. */
  readonly orderF32: OrderKernel;
  /** As {@link Kernels.orderF32}. */
  readonly orderF64: OrderKernel;
  /** Measures how far two vectors are apart; NaN if two infinities meet. */
  readonly distanceF32: DistanceKernel;
  /** As {@link Kernels.distanceF32}. */
  readonly distanceF64: DistanceKernel;

  /** Returns 1 if no element is a NaN or an infinity, else 0. Takes the same time either way. */
  readonly finiteF32: (pointer: number, n: number) => number;
  /** As {@link Kernels.finiteF32}. */
  readonly finiteF64: (pointer: number, n: number) => number;
  /** As {@link Kernels.finiteF32}, of bfloat16, which need no alignment. */
  readonly finiteBf16: (pointer: number, n: number) => number;
  /** As {@link Kernels.finiteF32}, of float16, which need no alignment. */
  readonly finiteF16: (pointer: number, n: number) => number;
  /** Returns 1 if all bytes are 0 or 1, else 0. */
  readonly areBools: (pointer: number, n: number) => number;
  /** Replaces every NaN by the canonical one, in place; all other bits stay. */
  readonly canonicalF32: (pointer: number, n: number) => void;
  /** As {@link Kernels.canonicalF32}. */
  readonly canonicalF64: (pointer: number, n: number) => void;

  /**
   * Converts bfloat16 to float32, exactly; NaNs are not made canonical. `from` needs no alignment and may lie inside
   * `to` if it ends where `to` ends.
   */
  readonly widenBf16: ConvertKernel;
  /** Converts float16 to float32, like {@link Kernels.widenBf16}. */
  readonly widenF16: ConvertKernel;
  /** Converts float32 to bfloat16, rounded to nearest even. `to` needs no alignment; the ranges must not overlap. */
  readonly narrowBf16: ConvertKernel;
  /** Converts float32 to float16, like {@link Kernels.narrowBf16}. */
  readonly narrowF16: ConvertKernel;
}

let compiled: WebAssembly.Module | undefined;

/**
 * Binds the kernels to `memory`, which needs at least one page; the first page is the module's own. The module is
 * compiled once per thread; an instance takes microseconds. No call leaves anything for the next one, except the
 * results of a measurement.
 */
export function instantiateKernels(memory: WebAssembly.Memory): Kernels {
  compiled ??= new WebAssembly.Module(Buffer.from(KERNELS_WASM_BASE64, "base64"));
  const instance = new WebAssembly.Instance(compiled, { env: { memory } });
  // The names and signatures are those of assembly/index.ts; the tests call every one of them.
  return instance.exports as unknown as Kernels;
}
