import { lowestRate, toLearningRate } from "./learning-rate.ts";
import { toOptimizer } from "./optimizer.ts";
import { fromPaddle, isPaddleConfigs, type PaddleConfigs } from "./paddle/from-paddle.ts";
import type { ParameterConfig, ParameterSettings } from "./parameter-config.ts";
import { badConfig, FINITE, NOT_NEGATIVE, POSITIVE, Settings } from "./settings.ts";
import { parseConfigText } from "./text.ts";

/**
 * What callers give: an object, the same as JSON or YAML text, or PaddlePaddle's serialized messages,
 * bytes alone being an `OptimizerConfig`. The same settings in any form are the same configuration.
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
] as const satisfies readonly (keyof ParameterConfig)[];

/** The weight decay of AdamW's paper and of its implementations. */
const ADAMW_L2 = 0.01;

/**
 * A whole configuration from what a caller or a message gave, in any form of
 * {@link ParameterConfigInput}; a normalized one comes out as it is, entries in the same order.
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
  const settings = new Settings(input, "config", KEYS);
  const optimizer = toOptimizer(settings.get("optimizer") ?? "sgd");
  const rate = settings.get("learningRate");
  const isAdamw = optimizer.name === "adamw";
  const clipNorm = settings.optionalNumber("clipNorm", POSITIVE);
  const clipValue = settings.optionalNumber("clipValue", POSITIVE);
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
  };
  if (optimizer.name === "none") checkNone(config);
  if (optimizer.name === "ftrl") checkFtrl(config);
  return config;
}

/** `none` adds what it is sent: there is nothing for a learning rate or a penalty to act on. */
function checkNone({ learningRate, l1, l2, stalenessScaling }: ParameterConfig): void {
  const expected = "none for optimizer none";
  if (learningRate !== undefined) throw badConfig("config.learningRate", expected, learningRate);
  if (l1 !== 0) throw badConfig("config.l1", expected, l1);
  if (l2 !== 0) throw badConfig("config.l2", expected, l2);
  if (stalenessScaling) throw badConfig("config.stalenessScaling", expected, stalenessScaling);
}

/** FTRL divides by its learning rate, and its rule has a place of its own for L2. */
function checkFtrl({ learningRate, l2Mode }: ParameterConfig): void {
  if (learningRate !== undefined && lowestRate(learningRate) <= 0) {
    const lowest = lowestRate(learningRate);
    throw badConfig("config.learningRate", "rates above 0 for optimizer ftrl", lowest);
  }
  if (l2Mode === "decoupled") {
    throw badConfig("config.l2Mode", "coupled for optimizer ftrl", l2Mode);
  }
}
