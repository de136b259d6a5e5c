import type { Optimizer, ParameterConfig } from "../../../../src/protocol/config/index.ts";
import { referenceRate } from "./learning-rates.ts";
import { PRECISIONS, type Precision, Real } from "./real.ts";
import { ruleStep, SLOTS } from "./rules.ts";

/** What comes with a gradient. */
export interface GradientInput {
  /** L2 norm of the whole gradient, before it is scaled. */
  readonly norm: number;
  /** Instead of the configuration's learning rate. */
  readonly learningRate?: number;
}

/** A block of float elements as the optimizers' papers describe it, in plain float64. */
export class ReferenceBlock {
  readonly #config: ParameterConfig;
  readonly #precision: Precision;
  /** For each element its value, then its slots. */
  #elements: (readonly Real[])[];
  #updates = 0;

  constructor(config: ParameterConfig, dtype: "float32" | "float64", values: ArrayLike<number>) {
    this.#config = config;
    this.#precision = PRECISIONS[dtype];
    const zero = Real.exact(0, this.#precision);
    const slots = Array.from({ length: SLOTS[config.optimizer.name] }, () => zero);
    this.#elements = Array.from(values, (value) => [Real.exact(value, this.#precision), ...slots]);
  }

  /** The values (0) or one of the slots (from 1 on). */
  column(index: number): readonly Real[] {
    return this.#elements.map((element) => element[index] as Real);
  }

  /** Goes on from values and slots of an implementation, without bounds so far. */
  adopt(columns: readonly ArrayLike<number>[]): void {
    this.#elements = this.#elements.map((_, i) =>
      columns.map((column) => Real.exact(column[i] as number, this.#precision)),
    );
  }

  /** Applies a gradient. */
  push(gradient: ArrayLike<number>, { norm, learningRate }: GradientInput): void {
    const n = ++this.#updates;
    const { optimizer } = this.#config;
    const rate = optimizer.name === "none" ? 0 : (learningRate ?? this.#scheduled(n));
    const scale = this.#number(referenceScale(this.#config, norm));
    const { l1, l2 } = this.#config;
    const rule = ruleStep<Optimizer["name"]>({
      optimizer,
      rate,
      n,
      l1,
      l2,
      precision: this.#precision,
    });
    const finish = this.#regularization(rate, n);
    for (const [i, element] of this.#elements.entries()) {
      const [p, ...slots] = element as [Real, ...Real[]];
      const sent = Real.exact(gradient[i] as number, this.#precision);
      const [moved, ...newSlots] = rule(p, this.#shape(sent, scale, p), slots);
      this.#elements[i] = [finish(moved as Real, p), ...newSlots];
    }
  }

  #scheduled(n: number): number {
    const { learningRate } = this.#config;
    if (learningRate === undefined) throw new Error("no learning rate");
    return referenceRate(learningRate, n);
  }

  /** The gradient as the rule gets it: scaled, clipped, and with coupled L2. */
  #shape(sent: Real, scale: Real, p: Real): Real {
    const { clipValue, l2, l2Mode, optimizer } = this.#config;
    let g = sent.times(scale);
    if (clipValue !== undefined) g = g.clipped(this.#number(clipValue));
    const coupled = l2 !== 0 && l2Mode === "coupled" && optimizer.name !== "ftrl";
    return coupled ? g.plus(this.#number(l2).times(p)) : g;
  }

  /** What follows the rule: decoupled L2 of the old value, and proximal L1. */
  #regularization(rate: number, n: number): (moved: Real, old: Real) => Real {
    const { l1, l2, l2Mode, optimizer } = this.#config;
    if (optimizer.name === "ftrl") return (moved) => moved;
    // Paddle multiplied Adam's decay by the corrected rate.
    const correction =
      optimizer.name === "adam"
        ? Math.sqrt(1 - optimizer.beta2 ** n) / (1 - optimizer.beta1 ** n)
        : 1;
    const decay = this.#number(l2Mode === "decoupled" ? rate * correction * l2 : 0);
    const distance = this.#number(rate * l1);
    return (moved, old) => {
      const decayed = decay.value === 0 ? moved : moved.minus(decay.times(old));
      return distance.value === 0 ? decayed : decayed.shrunk(distance);
    };
  }

  /** A coefficient: computed in float64, rounded once. */
  #number(value: number): Real {
    return Real.exact(value, PRECISIONS.float64).in(this.#precision);
  }
}

/** What a gradient of this norm is multiplied by: its scale, smaller if the result is too long. */
export function referenceScale(config: ParameterConfig, norm: number): number {
  const { gradientScale, clipNorm } = config;
  const length = norm * Math.abs(gradientScale);
  return clipNorm !== undefined && length > clipNorm
    ? (gradientScale * clipNorm) / length
    : gradientScale;
}
