import type { ParameterConfig } from "../../protocol/config/index.ts";
import type { Kernels } from "../kernel/kernels.ts";
import { AdamRule } from "./adam.ts";
import { AdadeltaRule, AdagradRule, RmspropRule } from "./adaptive.ts";
import { FtrlRule } from "./ftrl.ts";
import { MomentumRule } from "./momentum.ts";
import { PenalizedRule } from "./penalized.ts";
import { NoneRule, SgdRule } from "./plain.ts";
import type { FloatDtype, UpdateRule } from "./rule.ts";

export type { CountedRows, FloatDtype, UpdateRate, UpdateRule } from "./rule.ts";

/** Slots beside the values, each of the values' dtype and size, zero at first. */
const SLOTS: Readonly<Record<ParameterConfig["optimizer"]["name"], number>> = {
  none: 0,
  sgd: 0,
  momentum: 1,
  nesterov: 1,
  adagrad: 1,
  rmsprop: 1,
  adadelta: 2,
  adam: 2,
  adamw: 2,
  amsgrad: 3,
  ftrl: 2,
};

/**
 * Bytes of a gradient that a rule gets at a time: the whole scratch of a shard's memory.
 * Measured with chunks of 4 to 256 KiB that are staged there, on parameters of 1 and 64 MiB, Adam,
 * AMSGrad and SGD were fastest with the largest; with L1 and L2 as well, the sizes differed little.
 */
export const UPDATE_CHUNK_BYTES: number = 256 * 1024;

/** Number of slots of a block with this configuration. */
export function slotCount(config: ParameterConfig): number {
  return SLOTS[config.optimizer.name];
}

/**
 * The rule of a configuration with its L1 and L2, for blocks in the memory of `kernels`. It holds the
 * coefficients of one update and no state of a block.
 */
export function updateRule(
  kernels: Kernels,
  config: ParameterConfig,
  dtype: FloatDtype,
): UpdateRule {
  const { optimizer, l1, l2 } = config;
  if (optimizer.name === "none") return new NoneRule(kernels, dtype);
  if (optimizer.name === "ftrl") return new FtrlRule(kernels, dtype, optimizer.beta, l1, l2);
  // For plain descent lr·(g + l2·p) and lr·g + lr·l2·p are the same.
  const isCoupled = config.l2Mode === "coupled" || optimizer.name === "sgd";
  const rule = ruleOf(kernels, optimizer, dtype, isCoupled ? 0 : l2);
  const coupled = isCoupled ? l2 : 0;
  return coupled === 0 && l1 === 0 ? rule : new PenalizedRule(kernels, dtype, rule, l1, coupled);
}

function ruleOf(
  kernels: Kernels,
  optimizer: Exclude<ParameterConfig["optimizer"], { name: "none" | "ftrl" }>,
  dtype: FloatDtype,
  l2: number,
): UpdateRule {
  switch (optimizer.name) {
    case "sgd":
      return new SgdRule(kernels, dtype);
    case "momentum":
    case "nesterov":
      return new MomentumRule(kernels, dtype, optimizer.name, optimizer.momentum, l2);
    case "adagrad":
      return new AdagradRule(kernels, dtype, optimizer.epsilon, l2);
    case "rmsprop":
      return new RmspropRule(kernels, dtype, optimizer.rho, optimizer.epsilon, l2);
    case "adadelta":
      return new AdadeltaRule(kernels, dtype, optimizer.rho, optimizer.epsilon, l2);
    case "adam":
    case "adamw":
    case "amsgrad":
      return new AdamRule(kernels, dtype, optimizer, l2);
  }
}
