import { descend, keepsFirstMoment, keepsSecondMoment, prepare, prepareRate } from "./adam";
import { is, No, Yes } from "./lanes";

// Adam, AdamW and AMSGrad of rows that lie apart, where they are. Each row has an update count of its own,
// and the bias correction of its next update: it is computed here, by the same operations as in the
// rule, and kept for other rows of the call with the same count.

/** Coefficients that are kept: an update count, the root and the correction. */
const KEPT: u32 = 256;
const KEPT_BYTES: usize = 24;
const TABLE = memory.data(256 * 24, 16);

/** The address of root and correction of update `count`, which is not 0, as float64. */
function correctionOf(count: u32, beta1: f64, beta2: f64): usize {
  const at = TABLE + <usize>(count & (KEPT - 1)) * KEPT_BYTES;
  if (load<u32>(at) != count) {
    const root = sqrt(1 - Math.pow(beta2, <f64>count));
    store<u32>(at, count);
    store<f64>(at, root, 8);
    store<f64>(at, root / (1 - Math.pow(beta1, <f64>count)), 16);
  }
  return at + 8;
}

/**
 * Updates `n` rows of `elements` elements each. `value`, `first`, `second` and `most` are columns of all
 * rows, `counts` their update counts, `gradient` the gradients of the listed rows one behind the other.
 * `l2` is the share of the learning rate by which values decay.
 */
function eachRow<T, Inside, Largest>(
  value: usize, gradient: usize, first: usize, second: usize, most: usize,
  counts: usize, rows: usize, n: u32, elements: u32,
  beta1: f64, beta2: f64, lr: f64, epsilon: f64, l2: f64,
): void {
  memory.fill(TABLE, 0, <usize>KEPT * KEPT_BYTES);
  prepare<T>(first, second, 0, beta1, beta2, 0, 0, 0);
  const keepsFirst = keepsFirstMoment<T>(beta1, beta2);
  const keepsSecond = keepsSecondMoment<T>(beta2);
  const bytes = <usize>elements * sizeof<T>();
  for (; n > 0; n--) {
    const row = <usize>load<u32>(rows);
    const before = load<u32>(counts + (row << 2));
    const at = correctionOf(before + u32(before != u32.MAX_VALUE), beta1, beta2);
    const root = load<f64>(at);
    const rate = lr * load<f64>(at, 8);
    const decay = (is<Inside>() ? rate : lr) * l2;
    prepareRate<T>(rate, is<Inside>() ? epsilon : epsilon * root, decay);
    const offset = row * bytes;
    if (!keepsFirst) memory.fill(first + offset, 0, bytes);
    if (!keepsSecond) memory.fill(second + offset, 0, bytes);
    if (decay == 0) {
      descend<T, Inside, Largest, No>(
        value + offset, gradient, first + offset, second + offset, most + offset, elements,
      );
    } else {
      descend<T, Inside, Largest, Yes>(
        value + offset, gradient, first + offset, second + offset, most + offset, elements,
      );
    }
    gradient += bytes;
    rows += 4;
  }
}

/** As adamF32, of the rows of a list. */
export function adamRowsF32(
  value: usize, gradient: usize, first: usize, second: usize,
  counts: usize, rows: usize, n: u32, elements: u32,
  beta1: f64, beta2: f64, lr: f64, epsilon: f64, l2: f64,
): void {
  eachRow<f32, Yes, No>(
    value, gradient, first, second, 0, counts, rows, n, elements, beta1, beta2, lr, epsilon, l2,
  );
}

/** As adamRowsF32. */
export function adamRowsF64(
  value: usize, gradient: usize, first: usize, second: usize,
  counts: usize, rows: usize, n: u32, elements: u32,
  beta1: f64, beta2: f64, lr: f64, epsilon: f64, l2: f64,
): void {
  eachRow<f64, Yes, No>(
    value, gradient, first, second, 0, counts, rows, n, elements, beta1, beta2, lr, epsilon, l2,
  );
}

/** As adamwF32, of the rows of a list. */
export function adamwRowsF32(
  value: usize, gradient: usize, first: usize, second: usize,
  counts: usize, rows: usize, n: u32, elements: u32,
  beta1: f64, beta2: f64, lr: f64, epsilon: f64, l2: f64,
): void {
  eachRow<f32, No, No>(
    value, gradient, first, second, 0, counts, rows, n, elements, beta1, beta2, lr, epsilon, l2,
  );
}

/** As adamwRowsF32. */
export function adamwRowsF64(
  value: usize, gradient: usize, first: usize, second: usize,
  counts: usize, rows: usize, n: u32, elements: u32,
  beta1: f64, beta2: f64, lr: f64, epsilon: f64, l2: f64,
): void {
  eachRow<f64, No, No>(
    value, gradient, first, second, 0, counts, rows, n, elements, beta1, beta2, lr, epsilon, l2,
  );
}

/** As amsgradF32, of the rows of a list. */
export function amsgradRowsF32(
  value: usize, gradient: usize, first: usize, second: usize, most: usize,
  counts: usize, rows: usize, n: u32, elements: u32,
  beta1: f64, beta2: f64, lr: f64, epsilon: f64, l2: f64,
): void {
  eachRow<f32, No, Yes>(
    value, gradient, first, second, most, counts, rows, n, elements, beta1, beta2, lr, epsilon, l2,
  );
}

/** As amsgradRowsF32. */
export function amsgradRowsF64(
  value: usize, gradient: usize, first: usize, second: usize, most: usize,
  counts: usize, rows: usize, n: u32, elements: u32,
  beta1: f64, beta2: f64, lr: f64, epsilon: f64, l2: f64,
): void {
  eachRow<f64, No, Yes>(
    value, gradient, first, second, most, counts, rows, n, elements, beta1, beta2, lr, epsilon, l2,
  );
}
