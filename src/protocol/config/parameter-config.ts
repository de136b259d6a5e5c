import { createRequire } from "node:module";
import { isDeepStrictEqual } from "node:util";
import type yaml from "yaml";
import { DTYPES, type Dtype } from "../dtypes.ts";
import { PserverError } from "../errors.ts";
import { FRAGMENT_NAME_LENGTH_MAX } from "../limits.ts";
import { MERGES, type Merge, TRIM } from "./diloco.ts";
import { type GuardInput, type GuardSetting, toGuardSetting } from "./guard.ts";
import {
  type LearningRate,
  type LearningRateInput,
  lowestRate,
  type Optimizer,
  type OptimizerInput,
  RULE_NUMBERS,
  type RuleNumbers,
  toLearningRate,
  toOptimizer,
} from "./optimizer.ts";
import { fromPaddle, isPaddleConfigs, type PaddleConfigs } from "./paddle/paddle.ts";
import {
  badConfig,
  FINITE,
  isPlainMap,
  NOT_NEGATIVE,
  POSITIVE,
  Settings,
} from "./read-settings.ts";

/**
 * How a parameter is updated; fixed when the parameter is initialized. This is the normalized form that
 * records, snapshots and the job's state carry: an absent entry has no key, and no number is −0.
 *
 * A gradient's elements are multiplied by `gradientScale`, clipped by norm, then clipped by value. Then
 * coupled L2 is added, the optimizer's rule runs with the learning rate and decoupled L2, and L1 shrinks
 * the new value.
 */
export interface ParameterConfig {
  readonly optimizer: Optimizer;
  /** Learning rate of calls that give none. Every rule but `none` rejects a gradient without a rate. */
  readonly learningRate?: LearningRate;
  /** Proximal L1, per unit of learning rate; ≥ 0. */
  readonly l1: number;
  /** Weight decay, ≥ 0: added to the gradient as l2 · value, or subtracted from the value. */
  readonly l2: number;
  /** Whether L2 goes through the rule (coupled) or past it (decoupled, as in AdamW). */
  readonly l2Mode: "coupled" | "decoupled";
  /**
   * Largest L2 norm of the whole parameter's gradient after `gradientScale`; a larger gradient is scaled down
   * to it; > 0.
   */
  readonly clipNorm?: number;
  /** Largest magnitude of a gradient's element; a larger one is cut to it; > 0. */
  readonly clipValue?: number;
  readonly gradientScale: number;
  /** Whether gradients may come for some rows only. */
  readonly sparse: boolean;
  /** Whether the parameter keeps its first values: every update is rejected. */
  readonly static: boolean;
  /** Whether a gradient's learning rate is divided by its staleness in versions of the block. */
  readonly stalenessScaling: boolean;
  /** Whether updates may hold NaN and infinities; by default such an update is rejected. */
  readonly allowNonFinite: boolean;
  /**
   * Name of the fragment that the parameter belongs to, in a `diloco` job: it takes contributions instead of gradients,
   * and all of it lies on the fragment's shard.
   */
  readonly fragment?: string;
  /** How contributions are merged, if not as the job says; only with a fragment. */
  readonly merge?: Merge;
  /** What `trimmed-mean` leaves out at each end, if not as the job says; only with that merge. */
  readonly trim?: number;
  /**
   * A limit for the norms of gradients and contributions that follows the norms before. It is applied before
   * `gradientScale`. By default that of the job, if it has one.
   */
  readonly guard?: GuardSetting;
}

/**
 * The settings as an object: every entry has a default, and null means absent. The numbers of the rule may stand
 * beside its name: `{optimizer: "adam", beta1: 0.8}`.
 */
export type ParameterSettings = Partial<
  Omit<ParameterConfig, "optimizer" | "learningRate" | "guard">
> &
  Partial<RuleNumbers> & {
    readonly optimizer?: OptimizerInput;
    readonly learningRate?: LearningRateInput;
    readonly guard?: GuardInput | "off";
  };

/** Characters of a configuration as text. */
export const CONFIG_TEXT_MAX = 16_384;

/** Depth of lists and maps in a configuration as text, the same as in messages. */
export const CONFIG_DEPTH_MAX = 16;

/**
 * Tokens of a configuration as text: words, signs, spaces and line ends. The largest real one has some
 * hundred.
 */
export const CONFIG_TOKENS_MAX = 2_048;

/** Types of the library's tokens that open a level of the text. */
const COLLECTIONS: ReadonlySet<string> = new Set(["block-map", "block-seq", "flow-collection"]);

/** Options of the library. At another log level it would make the process emit warnings. */
const OPTIONS = {
  version: "1.2",
  schema: "core",
  merge: false,
  resolveKnownTags: false,
  logLevel: "error",
} as const;

let library: typeof yaml | undefined;

/**
 * Reads a text in YAML 1.2, which includes JSON: one document of maps, lists, numbers, truth values and
 * texts. Keys may be written as in Python: `learning_rate` is read as `learningRate`. Refuses aliases, custom
 * tags and repeated keys.
 * @throws BAD_CONFIG saying where the text is wrong.
 */
export function parseConfigText(text: string): unknown {
  if (text.length > CONFIG_TEXT_MAX) {
    throw badConfig("config", `text of at most ${CONFIG_TEXT_MAX} characters`, `${text.length}`);
  }
  // Loaded when first needed: few processes read texts, and each thread would pay for it.
  library ??= createRequire(import.meta.url)("yaml") as typeof yaml;
  const yamlLibrary = library;
  checkStructure(yamlLibrary, text);
  const document = readYaml(() => yamlLibrary.parseDocument(text, OPTIONS));
  // The library only warns of an unknown tag, for instance, although ignoring it changes the meaning.
  const [wrong] = [...document.errors, ...document.warnings];
  if (wrong !== undefined) throw badText(wrong);
  return withCamelKeys(readYaml(() => document.toJS({ maxAliasCount: 0 }) as unknown));
}

/** Returns the value with the keys of all its maps in camel case. @throws BAD_CONFIG for a key in two spellings. */
function withCamelKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withCamelKeys);
  if (!isPlainMap(value)) return value;
  const entries = new Map<string, unknown>();
  for (const [key, entry] of Object.entries(value)) {
    const name = key.replaceAll(/(?<=[A-Za-z0-9])_([a-z0-9])/g, (_, next: string) =>
      next.toUpperCase(),
    );
    if (entries.has(name)) throw badConfig("config", `${name} once`, "it in two spellings");
    entries.set(name, withCamelKeys(entry));
  }
  return Object.fromEntries(entries);
}

/**
 * Checks depth and size of a text before it is parsed. Parsing a deep text takes stack, and V8 ends the
 * process if the stack ends within a regular expression; the time for errors and keys grows with the square
 * of their number. The library's tokens and its table of open levels, which are looked at here, need neither.
 * @throws BAD_CONFIG naming the limit.
 */
function checkStructure({ Lexer, Parser }: typeof yaml, text: string): void {
  const parser = new Parser();
  let tokens = 0;
  for (const token of new Lexer().lex(text)) {
    if (++tokens > CONFIG_TOKENS_MAX) {
      throw badConfig("config", `text of at most ${CONFIG_TOKENS_MAX} words and signs`, "more");
    }
    // Only the table of open levels is needed here: the output is thrown away.
    Array.from(parser.next(token));
    const depth = parser.stack.filter(({ type }) => COLLECTIONS.has(type)).length;
    if (depth <= CONFIG_DEPTH_MAX) continue;
    throw badConfig("config", `lists and maps nested at most ${CONFIG_DEPTH_MAX} deep`, depth);
  }
}

/** Calls the library, which throws for aliases. */
function readYaml<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (cause) {
    throw badText(cause);
  }
}

function badText(cause: unknown): PserverError {
  const why = cause instanceof Error ? (cause.message.split("\n")[0] ?? "") : String(cause);
  return badConfig("config", "text in JSON or YAML", why);
}

/**
 * A configuration as callers give it: an object, the same as JSON or YAML text, or PaddlePaddle's serialized
 * messages; bytes alone are an `OptimizerConfig`. The same settings in any form are the same configuration.
 */
export type ParameterConfigInput = ParameterSettings | string | Uint8Array | PaddleConfigs;

const KEYS = [
  "optimizer",
  "learningRate",
  "l1",
  "l2",
  "l2Mode",
  "clipNorm",
  "clipValue",
  "gradientScale",
  "sparse",
  "static",
  "stalenessScaling",
  "allowNonFinite",
  "fragment",
  "merge",
  "trim",
  "guard",
] as const satisfies readonly (keyof ParameterConfig)[];

/** The weight decay of AdamW's paper and of its implementations. */
const ADAMW_L2 = 0.01;

/**
 * Completes and checks a configuration from a caller or a message, in any form of {@link
 * ParameterConfigInput}. A normalized one is returned unchanged, with its entries in the same order.
 * @throws BAD_CONFIG naming the entry that is unknown, out of its range or against another one.
 */
export function toConfig(input: unknown = {}): ParameterConfig {
  if (typeof input === "string") return fromSettings(parseConfigText(input));
  if (input instanceof Uint8Array) return fromSettings(fromPaddle({ optimizerConfig: input }));
  if (typeof input === "object" && input !== null && isPaddleConfigs(input)) {
    return fromSettings(fromPaddle(input));
  }
  return fromSettings(input);
}

function fromSettings(input: unknown): ParameterConfig {
  const settings = new Settings(input, "config", [...KEYS, ...RULE_NUMBERS]);
  const optimizer = toOptimizer(ruleOf(settings));
  const rate = settings.get("learningRate");
  const isAdamw = optimizer.name === "adamw";
  const clipNorm = settings.optionalNumber("clipNorm", POSITIVE);
  const clipValue = settings.optionalNumber("clipValue", POSITIVE);
  const guard = settings.get("guard");
  const config: ParameterConfig = {
    optimizer,
    ...(rate === undefined ? {} : { learningRate: toLearningRate(rate) }),
    l1: settings.number("l1", NOT_NEGATIVE, 0),
    l2: settings.number("l2", NOT_NEGATIVE, isAdamw ? ADAMW_L2 : 0),
    l2Mode: settings.word("l2Mode", ["coupled", "decoupled"], isAdamw ? "decoupled" : "coupled"),
    ...(clipNorm === undefined ? {} : { clipNorm }),
    ...(clipValue === undefined ? {} : { clipValue }),
    gradientScale: settings.number("gradientScale", FINITE, 1),
    sparse: settings.flag("sparse"),
    static: settings.flag("static"),
    stalenessScaling: settings.flag("stalenessScaling"),
    allowNonFinite: settings.flag("allowNonFinite"),
    ...fragmentOf(settings),
    ...(guard === undefined ? {} : { guard: toGuardSetting(guard) }),
  };
  if (config.guard !== undefined && config.guard !== "off") checkGuarded(config);
  if (config.fragment !== undefined) checkInFragment(config);
  if (optimizer.name === "none") checkNone(config);
  if (optimizer.name === "ftrl") checkFtrl(config);
  return config;
}

/** Reads which fragment a parameter belongs to, and how its contributions are merged. */
function fragmentOf(settings: Settings): Pick<ParameterConfig, "fragment" | "merge" | "trim"> {
  const fragment = settings.get("fragment");
  const merge = settings.get("merge") === undefined ? undefined : settings.word("merge", MERGES);
  const trim = settings.optionalNumber("trim", TRIM);
  if (trim !== undefined && merge !== "trimmed-mean") {
    throw settings.refusal("trim", "none unless merge is trimmed-mean", trim);
  }
  if (fragment === undefined) {
    if (merge === undefined) return {};
    throw settings.refusal("merge", "none without a fragment", merge);
  }
  if (!isFragmentName(fragment)) {
    const expected = `a name of 1 to ${FRAGMENT_NAME_LENGTH_MAX} characters`;
    throw settings.refusal("fragment", expected, fragment);
  }
  return {
    fragment,
    ...(merge === undefined ? {} : { merge }),
    ...(trim === undefined ? {} : { trim }),
  };
}

/** Returns whether a value can be the name of a fragment. */
export function isFragmentName(value: unknown): value is string {
  if (typeof value !== "string" || !value.isWellFormed()) return false;
  return value.length > 0 && value.length <= FRAGMENT_NAME_LENGTH_MAX;
}

/**
 * Checks what a parameter in a fragment cannot have: contributions are of whole tensors, a merged displacement has no
 * norm that a trainer could have told, and staleness is a matter of the fragment.
 */
function checkInFragment({
  sparse,
  static: isStatic,
  clipNorm,
  stalenessScaling,
}: ParameterConfig): void {
  const expected = "none for a parameter in a fragment";
  if (sparse) throw badConfig("config.sparse", expected, sparse);
  if (isStatic) throw badConfig("config.static", expected, isStatic);
  if (clipNorm !== undefined) throw badConfig("config.clipNorm", expected, clipNorm);
  if (stalenessScaling) throw badConfig("config.stalenessScaling", expected, stalenessScaling);
}

/** Checks what a guarded parameter cannot have: gradients that it takes whatever they are, or none. */
function checkGuarded({ static: isStatic, allowNonFinite }: ParameterConfig): void {
  if (isStatic) throw badConfig("config.guard", "none for a static parameter", "one");
  if (allowNonFinite) throw badConfig("config.guard", "none with allowNonFinite", "one");
}

/** Joins the rule with its numbers that stand beside it. */
function ruleOf(settings: Settings): unknown {
  const rule = settings.get("optimizer") ?? "sgd";
  const beside = RULE_NUMBERS.filter((key) => settings.get(key) !== undefined);
  if (beside.length === 0) return rule;
  const numbers = Object.fromEntries(beside.map((key) => [key, settings.get(key)]));
  if (!isPlainMap(rule)) return { name: rule, ...numbers };
  const twice = beside.find((key) => Object.hasOwn(rule, key));
  if (twice !== undefined) throw settings.refusal(twice, "it once", "it in optimizer, too");
  return { ...rule, ...numbers };
}

/** Checks that `none` has no learning rate or penalty: it adds what it is sent, unchanged. */
function checkNone({ learningRate, l1, l2, stalenessScaling }: ParameterConfig): void {
  const expected = "none for optimizer none";
  if (learningRate !== undefined) throw badConfig("config.learningRate", expected, learningRate);
  if (l1 !== 0) throw badConfig("config.l1", expected, l1);
  if (l2 !== 0) throw badConfig("config.l2", expected, l2);
  if (stalenessScaling) throw badConfig("config.stalenessScaling", expected, stalenessScaling);
}

/** Checks what FTRL needs: it divides by its learning rate, and its rule includes L2. */
function checkFtrl({ learningRate, l2Mode }: ParameterConfig): void {
  if (learningRate !== undefined && lowestRate(learningRate) <= 0) {
    const lowest = lowestRate(learningRate);
    throw badConfig("config.learningRate", "rates above 0 for optimizer ftrl", lowest);
  }
  if (l2Mode === "decoupled") {
    throw badConfig("config.l2Mode", "coupled for optimizer ftrl", l2Mode);
  }
}

/** Number of different configurations that {@link toSharedConfig} remembers. */
const RECENT_MAX = 8;

interface Recent {
  readonly input: object;
  readonly config: ParameterConfig;
}

/** The last configurations, the most recent first. */
const recent: Recent[] = [];

/**
 * Does as {@link toConfig} does, faster: the parameters of a model have few configurations, so most inputs
 * equal a recent one, whose configuration is returned again.
 * @throws BAD_CONFIG as {@link toConfig} does.
 */
export function toSharedConfig(input: unknown = {}): ParameterConfig {
  // Texts and bytes take longer to compare than objects.
  if (typeof input !== "object" || input === null || ArrayBuffer.isView(input)) {
    return toConfig(input);
  }
  if (isPaddleConfigs(input)) return toConfig(input);
  const at = recent.findIndex((known) => isDeepStrictEqual(known.input, input));
  const entry = recent[at] ?? read(input);
  if (at === 0) return entry.config;
  if (at > 0) recent.splice(at, 1);
  recent.unshift(entry);
  if (recent.length > RECENT_MAX) recent.pop();
  return entry.config;
}

/** Reads a configuration and keeps a copy of the input, which its owner may change later. */
function read(input: object): Recent {
  const config = toConfig(input);
  return { input: structuredClone(input), config };
}

/** Returns `rate`. @throws BAD_VALUE unless it is finite. */
export function checkLearningRate(rate: number): number {
  return checkFinite(rate, "learningRate");
}

/** Returns `value`. @throws BAD_VALUE unless it is a finite number. */
export function checkFinite(value: number, what: string): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new PserverError(
    "BAD_VALUE",
    `${what}: expected a finite number; received ${String(value)}`,
    {
      expected: "a finite number",
      received: String(value),
    },
  );
}

/**
 * Checks that elements of this type can be trained with gradients: floats by every optimizer, integers
 * only by `none`, which adds and wraps around as numpy and C do.
 * @throws UNSUPPORTED for integers with another optimizer, which take `set` and `alpha/beta` only, and for bool.
 */
export function checkTakesGradients(
  dtype: Dtype,
  config: Pick<ParameterConfig, "optimizer">,
  parameter: string,
): void {
  checkTakesPushes(dtype, parameter);
  const { name } = config.optimizer;
  if (DTYPES[dtype].float || name === "none") return;
  const expected = FLOAT_DTYPES;
  throw new PserverError(
    "UNSUPPORTED",
    `${parameter}: gradients are for ${expected.join(", ")}, or for optimizer none; ` +
      `the parameter is ${dtype} with ${name}`,
    { parameter, expected, received: dtype, optimizer: name },
  );
}

const FLOAT_DTYPES = (Object.keys(DTYPES) as Dtype[]).filter((dtype) => DTYPES[dtype].float);

/**
 * Checks that elements of this type can be computed with.
 * @throws UNSUPPORTED for bool, which can only be set.
 */
export function checkTakesPushes(dtype: Dtype, parameter: string): void {
  if (dtype !== "bool") return;
  throw new PserverError(
    "UNSUPPORTED",
    `${parameter}: expected numbers to compute with; the parameter is bool, which is only set`,
    { parameter, expected: "numbers", received: dtype },
  );
}
