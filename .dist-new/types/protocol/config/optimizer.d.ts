/**
 * The rule that `sendGrads` applies. `none`: value = value + gradient, for trainers that optimize
 * themselves and send the difference; it has neither learning rate nor L1 and L2.
 */
export type Optimizer = {
    readonly name: "none";
} | {
    readonly name: "sgd";
} | {
    readonly name: "momentum" | "nesterov";
    readonly momentum: number;
} | {
    readonly name: "adagrad";
    readonly epsilon: number;
} | {
    readonly name: "adadelta";
    readonly rho: number;
    readonly epsilon: number;
} | {
    readonly name: "rmsprop";
    readonly rho: number;
    readonly epsilon: number;
} | {
    readonly name: "adam" | "adamw" | "amsgrad";
    readonly beta1: number;
    readonly beta2: number;
    readonly epsilon: number;
}
/** The learning rate is its alpha, `l1` and `l2` are its lambdas. */
 | {
    readonly name: "ftrl";
    readonly beta: number;
};
/** An optimizer as callers give it: the name alone, or with some of its numbers. */
export type OptimizerInput = Optimizer["name"] | (Optimizer extends infer Each ? Each extends {
    readonly name: infer Name;
} ? {
    readonly name: Name;
} & Partial<Omit<Each, "name">> : never : never);
/** Names of all rules. */
export declare const OPTIMIZERS: readonly Optimizer["name"][];
/** @throws BAD_CONFIG for an unknown name, an entry that the rule does not have, or a number out of range. */
export declare function toOptimizer(input: unknown): Optimizer;
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
export type LearningRate = ({
    readonly schedule: "constant";
    readonly rate: number;
} | {
    readonly schedule: "linear" | "polynomial" | "exponential" | "discrete-exponential";
    readonly rate: number;
    readonly a: number;
    readonly b: number;
} | {
    readonly schedule: "cosine";
    readonly rate: number;
    readonly min: number;
    readonly steps: number;
} | {
    readonly schedule: "step";
    readonly table: readonly (readonly [from: number, rate: number])[];
}) & {
    readonly warmup?: Warmup;
};
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
export type LearningRateInput = number | (({
    readonly schedule?: "constant";
    readonly rate: number;
} | {
    readonly schedule: "linear";
    readonly rate: number;
    readonly a: number;
    readonly b?: number;
} | {
    readonly schedule: "polynomial" | "exponential" | "discrete-exponential";
    readonly rate: number;
    readonly a: number;
    readonly b: number;
} | {
    readonly schedule: "cosine";
    readonly rate: number;
    readonly min?: number;
    readonly steps: number;
} | {
    readonly schedule: "step";
    readonly table: readonly (readonly [from: number, rate: number])[];
}) & {
    readonly warmup?: {
        readonly steps: number;
        readonly from?: number;
    };
});
/** Most rows of a step table: the configuration is part of a record's header, which is bounded. */
export declare const STEP_ROWS_MAX = 32;
/** @throws BAD_CONFIG for an unknown schedule or entry, or a number that is missing or out of range. */
export declare function toLearningRate(input: unknown): LearningRate;
/**
 * Returns the smallest of the numbers that decide the sign of a schedule's rates: only if it is above 0 is
 * every rate above 0.
 */
export declare function lowestRate(schedule: LearningRate): number;
export {};
//# sourceMappingURL=optimizer.d.ts.map