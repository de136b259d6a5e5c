/**
 * What the kernels of the rules are to compute, one element at a time in plain TypeScript, rounding
 * after every operation. `Math.fround` of an f64 sum, product, quotient or root of f32 is the f32
 * operation: 53 bits are enough that rounding twice gives what rounding once does.
 */

/** How a type rounds, and its smallest normal number. */
export interface Arithmetic {
  readonly round: (x: number) => number;
  readonly smallest: number;
}

export const ARITHMETIC: Readonly<Record<"float32" | "float64", Arithmetic>> = {
  float32: { round: Math.fround, smallest: 2 ** -126 },
  float64: { round: (x) => x, smallest: 2 ** -1022 },
};

/** Operands of one element: the value, the gradient and the slots. */
type Element = readonly number[];

/** A kernel with its coefficients: new value and slots of an element; the gradient is not changed. */
export type ScalarStep = (element: Element) => readonly number[];

/** The operations of a type, each rounded, and its way with small operands. */
class Scalars {
  readonly round: (x: number) => number;
  readonly #smallest: number;

  constructor({ round, smallest }: Arithmetic) {
    this.round = round;
    this.#smallest = smallest;
  }

  /** A coefficient: 0 if it is denormal. */
  factor(c: number): number {
    return Math.abs(c) < this.#smallest ? 0 : this.round(c);
  }

  /** `x`, or +0 if `c` · x would be denormal or x is denormal or below `least`. */
  operand(c: number, x: number, least = 0): number {
    if (Math.abs(c) < this.#smallest) return 0;
    return this.above(Math.max(this.#smallest, least, this.#smallest / Math.abs(c)), x);
  }

  /** `x`, or +0 if its magnitude is below `least`; a NaN stays. */
  above(least: number, x: number): number {
    return Math.abs(x) < this.round(least) ? 0 : x === 0 ? 0 : x;
  }

  /** The least magnitude whose square times `share` is normal. */
  squareFloor(share: number): number {
    return Math.sqrt(this.#smallest / share);
  }

  /** `c` · `x` by the rule of small operands. */
  product(c: number, x: number, least = 0): number {
    return this.round(this.factor(c) * this.operand(c, x, least));
  }

  /** keep · average + (1 − keep) · g² by the rule of small operands; a negative average is 0. */
  average(keep: number, before: number, g: number): number {
    const share = this.factor(1 - keep);
    const square = this.round(this.round(share * g) * g);
    return this.round(this.product(keep, Math.max(before, 0)) + square);
  }

  /** The value after a step; without decay its term is left out. */
  descended(p: number, step: number, decay: number): number {
    if (decay === 0) return this.round(p - step);
    return this.round(p - this.round(step + this.product(decay, p)));
  }
}

export function sgd(arithmetic: Arithmetic, lr: number): ScalarStep {
  const s = new Scalars(arithmetic);
  return ([p = 0, g = 0]) => [s.round(p - s.product(lr, g))];
}

export function momentum(
  arithmetic: Arithmetic,
  nesterov: boolean,
  lr: number,
  mu: number,
  decay: number,
): ScalarStep {
  const s = new Scalars(arithmetic);
  return ([p = 0, g = 0, m = 0]) => {
    const push = s.product(lr, g);
    const next = s.round(s.product(mu, m) - push);
    const step = nesterov ? s.round(push - s.product(mu, next)) : -next;
    return [s.descended(p, step, decay), next];
  };
}

export function adagrad(
  arithmetic: Arithmetic,
  lr: number,
  epsilon: number,
  decay: number,
): ScalarStep {
  const s = new Scalars(arithmetic);
  return ([p = 0, gradient = 0, before = 0]) => {
    const g = s.above(s.squareFloor(1), gradient);
    const kept = before < 0 ? 0 : s.operand(1, before);
    const squares = s.round(kept + s.round(g * g));
    const root = s.round(Math.sqrt(s.round(squares + s.round(epsilon))));
    return [s.descended(p, s.round(s.round(s.factor(lr) * g) / root), decay), squares];
  };
}

export function rmsprop(
  arithmetic: Arithmetic,
  lr: number,
  rho: number,
  epsilon: number,
  decay: number,
): ScalarStep {
  const s = new Scalars(arithmetic);
  return ([p = 0, gradient = 0, before = 0]) => {
    const g = s.above(s.squareFloor(1 - rho), gradient);
    const squares = s.average(rho, before, g);
    const root = s.round(s.round(Math.sqrt(squares)) + s.round(epsilon));
    return [s.descended(p, s.round(s.round(s.factor(lr) * g) / root), decay), squares];
  };
}

export function adadelta(
  arithmetic: Arithmetic,
  lr: number,
  rho: number,
  epsilon: number,
  decay: number,
): ScalarStep {
  const s = new Scalars(arithmetic);
  return ([p = 0, gradient = 0, squaresBefore = 0, deltasBefore = 0]) => {
    const least = s.squareFloor(1 - rho);
    const g = s.above(least, gradient);
    const squares = s.average(rho, squaresBefore, g);
    const eps = s.round(epsilon);
    const deltas = deltasBefore < 0 ? 0 : s.operand(rho, deltasBefore);
    const ratio = s.round(s.round(deltas + eps) / s.round(squares + eps));
    const delta = s.above(least, s.round(s.round(Math.sqrt(ratio)) * g));
    const next = s.descended(p, s.round(s.factor(lr) * delta), decay);
    return [next, squares, s.average(rho, deltasBefore, delta)];
  };
}

/** Adam (`inside`), AdamW, and with a third slot AMSGrad. */
export function adam(
  arithmetic: Arithmetic,
  inside: boolean,
  beta1: number,
  beta2: number,
  lr: number,
  epsilon: number,
  decay: number,
): ScalarStep {
  const s = new Scalars(arithmetic);
  const { smallest } = arithmetic;
  const least = Math.max(s.squareFloor(1 - beta2), smallest / (1 - beta1));
  const keepFirst = beta1 * least < smallest ? 0 : beta1;
  const leastSecond = s.round((2 * smallest) / beta2);
  return ([p = 0, gradient = 0, first = 0, second = 0, most]) => {
    const g = s.above(least, gradient);
    const share = s.round(s.factor(1 - beta1) * g);
    const m = s.round(s.product(keepFirst, first, least) + share);
    const v = s.average(beta2, Math.max(second, leastSecond), g);
    const before = s.operand(1, Math.max(most ?? 0, 0));
    const largest = most === undefined || before < v ? v : before;
    const eps = s.round(epsilon);
    const root = inside
      ? s.round(Math.sqrt(s.round(largest + eps)))
      : s.round(s.round(Math.sqrt(largest)) + eps);
    const next = s.descended(p, s.round(s.round(s.factor(lr) * m) / root), decay);
    return most === undefined ? [next, m, v] : [next, m, v, largest];
  };
}

export function ftrl(
  arithmetic: Arithmetic,
  alpha: number,
  beta: number,
  l1: number,
  l2: number,
): ScalarStep {
  const s = new Scalars(arithmetic);
  const least = s.squareFloor(1);
  const perAlpha = s.factor(1 / alpha);
  return ([value = 0, gradient = 0, linear = 0, before = 0]) => {
    const g = s.above(least, gradient);
    const kept = before < 0 ? 0 : s.operand(1, before);
    const squares = s.round(kept + s.round(g * g));
    const root = s.round(Math.sqrt(squares));
    const growth = s.above(least, s.round(root - s.round(Math.sqrt(kept))));
    const pull = s.round(s.round(growth * perAlpha) * s.above(least, value));
    const z = s.round(linear + s.round(g - pull));
    const left = s.round(Math.abs(z) - s.round(l1));
    const rest = left < 0 ? 0 : s.above(least, left);
    const scale = s.round(s.round(s.round(s.round(beta) + root) * perAlpha) + s.round(l2));
    const size = s.round(rest / scale);
    return [rest === 0 || z < 0 ? size : -size, z, squares];
  };
}

/** The passes around a rule, each on one range, and `addScaled` on two. */
export function addScaled(arithmetic: Arithmetic, scale: number): ScalarStep {
  const s = new Scalars(arithmetic);
  return ([target = 0, source = 0]) => [s.round(target + s.product(scale, source))];
}

export function add({ round }: Arithmetic): ScalarStep {
  return ([target = 0, source = 0]) => [round(target + source)];
}

export function scale(arithmetic: Arithmetic, by: number): ScalarStep {
  const s = new Scalars(arithmetic);
  return ([target = 0]) => [s.product(by, target)];
}

export function clip({ round }: Arithmetic, bound: number): ScalarStep {
  const high = round(bound);
  return ([x = 0]) => [Math.max(Math.min(x, high), -high)];
}

export function proximal({ round }: Arithmetic, threshold: number): ScalarStep {
  return ([p = 0]) => {
    const rest = round(Math.abs(p) - round(threshold));
    if (rest <= 0) return [0];
    return [p < 0 ? -rest : rest];
  };
}
