import { DECAY, EPSILON, NOT_NEGATIVE, type NumberEntries, Settings } from "./settings.ts";

/**
 * The rule that `sendGrads` applies. `none`: value = value + gradient, for trainers that optimize
 * themselves and send the difference; it has neither learning rate nor L1 and L2.
 */
export type Optimizer =
  | { readonly name: "none" }
  | { readonly name: "sgd" }
  | { readonly name: "momentum" | "nesterov"; readonly momentum: number }
  | { readonly name: "adagrad"; readonly epsilon: number }
  | { readonly name: "adadelta"; readonly rho: number; readonly epsilon: number }
  | { readonly name: "rmsprop"; readonly rho: number; readonly epsilon: number }
  | {
      readonly name: "adam" | "adamw" | "amsgrad";
      readonly beta1: number;
      readonly beta2: number;
      readonly epsilon: number;
    }
  /** The learning rate is its alpha, `l1` and `l2` are its lambdas. */
  | { readonly name: "ftrl"; readonly beta: number };

/** As callers give it: the name alone, or with some of the numbers. */
export type OptimizerInput =
  | Optimizer["name"]
  | (Optimizer extends infer Each
      ? Each extends { readonly name: infer Name }
        ? { readonly name: Name } & Partial<Omit<Each, "name">>
        : never
      : never);

const momentum = { momentum: { range: DECAY, fallback: 0.9 } };
const adam = {
  beta1: { range: DECAY, fallback: 0.9 },
  beta2: { range: DECAY, fallback: 0.999 },
  epsilon: { range: EPSILON, fallback: 1e-8 },
};

/** Each rule's numbers in the order of the normalized form, with the defaults of their papers. */
const COEFFICIENTS: Readonly<Record<Optimizer["name"], NumberEntries>> = {
  none: {},
  sgd: {},
  momentum,
  nesterov: momentum,
  adagrad: { epsilon: { range: EPSILON, fallback: 1e-5 } },
  adadelta: {
    rho: { range: DECAY, fallback: 0.9 },
    epsilon: { range: EPSILON, fallback: 1e-5 },
  },
  rmsprop: {
    rho: { range: DECAY, fallback: 0.9 },
    epsilon: { range: EPSILON, fallback: 1e-8 },
  },
  adam,
  adamw: adam,
  amsgrad: adam,
  ftrl: { beta: { range: NOT_NEGATIVE, fallback: 1 } },
};

/** Names of all rules. */
export const OPTIMIZERS: readonly Optimizer["name"][] = Object.keys(
  COEFFICIENTS,
) as Optimizer["name"][];

/** @throws BAD_CONFIG for an unknown name, an entry that the rule does not have, or a number out of range. */
export function toOptimizer(input: unknown): Optimizer {
  const given = typeof input === "string" ? { name: input } : input;
  const every = Object.values(COEFFICIENTS).flatMap((numbers) => Object.keys(numbers));
  const name = new Settings(given, "config.optimizer", ["name", ...every]).word("name", OPTIMIZERS);
  const coefficients = COEFFICIENTS[name];
  const settings = new Settings(given, `config.optimizer ${name}`, [
    "name",
    ...Object.keys(coefficients),
  ]);
  return { name, ...settings.numbers(coefficients) } as Optimizer;
}
