import { COUNT, DECAY, EPSILON, FINITE, NOT_NEGATIVE, POSITIVE, Settings, UNIT, wholeRange, } from "./read-settings.js";
const momentum = { momentum: { range: DECAY, fallback: 0.9 } };
const adam = {
    beta1: { range: DECAY, fallback: 0.9 },
    beta2: { range: DECAY, fallback: 0.999 },
    epsilon: { range: EPSILON, fallback: 1e-8 },
};
/** The numbers of each rule in the order of the normalized form, with the defaults of the rules' papers. */
const COEFFICIENTS = {
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
export const RULE_NUMBERS = [
    "momentum",
    "epsilon",
    "rho",
    "beta1",
    "beta2",
    "beta",
];
/** Names of all rules. */
export const OPTIMIZERS = Object.keys(COEFFICIENTS);
/** @throws BAD_CONFIG for an unknown name, an entry that the rule does not have, or a number out of range. */
export function toOptimizer(input) {
    const given = typeof input === "string" ? { name: input } : input;
    const name = new Settings(given, "config.optimizer", ["name", ...RULE_NUMBERS]).word("name", OPTIMIZERS);
    const coefficients = COEFFICIENTS[name];
    const settings = new Settings(given, `config.optimizer ${name}`, [
        "name",
        ...Object.keys(coefficients),
    ]);
    return { name, ...settings.numbers(coefficients) };
}
/** Most rows of a step table: the configuration is part of a record's header, which is bounded. */
export const STEP_ROWS_MAX = 32;
const WHAT = "config.learningRate";
const rate = { range: FINITE };
const decay = { rate, a: { range: POSITIVE }, b: { range: POSITIVE } };
/** The numbers of each schedule; `step` has a table instead. */
const NUMBERS = {
    constant: { rate },
    linear: { rate, a: { range: FINITE }, b: { range: FINITE, fallback: 0 } },
    polynomial: { rate, a: { range: NOT_NEGATIVE }, b: { range: FINITE } },
    exponential: decay,
    "discrete-exponential": decay,
    cosine: { rate, min: { range: FINITE, fallback: 0 }, steps: { range: COUNT } },
    step: {},
};
const SCHEDULES = Object.keys(NUMBERS);
/** @throws BAD_CONFIG for an unknown schedule or entry, or a number that is missing or out of range. */
export function toLearningRate(input) {
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
    };
}
function toTable(settings) {
    const rows = settings.get("table");
    if (!Array.isArray(rows) || rows.length === 0 || rows.length > STEP_ROWS_MAX) {
        throw settings.refusal("table", `a list of 1 to ${STEP_ROWS_MAX} rows`, rows);
    }
    let next = 0;
    return rows.map((row, i) => {
        if (!Array.isArray(row) || row.length !== 2) {
            throw settings.refusal(`table, row ${i}`, "a list of two numbers, from and rate", row);
        }
        const entry = new Settings({ from: row[0], rate: row[1] }, `${WHAT}.table, row ${i}`, [
            "from",
            "rate",
        ]);
        const from = entry.number("from", i === 0 ? wholeRange(0, 0) : wholeRange(next));
        next = from + 1;
        return [from, entry.number("rate", FINITE)];
    });
}
function toWarmup(input) {
    const settings = new Settings(input, `${WHAT}.warmup`, ["steps", "from"]);
    return { steps: settings.number("steps", COUNT), from: settings.number("from", UNIT, 0) };
}
/**
 * Returns the smallest of the numbers that decide the sign of a schedule's rates: only if it is above 0 is
 * every rate above 0.
 */
export function lowestRate(schedule) {
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
//# sourceMappingURL=optimizer.js.map