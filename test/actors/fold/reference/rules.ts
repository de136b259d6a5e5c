import type { Optimizer } from "../../../../src/protocol/config/index.ts";
import { PRECISIONS, type Precision, Real } from "./real.ts";

/** What one step has besides the values: the same for all elements. */
export interface StepInput<Rule extends Optimizer = Optimizer> {
  readonly optimizer: Rule;
  readonly rate: number;
  /** 1 for the first step. */
  readonly n: number;
  readonly l1: number;
  readonly l2: number;
  readonly precision: Precision;
}

/** One step of one element: the new value, then the new slots. */
type ElementStep = (p: Real, g: Real, slots: readonly Real[]) => readonly Real[];

/** The optimizer of a name, with its numbers. */
type Named<Name extends Optimizer["name"]> = Optimizer extends infer Each
  ? Each extends Optimizer
    ? Name extends Each["name"]
      ? Each
      : never
    : never
  : never;

type Rules = {
  readonly [Name in Optimizer["name"]]: (step: StepInput<Named<Name>>) => ElementStep;
};

/**
 * A step of a rule, without the regularization that is the same for all of them. `p` is the value,
 * `g` the gradient; coefficients are computed in float64 and rounded once to the elements' type.
 */
export function ruleStep<Name extends Optimizer["name"]>(
  step: StepInput<Named<Name>>,
): ElementStep {
  return (RULES[step.optimizer.name as Name] as Rules[Name])(step);
}

/** The slots that each rule has per value. */
export const SLOTS: Readonly<Record<Optimizer["name"], number>> = {
  none: 0,
  sgd: 0,
  momentum: 1,
  nesterov: 1,
  adagrad: 1,
  adadelta: 2,
  rmsprop: 1,
  adam: 2,
  adamw: 2,
  amsgrad: 3,
  ftrl: 2,
};

const RULES: Rules = {
  none: () => (p, g) => [p.plus(g)],

  sgd: ({ rate, precision }) => {
    const lr = double(rate).in(precision);
    return (p, g) => [p.minus(lr.times(g))];
  },

  // Polyak's heavy ball, the learning rate inside the velocity.
  momentum: ({ rate, optimizer, precision }) => {
    const lr = double(rate).in(precision);
    const mu = double(optimizer.momentum).in(precision);
    return (p, g, [m]) => {
      const moved = mu.times(at(m)).minus(lr.times(g));
      return [p.plus(moved), moved];
    };
  },

  // Sutskever et al. 2013, in the form whose parameters are already the ones looked ahead to.
  nesterov: ({ rate, optimizer, precision }) => {
    const lr = double(rate).in(precision);
    const mu = double(optimizer.momentum).in(precision);
    return (p, g, [m]) => {
      const moved = mu.times(at(m)).minus(lr.times(g));
      return [p.plus(mu.times(moved).minus(lr.times(g))), moved];
    };
  },

  // Duchi et al. 2011.
  adagrad: ({ rate, optimizer, precision }) => {
    const lr = double(rate).in(precision);
    const epsilon = double(optimizer.epsilon).in(precision);
    return (p, gradient, [sum]) => {
      const g = vanishing(gradient);
      const squares = at(sum).plus(g.squared());
      return [p.minus(lr.times(g).over(squares.plus(epsilon).root())), squares];
    };
  },

  // Zeiler 2012, with a learning rate.
  adadelta: ({ rate, optimizer, precision }) => {
    const lr = double(rate).in(precision);
    const epsilon = double(optimizer.epsilon).in(precision);
    const average = decayingAverage(optimizer.rho, precision);
    return (p, gradient, [squares, steps]) => {
      const g = vanishing(gradient, 1 - optimizer.rho);
      const meanSquare = average(at(squares), g.squared());
      const d = at(steps).plus(epsilon).root().over(meanSquare.plus(epsilon).root()).times(g);
      return [p.minus(lr.times(d)), meanSquare, average(at(steps), d.squared())];
    };
  },

  // Tieleman and Hinton 2012; epsilon outside the root.
  rmsprop: ({ rate, optimizer, precision }) => {
    const lr = double(rate).in(precision);
    const epsilon = double(optimizer.epsilon).in(precision);
    const average = decayingAverage(optimizer.rho, precision);
    return (p, gradient, [squares]) => {
      const g = vanishing(gradient, 1 - optimizer.rho);
      const meanSquare = average(at(squares), g.squared());
      return [p.minus(lr.times(g).over(meanSquare.root().plus(epsilon))), meanSquare];
    };
  },

  // Kingma and Ba 2015, the variant at the end of their section 2, epsilon inside the root as in Paddle.
  adam: ({ rate, n, optimizer, precision }) => {
    const bias = missingWeight(optimizer.beta2, n).root().over(missingWeight(optimizer.beta1, n));
    const lr = double(rate).times(bias).in(precision);
    const epsilon = double(optimizer.epsilon).in(precision);
    const first = decayingAverage(optimizer.beta1, precision);
    const second = decayingAverage(optimizer.beta2, precision);
    return (p, gradient, [m, v]) => {
      const g = vanishing(gradient, 1 - optimizer.beta2);
      const mean = first(vanishing(at(m), 1 - optimizer.beta2), g);
      const variance = second(raised(at(v), optimizer.beta2), g.squared());
      return [p.minus(lr.times(mean).over(variance.plus(epsilon).root())), mean, variance];
    };
  },

  // Loshchilov and Hutter 2019; the decay is with the regularization.
  adamw: (step) => {
    const { optimizer, precision } = step;
    const first = decayingAverage(optimizer.beta1, precision);
    const second = decayingAverage(optimizer.beta2, precision);
    const correct = correctedStep(step);
    return (p, gradient, [m, v]) => {
      const g = vanishing(gradient, 1 - optimizer.beta2);
      const mean = first(vanishing(at(m), 1 - optimizer.beta2), g);
      const variance = second(raised(at(v), optimizer.beta2), g.squared());
      return [p.minus(correct(mean, variance)), mean, variance];
    };
  },

  // Reddi et al. 2018, with the bias correction of Adam.
  amsgrad: (step) => {
    const { optimizer, precision } = step;
    const first = decayingAverage(optimizer.beta1, precision);
    const second = decayingAverage(optimizer.beta2, precision);
    const correct = correctedStep(step);
    return (p, gradient, [m, v, largest]) => {
      const g = vanishing(gradient, 1 - optimizer.beta2);
      const mean = first(vanishing(at(m), 1 - optimizer.beta2), g);
      const variance = second(raised(at(v), optimizer.beta2), g.squared());
      const most = at(largest).max(variance);
      return [p.minus(correct(mean, most)), mean, variance, most];
    };
  },

  // McMahan et al. 2013, algorithm 1.
  ftrl: ({ rate, l1, l2, optimizer, precision }) => {
    const alpha = double(rate).in(precision);
    const beta = double(optimizer.beta).in(precision);
    const lambda1 = double(l1).in(precision);
    const lambda2 = double(l2).in(precision);
    return (value, gradient, [z, n]) => {
      const [p, g] = [vanishing(value), vanishing(gradient)];
      const squares = at(n).plus(g.squared());
      const sigma = vanishing(squares.root().minus(at(n).root())).over(alpha);
      const sum = at(z).plus(g).minus(sigma.times(p));
      const strength = beta.plus(squares.root()).over(alpha).plus(lambda2);
      return [vanishing(sum.shrunk(lambda1)).negated().over(strength), sum, squares];
    };
  },
};

/** A coefficient, before it is rounded to the elements' type. */
function double(value: number): Real {
  return Real.exact(value, PRECISIONS.float64);
}

/**
 * A number that the kernels take as zero where `weight` times its square would be denormal, and may
 * take as zero where that is uncertain.
 */
function vanishing(number: Real, weight = 1): Real {
  return number.orZeroBelow(Math.sqrt(number.precision.leastNormal / weight));
}

/** A second moment, which the kernels take as twice what makes its product with `decay` normal at least. */
function raised(moment: Real, decay: number): Real {
  return moment.orRaisedTo((2 * moment.precision.leastNormal) / decay);
}

/** 1 − decay^n: the weight that an average from zero on has gathered. */
function missingWeight(decay: number, n: number): Real {
  return double(1).minus(double(decay).toThe(n));
}

/** decay · average + (1 − decay) · next. */
function decayingAverage(decay: number, precision: Precision): (average: Real, next: Real) => Real {
  const kept = double(decay).in(precision);
  const added = double(1).minus(double(decay)).in(precision);
  return (average, next) => kept.times(average).plus(added.times(next));
}

/** lr · (mean / (1 − beta1^n)) / (√(variance / (1 − beta2^n)) + epsilon). */
function correctedStep(
  step: StepInput<Named<"adamw" | "amsgrad">>,
): (mean: Real, variance: Real) => Real {
  const { rate, n, optimizer, precision } = step;
  const lr = double(rate).in(precision);
  const epsilon = double(optimizer.epsilon).in(precision);
  const first = missingWeight(optimizer.beta1, n).in(precision);
  const second = missingWeight(optimizer.beta2, n).in(precision);
  return (mean, variance) =>
    lr.times(mean.over(first)).over(variance.over(second).root().plus(epsilon));
}

function at(slot: Real | undefined): Real {
  if (slot === undefined) throw new Error("the rule has fewer slots than it reads");
  return slot;
}
