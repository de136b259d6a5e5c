// Proves what PaddlePaddle's messages mean as a configuration, which of the two says what, and that
// fields which contradict each other are refused. docs/reference/compatibility.md has the reasons.
import { describe, expect, test } from "vitest";
import { toConfig } from "../../../src/protocol/index.ts";
import { refusalOf } from "../refusal.ts";
import { optimizerBytes, parameterBytes } from "./paddle-bytes.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The defaults there: SGD with learning rate 1. */
const ONE = { learningRate: 1 };

describe("an OptimizerConfig", () => {
  test.each<[string, Fields, Fields]>([
    ["empty", {}, ONE],
    ["SGD without coefficients", { optimizer: 1 }, ONE],
    ["SGD without momentum", { sgd: { momentum: 0, nesterov: true } }, ONE],
    ["SGD", { sgd: { momentum: 0.5 } }, { ...ONE, optimizer: { name: "momentum", momentum: 0.5 } }],
    [
      "SGD by Nesterov",
      { optimizer: 1, sgd: { momentum: 0.5, nesterov: true } },
      { ...ONE, optimizer: { name: "nesterov", momentum: 0.5 } },
    ],
    ["SGD's decay", { sgd: { decay: 0.5 } }, { ...ONE, l2: 0.5, l2Mode: "coupled" }],
    ["Adadelta", { optimizer: 2 }, { ...ONE, optimizer: "adadelta" }],
    [
      "Adadelta's coefficients",
      { optimizer: 2, adadelta: { rho: 0.5, epsilon: 0.25, decay: 0.1 } },
      {
        ...ONE,
        optimizer: { name: "adadelta", rho: 0.5, epsilon: 0.25 },
        l2: 0.1,
        l2Mode: "decoupled",
      },
    ],
    ["Adagrad", { optimizer: 3, adagrad: {} }, { ...ONE, optimizer: "adagrad" }],
    [
      "Adagrad's coefficients",
      { optimizer: 3, adagrad: { epsilon: 0.25, decay: 0.1 } },
      { ...ONE, optimizer: { name: "adagrad", epsilon: 0.25 }, l2: 0.1, l2Mode: "decoupled" },
    ],
    ["Adam, unset", { optimizer: 4, adam: {} }, { ...ONE, optimizer: "adam" }],
    [
      "Adam's coefficients",
      { optimizer: 4, adam: { beta_1: 0.5, beta_2: 0, epsilon: 0.25, decay: 0.1 } },
      {
        ...ONE,
        optimizer: { name: "adam", beta1: 0.5, beta2: 0, epsilon: 0.25 },
        l2: 0.1,
        l2Mode: "decoupled",
      },
    ],
    [
      "coefficients of several",
      { optimizer: 4, adam: { beta_1: 0.5 }, sgd: { momentum: 0.9 } },
      { ...ONE, optimizer: { name: "adam", beta1: 0.5 } },
    ],
    ["a constant rate", { lr_policy: 0, const_lr: { learning_rate: 0.5 } }, { learningRate: 0.5 }],
    ["a constant rate, unset", { const_lr: {} }, ONE],
    [
      "a linear rate",
      { lr_policy: 1, linear_lr: { learning_rate: 2, lr_decay_a: 0.25, lr_decay_b: 0.5 } },
      { learningRate: { schedule: "linear", rate: 2, a: 0.25, b: 0.5 } },
    ],
    [
      "a linear rate, unset",
      { lr_policy: 1, linear_lr: {}, const_lr: { learning_rate: 3 } },
      { learningRate: { schedule: "linear", rate: 1, a: 0, b: 0 } },
    ],
    ["clips", { clip_norm: 2, clip_value: 3 }, { ...ONE, clipNorm: 2, clipValue: 3 }],
    ["clips of zero", { clip_norm: 0, clip_value: 0 }, ONE],
  ])("says %s", (_what, fields, settings) => {
    const config = toConfig(settings);
    expect(toConfig(optimizerBytes(fields))).toStrictEqual(config);
    expect(toConfig({ optimizerConfig: optimizerBytes(fields) })).toStrictEqual(config);
  });

  test.each<[string, Fields, RegExp]>([
    ["Adam with SGD's coefficients", { optimizer: 4, sgd: {} }, /adam.*sgd/],
    ["no optimizer with Adam's coefficients", { adam: { beta_1: 0.9 } }, /sgd.*adam/],
    ["Adagrad with Adadelta's", { optimizer: 3, adadelta: { rho: 0.9 } }, /adagrad.*adadelta/],
    ["Linear without linear_lr", { lr_policy: 1 }, /linear_lr/],
    ["Linear with const_lr", { lr_policy: 1, const_lr: { learning_rate: 1 } }, /linear_lr/],
    ["Const with linear_lr", { linear_lr: { learning_rate: 1 } }, /const_lr/],
    ["a momentum of 1", { sgd: { momentum: 1 } }, /momentum/],
    ["a momentum that is NaN", { sgd: { momentum: Number.NaN } }, /momentum/],
    ["an epsilon of 0", { optimizer: 4, adam: { epsilon: 0 } }, /epsilon/],
    ["a beta of 1", { optimizer: 4, adam: { beta_1: 1 } }, /beta1/],
    ["a negative decay", { sgd: { decay: -1 } }, /l2/],
    ["a decay that is NaN", { sgd: { decay: Number.NaN } }, /l2/],
    ["a rate that is infinite", { const_lr: { learning_rate: 1 / 0 } }, /learningRate/],
    ["a rate that is NaN", { const_lr: { learning_rate: Number.NaN } }, /learningRate/],
    ["a negative clip", { clip_norm: -1 }, /clipNorm/],
    ["a clip that is NaN", { clip_value: Number.NaN }, /clipValue/],
  ])("is refused with %s", (_what, fields, message) => {
    const error = refusalOf(() => toConfig(optimizerBytes(fields)));
    expect(error.code).toBe("BAD_CONFIG");
    expect(error.message).toMatch(message);
  });
});

describe("a ParameterConfig", () => {
  test.each<[string, Fields, Fields]>([
    ["nothing", {}, ONE],
    ["a factor of the rate", { learning_rate: 0.25 }, { learningRate: 0.25 }],
    ["a factor of zero", { learning_rate: 0 }, { learningRate: 0 }],
    ["momentum", { momentum: 0.5 }, { ...ONE, optimizer: { name: "momentum", momentum: 0.5 } }],
    ["L2", { decay_rate: 0.5 }, { ...ONE, l2: 0.5 }],
    ["L1", { decay_rate_l1: 0.5, decay_rate: 0 }, { ...ONE, l1: 0.5 }],
    ["a clip", { gradient_clipping_threshold: 2 }, { ...ONE, clipValue: 2 }],
    ["static", { is_static: true }, { ...ONE, static: true }],
    ["sparse updates", { sparse_update: true }, { ...ONE, sparse: true }],
    ["sparse remote updates", { sparse_remote_update: true }, { ...ONE, sparse: true }],
    ["sparse values, which are no sparse updates", { is_sparse: true, format: "csr" }, ONE],
    [
      "fields of initialization and layout, which are not about updates",
      {
        dims: [7],
        initial_mean: 3,
        initial_std: 0,
        device: 2,
        is_shared: true,
        need_compact: true,
      },
      ONE,
    ],
  ])("alone says %s", (_what, fields, settings) => {
    expect(toConfig({ parameterConfig: parameterBytes(fields) })).toStrictEqual(toConfig(settings));
  });

  const both = (optimizer: Fields, parameter: Fields) => () =>
    toConfig({
      optimizerConfig: optimizerBytes(optimizer),
      parameterConfig: parameterBytes(parameter),
    });

  test.each<[string, Fields, Fields, Fields]>([
    [
      "multiplies a constant rate",
      { const_lr: { learning_rate: 0.5 } },
      { learning_rate: 4 },
      { learningRate: 2 },
    ],
    [
      "multiplies all of a linear rate",
      { lr_policy: 1, linear_lr: { learning_rate: 2, lr_decay_a: 0.25, lr_decay_b: 0.5 } },
      { learning_rate: 4 },
      { learningRate: { schedule: "linear", rate: 8, a: 1, b: 2 } },
    ],
    [
      "gives SGD its momentum, by Nesterov's rule where that is asked for",
      { sgd: { nesterov: true } },
      { momentum: 0.5 },
      { ...ONE, optimizer: { name: "nesterov", momentum: 0.5 } },
    ],
    [
      "may repeat the momentum",
      { sgd: { momentum: 0.5 } },
      { momentum: 0.5 },
      { ...ONE, optimizer: { name: "momentum", momentum: 0.5 } },
    ],
    [
      "leaves a momentum that it does not set",
      { sgd: { momentum: 0.5 } },
      { momentum: 0 },
      { ...ONE, optimizer: { name: "momentum", momentum: 0.5 } },
    ],
    [
      "has no momentum for other optimizers",
      { optimizer: 4 },
      { momentum: 0.5 },
      { ...ONE, optimizer: "adam" },
    ],
    [
      "gives a decay, past the rule of Adam",
      { optimizer: 4 },
      { decay_rate: 0.5 },
      { ...ONE, optimizer: "adam", l2: 0.5, l2Mode: "decoupled" },
    ],
    [
      "gives L1 beside a decay",
      { sgd: { decay: 1 } },
      { decay_rate_l1: 2 },
      { ...ONE, l2: 1, l1: 2 },
    ],
    [
      "clips before clip_value",
      { clip_value: 3, clip_norm: 4 },
      { gradient_clipping_threshold: 2 },
      { ...ONE, clipValue: 2, clipNorm: 4 },
    ],
    [
      "leaves clip_value if its threshold is zero",
      { clip_value: 3 },
      { gradient_clipping_threshold: 0 },
      { ...ONE, clipValue: 3 },
    ],
  ])("%s", (_what, optimizer, parameter, settings) => {
    expect(both(optimizer, parameter)()).toStrictEqual(toConfig(settings));
  });

  test.each<[string, Fields, Fields, RegExp]>([
    ["another momentum", { sgd: { momentum: 0.5 } }, { momentum: 0.9 }, /momentum/],
    ["another decay", { sgd: { decay: 0.5 } }, { decay_rate: 0.1 }, /decay_rate/],
    ["both decays", {}, { decay_rate: 0.5, decay_rate_l1: 0.5 }, /decay_rate/],
    ["a decay that is NaN", {}, { decay_rate: Number.NaN }, /l2/],
    ["a negative L1", {}, { decay_rate_l1: -1 }, /l1/],
    ["a negative factor", {}, { learning_rate: -1 }, /learning_rate/],
    ["a factor that is NaN", {}, { learning_rate: Number.NaN }, /learning_rate/],
    [
      "a product beyond all numbers",
      { const_lr: { learning_rate: 1e300 } },
      { learning_rate: 1e300 },
      /rate/,
    ],
    ["a negative threshold", {}, { gradient_clipping_threshold: -1 }, /clipValue/],
  ])("is refused with %s", (_what, optimizer, parameter, message) => {
    const error = refusalOf(both(optimizer, parameter));
    expect(error.code).toBe("BAD_CONFIG");
    expect(error.message).toMatch(message);
  });

  test.each([
    { optimizerConfig: "" },
    { parameterConfig: [1] },
    { optimizerConfig: new Uint8Array(0), learningRate: 1 },
    { optimizerConfig: new Uint16Array(0) },
  ])("and the other message are bytes and alone: %j", (input) => {
    expect(refusalOf(() => toConfig(input)).code).toBe("BAD_CONFIG");
  });
});
