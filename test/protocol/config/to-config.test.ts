// Proves what a parameter's configuration may say as an object: its defaults, that the normalized form
// is stable and can be sent, and that every other entry or value is refused with an error that names it.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  OPTIMIZERS,
  packValue,
  STEP_ROWS_MAX,
  toConfig,
  unpackValue,
} from "../../../src/protocol/index.ts";
import { codeOf, refusalOf } from "../refusal.ts";
import { anySettings } from "./arbitrary-settings.ts";

const DEFAULTS = {
  optimizer: { name: "sgd" },
  l1: 0,
  l2: 0,
  l2Mode: "coupled",
  gradientScale: 1,
  sparse: false,
  static: false,
  stalenessScaling: false,
  allowNonFinite: false,
};

describe("a configuration", () => {
  test("has defaults, also for null", () => {
    expect(toConfig()).toStrictEqual(DEFAULTS);
    expect(toConfig({})).toStrictEqual(DEFAULTS);
    const keys = ["learningRate", "clipNorm", "clipValue", ...Object.keys(DEFAULTS)];
    for (const nothing of [null, undefined]) {
      const input = Object.fromEntries(keys.map((key) => [key, nothing]));
      expect(toConfig(input)).toStrictEqual(DEFAULTS);
    }
  });

  test("may have the numbers of the rule beside its name", () => {
    const nested = toConfig({ optimizer: { name: "adam", beta1: 0.8, epsilon: 1e-6 } });
    expect(toConfig({ optimizer: "adam", beta1: 0.8, epsilon: 1e-6 })).toStrictEqual(nested);
    expect(toConfig({ optimizer: { name: "adam", beta1: 0.8 }, epsilon: 1e-6 })).toStrictEqual(
      nested,
    );
    expect(toConfig({ optimizer: "nesterov", momentum: 0.5 }).optimizer).toStrictEqual({
      name: "nesterov",
      momentum: 0.5,
    });
  });

  test.each([
    [{ optimizer: "adam", momentum: 0.5 }, /optimizer adam.*received "momentum"/],
    [{ momentum: 0.5 }, /optimizer sgd.*received "momentum"/],
    [{ optimizer: "adam", beta1: 2 }, /optimizer adam\.beta1: expected a number/],
    [{ optimizer: { name: "adam", beta1: 0.8 }, beta1: 0.8 }, /config\.beta1: expected it once/],
  ])("refuses %j", (input, message) => {
    expect(codeOf(() => toConfig(input))).toBe("BAD_CONFIG");
    expect(() => toConfig(input)).toThrow(message);
  });

  test.each([
    ["lr", "learningRate"],
    ["learning_rate", "learningRate"],
    ["learnigRate", "learningRate"],
    ["optimiser", "optimizer"],
    ["weight_decay", "l2"],
    ["betas", "beta1"],
    ["eps", "epsilon"],
    ["clip_norm", "clipNorm"],
    ["ClipNorm", "clipNorm"],
  ])("asks for %s whether %s is meant", (given, meant) => {
    expect(() => toConfig({ [given]: 0.1 })).toThrow(
      new RegExp(`received "${given}": did you mean ${meant}\\?$`),
    );
  });

  test.each(["banana", "x", "epochs"])("asks nothing for %s", (given) => {
    expect(() => toConfig({ [given]: 0.1 })).toThrow(new RegExp(`received "${given}"$`));
  });

  test("asks in maps within it, too", () => {
    const rate = { schedule: "cosine", rate: 1, step: 3 };
    expect(() => toConfig({ learningRate: rate })).toThrow(/did you mean steps\?$/);
    expect(() => toConfig({ optimizer: { name: "adam", beta_1: 0.5 } })).toThrow(
      /did you mean beta1\?$/,
    );
  });

  test("may give a constant rate as a number", () => {
    expect(toConfig({ learningRate: -0.25 }).learningRate).toStrictEqual({
      schedule: "constant",
      rate: -0.25,
    });
    expect(toConfig({ learningRate: { rate: 2 } }).learningRate).toStrictEqual({
      schedule: "constant",
      rate: 2,
    });
  });

  test("of AdamW decays by default, of the others not", () => {
    expect(toConfig({ optimizer: "adamw" })).toMatchObject({ l2: 0.01, l2Mode: "decoupled" });
    for (const optimizer of OPTIMIZERS.filter((name) => name !== "adamw")) {
      expect(toConfig({ optimizer })).toMatchObject({ l2: 0, l2Mode: "coupled" });
    }
  });

  test.each([
    ["none", {}],
    ["sgd", {}],
    ["momentum", { momentum: 0.9 }],
    ["nesterov", { momentum: 0.9 }],
    ["adagrad", { epsilon: 1e-5 }],
    ["adadelta", { rho: 0.9, epsilon: 1e-5 }],
    ["rmsprop", { rho: 0.9, epsilon: 1e-8 }],
    ["adam", { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }],
    ["adamw", { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }],
    ["amsgrad", { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }],
    ["ftrl", { beta: 1 }],
  ])("of %s has the published coefficients", (name, coefficients) => {
    expect(toConfig({ optimizer: name }).optimizer).toStrictEqual({ name, ...coefficients });
    expect(toConfig({ optimizer: { name } }).optimizer).toStrictEqual({ name, ...coefficients });
  });

  test("keeps the coefficients it is given", () => {
    const optimizer = { name: "adam", beta1: 0.5, beta2: 0, epsilon: 1 };
    expect(toConfig({ optimizer }).optimizer).toStrictEqual(optimizer);
  });

  test("has defaults in its schedules", () => {
    const rateOf = (learningRate: unknown) => toConfig({ learningRate }).learningRate;
    expect(rateOf({ schedule: "linear", rate: 1, a: 0.5 })).toStrictEqual({
      schedule: "linear",
      rate: 1,
      a: 0.5,
      b: 0,
    });
    expect(rateOf({ schedule: "cosine", rate: 1, steps: 10 })).toStrictEqual({
      schedule: "cosine",
      rate: 1,
      min: 0,
      steps: 10,
    });
    expect(rateOf({ rate: 1, warmup: { steps: 5 } })).toStrictEqual({
      schedule: "constant",
      rate: 1,
      warmup: { steps: 5, from: 0 },
    });
  });
});

describe("the normalized form", () => {
  test("comes out as it went in, also through a message", () => {
    fc.assert(
      fc.property(anySettings, (settings) => {
        const config = toConfig(settings);
        expect(JSON.stringify(toConfig(config))).toBe(JSON.stringify(config));
        const sent = unpackValue(packValue(config)) as object;
        expect(sent).toStrictEqual(config);
        expect(toConfig(sent)).toStrictEqual(config);
      }),
    );
  });

  test("has no negative zero", () => {
    const zeros = toConfig({ l1: -0, l2: -0, gradientScale: -0, learningRate: -0 });
    expect(zeros).toStrictEqual({
      ...DEFAULTS,
      gradientScale: 0,
      learningRate: { schedule: "constant", rate: 0 },
    });
  });

  test("does not depend on the order of entries", () => {
    const one = { clipNorm: 1, optimizer: { epsilon: 1e-3, name: "adam" }, l1: 2 };
    const other = { l1: 2, optimizer: { name: "adam", epsilon: 1e-3 }, clipNorm: 1 };
    expect(JSON.stringify(toConfig(one))).toBe(JSON.stringify(toConfig(other)));
  });

  test("fits into the header of a record at its longest", () => {
    const table = Array.from({ length: STEP_ROWS_MAX }, (_, i) => [i * 2 ** 40, 0.1 + i]);
    const config = toConfig({
      optimizer: { name: "adamw", beta1: 0.1, beta2: 0.2, epsilon: 0.3 },
      learningRate: { schedule: "step", table, warmup: { steps: 2 ** 50, from: 0.1 } },
      l1: 0.1,
      l2: 0.1,
      clipNorm: 0.1,
      clipValue: 0.1,
      gradientScale: 0.1,
    });
    expect(packValue(config).length).toBeLessThan(1000);
  });
});

const STEP = { schedule: "step", table: [[0, 1]] };

describe("a configuration is refused", () => {
  test.each<[string, unknown]>([
    ["optimizer", "lbfgs"],
    ["optimizer", "Adam"],
    ["optimizer", 7],
    ["optimizer", {}],
    ["optimizer", { name: "sgd", momentum: 0.9 }],
    ["optimizer", { name: "adam", beta: 1 }],
    ["momentum", 0.9],
    ["toString", 1],
    ["__proto__x", 1],
    ["learningRate", "0.1"],
    ["learningRate", Number.NaN],
    ["learningRate", Number.POSITIVE_INFINITY],
    ["learningRate", true],
    ["learningRate", {}],
    ["learningRate", { schedule: "cubic", rate: 1 }],
    ["learningRate", { schedule: "constant" }],
    ["learningRate", { schedule: "constant", rate: 1, a: 1 }],
    ["learningRate", { schedule: "linear", rate: 1 }],
    ["learningRate", { schedule: "polynomial", rate: 1, a: -1, b: 1 }],
    ["learningRate", { schedule: "polynomial", rate: 1, a: 1 }],
    ["learningRate", { schedule: "exponential", rate: 1, a: 0, b: 1 }],
    ["learningRate", { schedule: "discrete-exponential", rate: 1, a: 1, b: 0 }],
    ["learningRate", { schedule: "cosine", rate: 1 }],
    ["learningRate", { schedule: "cosine", rate: 1, steps: 0 }],
    ["learningRate", { ...STEP, rate: 1 }],
    ["learningRate", { schedule: "step" }],
    ["learningRate", { schedule: "step", table: [] }],
    ["learningRate", { schedule: "step", table: [[1, 1]] }],
    ["learningRate", { schedule: "step", table: [[0, 1, 2]] }],
    ["learningRate", { schedule: "step", table: [[0, Number.NaN]] }],
    ["learningRate", { schedule: "step", table: [0, 1] }],
    [
      "learningRate",
      {
        schedule: "step",
        table: [
          [0, 1],
          [5, 1],
          [5, 2],
        ],
      },
    ],
    ["learningRate", { schedule: "step", table: new Array(STEP_ROWS_MAX + 1).fill([0, 1]) }],
    ["learningRate", { rate: 1, warmup: 10 }],
    ["learningRate", { rate: 1, warmup: { steps: 0 } }],
    ["learningRate", { rate: 1, warmup: { steps: 1, from: 1.5 } }],
    ["l1", -1],
    ["l1", "1"],
    ["l2", Number.POSITIVE_INFINITY],
    ["l2Mode", "none"],
    ["clipNorm", 0],
    ["clipNorm", -1],
    ["clipValue", 0],
    ["gradientScale", Number.NaN],
    ["sparse", 1],
    ["static", "yes"],
    ["stalenessScaling", 0],
    ["allowNonFinite", 1],
  ])("with %s %j", (key, value) => {
    const error = refusalOf(() => toConfig({ [key]: value }));
    expect(error.code).toBe("BAD_CONFIG");
    expect(error.message).toContain(key);
    expect(error.details).toHaveProperty("expected");
    expect(error.details).toHaveProperty("received");
  });

  test.each([
    ["momentum", "momentum", [-0.1, 1, Number.NaN, "0.9"]],
    ["adadelta", "rho", [-1, 1]],
    ["adam", "beta1", [1, 2]],
    ["adam", "beta2", [1, -0.5]],
    ["adam", "epsilon", [0, -1e-8, 1e-40, Number.POSITIVE_INFINITY]],
    ["ftrl", "beta", [-1]],
  ])("with %s and a wrong %s", (name, key, values) => {
    for (const value of values) {
      const error = refusalOf(() => toConfig({ optimizer: { name, [key]: value } }));
      expect(error.code).toBe("BAD_CONFIG");
      expect(error.message).toContain(key);
    }
  });

  test.each([
    { learningRate: 0 },
    { learningRate: 0.1 },
    { l1: 1 },
    { l2: 1 },
    { stalenessScaling: true },
  ])("if it gives optimizer none %j", (settings) => {
    expect(codeOf(() => toConfig({ optimizer: "none", ...settings }))).toBe("BAD_CONFIG");
  });

  test.each([
    { learningRate: 0 },
    { learningRate: -1 },
    { learningRate: { schedule: "linear", rate: 1, a: 0.1 } },
    { learningRate: { schedule: "cosine", rate: 1, steps: 5 } },
    { learningRate: { schedule: "step", table: [[0, 0]] } },
    { l2Mode: "decoupled" },
  ])("if it gives ftrl %j, which it divides by or has no place for", (settings) => {
    expect(codeOf(() => toConfig({ optimizer: "ftrl", ...settings }))).toBe("BAD_CONFIG");
    expect(codeOf(() => toConfig({ optimizer: "adam", ...settings }))).toBe("");
  });

  test("in any way, and by no other error", () => {
    const some = fc.record(
      Object.fromEntries(
        ["optimizer", "learningRate", "l1", "l2Mode", "clipNorm", "static"].map((key) => [
          key,
          fc.oneof(fc.anything({ withBigInt: true, withNullPrototype: true }), fc.object()),
        ]),
      ),
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.anything(), some), (input) => {
        expect(["", "BAD_CONFIG"]).toContain(codeOf(() => toConfig(input)));
      }),
      { numRuns: 2000 },
    );
  });

  test.each([null, [], 3, true, new Map(), new Date(0), new ArrayBuffer(1), new Float32Array(1)])(
    "if it is %j",
    (config) => {
      expect(codeOf(() => toConfig(config))).toBe("BAD_CONFIG");
    },
  );
});
