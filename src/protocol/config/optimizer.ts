import {
  COUNT,
  DECAY,
  EPSILON,
  FINITE,
  NOT_NEGATIVE,
  type NumberEntries,
  POSITIVE,
  Settings,
  UNIT,
  wholeRange,
} from "./read-settings.ts";

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

/** An optimizer as callers give it: the name alone, or with some of its numbers. */
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

/** The numbers of each rule in the order of the normalized form, with the defaults of the rules' papers. */
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

/** The numbers that rules have; each rule has some of them. */
export interface RuleNumbers {
  readonly momentum: number;
  readonly epsilon: number;
  readonly rho: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly beta: number;
}

export const RULE_NUMBERS = [
  "momentum",
  "epsilon",
  "rho",
  "beta1",
  "beta2",
  "beta",
] as const satisfies readonly (keyof RuleNumbers)[];

/** Names of all rules. */
export const OPTIMIZERS: readonly Optimizer["name"][] = Object.keys(
  COEFFICIENTS,
) as Optimizer["name"][];

/** @throws BAD_CONFIG for an unknown name, an entry that the rule does not have, or a number out of range. */
export function toOptimizer(input: unknown): Optimizer {
  const given = typeof input === "string" ? { name: input } : input;
  const name = new Settings(given, "config.optimizer", ["name", ...RULE_NUMBERS]).word(
    "name",
    OPTIMIZERS,
  );
  const coefficients = COEFFICIENTS[name];
  const settings = new Settings(given, `config.optimizer ${name}`, [
    "name",
    ...Object.keys(coefficients),
  ]);
  return { name, ...settings.numbers(coefficients) } as Optimizer;
}

/**
 * The learning rate of update n of a block; n is 1 for the first one.
 *
 *     constant              rate
 *     linear                max(rate − a·n, b)
 *     polynomial            rate · (1 + a·n)^−b
 *     exponential           rate · a^(n/b)
 *     discrete-exponential  rate · a^floor(n/b)
 *     cosine                min + (rate − min) · (1 + cos(π · min(n, steps)/steps)) / 2
 *     step                  the rate of the last row of the table whose `from` is at most n
 *
 * The first five are PaddlePaddle's (its n counted samples in some versions), cosine is of Loshchilov
 * and Hutter, "SGDR" (2017), without restarts. While n < warmup.steps, the rate is multiplied by
 * from + (1 − from) · n / steps.
 */
export type LearningRate = (
  | { readonly schedule: "constant"; readonly rate: number }
  | {
      readonly schedule: "linear" | "polynomial" | "exponential" | "discrete-exponential";
      readonly rate: number;
      readonly a: number;
      readonly b: number;
    }
  | {
      readonly schedule: "cosine";
      readonly rate: number;
      readonly min: number;
      readonly steps: number;
    }
  | {
      readonly schedule: "step";
      readonly table: readonly (readonly [from: number, rate: number])[];
    }
) & { readonly warmup?: Warmup };

/** Growth of the rate at the beginning of training. */
interface Warmup {
  /** Updates until the rate is that of the schedule. */
  readonly steps: number;
  /** Fraction of the rate, 0 to 1, at which warm-up begins. */
  readonly from: number;
}

/**
 * A learning rate as callers give it: a constant rate as a number, or a schedule with some of its numbers.
 */
export type LearningRateInput =
  | number
  | ((
      | { readonly schedule?: "constant"; readonly rate: number }
      | {
          readonly schedule: "linear";
          readonly rate: number;
          readonly a: number;
          readonly b?: number;
        }
      | {
          readonly schedule: "polynomial" | "exponential" | "discrete-exponential";
          readonly rate: number;
          readonly a: number;
          readonly b: number;
        }
      | {
          readonly schedule: "cosine";
          readonly rate: number;
          readonly min?: number;
          readonly steps: number;
        }
      | {
          readonly schedule: "step";
          readonly table: readonly (readonly [from: number, rate: number])[];
        }
    ) & { readonly warmup?: { readonly steps: number; readonly from?: number } });

/** Most rows of a step table: the configuration is part of a record's header, which is bounded. */
export const STEP_ROWS_MAX = 32;

const WHAT = "config.learningRate";
const rate = { range: FINITE };
const decay = { rate, a: { range: POSITIVE }, b: { range: POSITIVE } };

/** The numbers of each schedule; `step` has a table instead. */
const NUMBERS: Readonly<Record<LearningRate["schedule"], NumberEntries>> = {
  constant: { rate },
  linear: { rate, a: { range: FINITE }, b: { range: FINITE, fallback: 0 } },
  polynomial: { rate, a: { range: NOT_NEGATIVE }, b: { range: FINITE } },
  exponential: decay,
  "discrete-exponential": decay,
  cosine: { rate, min: { range: FINITE, fallback: 0 }, steps: { range: COUNT } },
  step: {},
};

const SCHEDULES = Object.keys(NUMBERS) as LearningRate["schedule"][];

/** @throws BAD_CONFIG for an unknown schedule or entry, or a number that is missing or out of range. */
export function toLearningRate(input: unknown): LearningRate {
  const given = typeof input === "number" ? { rate: input } : input;
  const every = [...Object.values(NUMBERS).flatMap(Object.keys), "table"];
  const all = new Settings(given, WHAT, ["schedule", "warmup", ...every]);
  const schedule = all.word("schedule", SCHEDULES, "constant");
  const own = schedule === "step" ? ["table"] : Object.keys(NUMBERS[schedule]);
  const settings = new Settings(given, `${WHAT} ${schedule}`, ["schedule", "warmup", ...own]);
  const warmup = settings.get("warmup");
  return {
    schedule,
    ...(schedule === "step" ? { table: toTable(settings) } : settings.numbers(NUMBERS[schedule])),
    ...(warmup === undefined ? {} : { warmup: toWarmup(warmup) }),
  } as LearningRate;
}

function toTable(settings: Settings): readonly (readonly [number, number])[] {
  const rows = settings.get("table");
  if (!Array.isArray(rows) || rows.length === 0 || rows.length > STEP_ROWS_MAX) {
    throw settings.refusal("table", `a list of 1 to ${STEP_ROWS_MAX} rows`, rows);
  }
  let next = 0;
  return rows.map((row: unknown, i) => {
    if (!Array.isArray(row) || row.length !== 2) {
      throw settings.refusal(`table, row ${i}`, "a list of two numbers, from and rate", row);
    }
    const entry = new Settings({ from: row[0], rate: row[1] }, `${WHAT}.table, row ${i}`, [
      "from",
      "rate",
    ]);
    const from = entry.number("from", i === 0 ? wholeRange(0, 0) : wholeRange(next));
    next = from + 1;
    return [from, entry.number("rate", FINITE)] as const;
  });
}

function toWarmup(input: unknown): Warmup {
  const settings = new Settings(input, `${WHAT}.warmup`, ["steps", "from"]);
  return { steps: settings.number("steps", COUNT), from: settings.number("from", UNIT, 0) };
}

/**
 * Returns the smallest of the numbers that decide the sign of a schedule's rates: only if it is above 0 is
 * every rate above 0.
 */
export function lowestRate(schedule: LearningRate): number {
  switch (schedule.schedule) {
    case "step":
      return Math.min(...schedule.table.map(([, rate]) => rate));
    case "linear":
      return schedule.a > 0 ? schedule.b : schedule.rate;
    case "cosine":
      return Math.min(schedule.rate, schedule.min);
    default:
      return schedule.rate;
  }
}
