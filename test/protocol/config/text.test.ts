// Proves that the same settings as an object, as JSON, as YAML and as PaddlePaddle's bytes are the same
// configuration, and that text which is more or less than settings is refused.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import {
  CONFIG_DEPTH_MAX,
  CONFIG_TEXT_MAX,
  CONFIG_TOKENS_MAX,
  type ParameterSettings,
  toConfig,
} from "../../../src/protocol/index.ts";
import { codeOf, refusalOf } from "../refusal.ts";
import { anySettings } from "./arbitrary-settings.ts";
import { optimizerBytes, parameterBytes } from "./paddle-bytes.ts";

describe("names as Python has them", () => {
  const expected = toConfig({
    optimizer: { name: "adam", beta1: 0.8 },
    learningRate: { schedule: "cosine", rate: 0.1, steps: 9, warmup: { steps: 3 } },
    clipNorm: 1,
    l2Mode: "decoupled",
    allowNonFinite: true,
  });

  test.each([
    `{"optimizer": "adam", "beta1": 0.8, "clip_norm": 1, "l2_mode": "decoupled", "allow_non_finite": true,
      "learning_rate": {"schedule": "cosine", "rate": 0.1, "steps": 9, "warmup": {"steps": 3}}}`,
    "optimizer: {name: adam, beta1: 0.8}\nclip_norm: 1\nl2_mode: decoupled\nallow_non_finite: true\n" +
      "learning_rate: {schedule: cosine, rate: 0.1, steps: 9, warmup: {steps: 3}}\n",
  ])("are the same configuration in %s", (text) => {
    expect(toConfig(text)).toStrictEqual(expected);
  });

  test.each([
    "learning_rate: 0.1\nlearningRate: 0.1",
    '{"learningRate": 0.1, "learning_rate": 0.2}',
  ])("are refused beside the other ones: %s", (text) => {
    expect(codeOf(() => toConfig(text))).toBe("BAD_CONFIG");
    expect(() => toConfig(text)).toThrow("learningRate once");
  });
});

describe("one configuration in all its forms", () => {
  test.each<[string, ParameterSettings, string, string, Parameters<typeof toConfig>[0]]>([
    [
      "SGD",
      { learningRate: 0.1, clipNorm: 0.1 },
      '{"learningRate": 0.1, "clipNorm": 0.1}',
      "learningRate: 0.1\nclipNorm: 0.1\n",
      optimizerBytes({
        optimizer: 1,
        sgd: { momentum: 0, decay: 0, nesterov: false },
        const_lr: { learning_rate: 0.1 },
        clip_norm: 0.1,
      }),
    ],
    [
      "Nesterov",
      {
        optimizer: { name: "nesterov", momentum: 0.8 },
        learningRate: { schedule: "linear", rate: 0.1, a: 1e-5, b: 0.01 },
        l2: 1e-4,
        clipValue: 5,
      },
      `{
\t"optimizer": {"name": "nesterov", "momentum": 0.8},
\t"learningRate": {"schedule": "linear", "rate": 1e-1, "a": 1e-5, "b": 0.01},
\t"l2": 0.0001, "clipValue": 5
}`,
      `# as in the paper
optimizer: {name: nesterov, momentum: 0.8}
learningRate:
  schedule: linear
  rate: 0.1
  a: 1.0e-5
  b: .01
l2: 1e-4
clipValue: 5.0
`,
      optimizerBytes({
        sgd: { momentum: 0.8, nesterov: true, decay: 1e-4 },
        lr_policy: 1,
        linear_lr: { learning_rate: 0.1, lr_decay_a: 1e-5, lr_decay_b: 0.01 },
        clip_value: 5,
      }),
    ],
    [
      "Adam of a sparse parameter",
      { optimizer: "adam", learningRate: 0.002, l1: 0.5, sparse: true },
      '{"optimizer": "adam", "learningRate": 0.002, "l1": 0.5, "sparse": true}',
      "---\noptimizer: adam\nlearningRate: 2e-3\nl1: 0.5\nsparse: true\nclipNorm:\n...\n",
      {
        optimizerConfig: optimizerBytes({ optimizer: 4, const_lr: { learning_rate: 0.001 } }),
        parameterConfig: parameterBytes({
          learning_rate: 2,
          decay_rate_l1: 0.5,
          sparse_remote_update: true,
        }),
      },
    ],
  ])("%s", (_what, settings, json, yaml, paddle) => {
    const config = toConfig(settings);
    expect(toConfig(json)).toStrictEqual(config);
    expect(toConfig(yaml)).toStrictEqual(config);
    expect(toConfig(paddle)).toStrictEqual(config);
    expect(JSON.parse(json)).toEqual(settings);
  });

  test("and any other that text can say", () => {
    fc.assert(
      fc.property(anySettings, fc.constantFrom("", "  ", "\t"), (settings, indent) => {
        const config = toConfig(settings);
        expect(toConfig(JSON.stringify(settings, null, indent))).toStrictEqual(config);
        expect(toConfig(stringify(settings))).toStrictEqual(config);
        expect(toConfig(JSON.stringify(config))).toStrictEqual(config);
      }),
    );
  });
});

describe("text is refused if it is", () => {
  const laughs = [
    "a: &a [x, x]",
    ...["b", "c", "d"].map((name, i) => `${name}: &${name} [*${"abc"[i]}]`),
  ];
  test.each([
    ["empty", ""],
    ["a comment", "# nothing"],
    ["a text", "adam"],
    ["a list", "[1]"],
    ["cut", '{"learningRate": 0.1'],
    ["JSON and more", "{} {}"],
    ["of unknown entries", '{"momentum": 1}'],
    ["of an entry twice", '{"l1": 1, "l1": 2}'],
    ["of the entry __proto__", '{"__proto__": {"l1": 1}}'],
    ["of two documents", "l1: 1\n---\nl2: 1\n"],
    ["of a tag of its own", "optimizer: !ours adam"],
    ["of bytes", "optimizer: !!binary YWRhbQ=="],
    ["of an alias", "l1: &one 1\nl2: *one"],
    ["of a merge", "<<: {l1: 1}"],
    ["of many aliases", laughs.join("\n")],
    ["of an alias of itself", "&a [*a]"],
    ["of half a surrogate pair", 'optimizer: "\\ud800"'],
    ["of numbers as text", 'learningRate: "0.1"'],
    ["of YAML 1.1's truth values", "sparse: yes"],
    ["of infinities", "l1: .inf"],
    ["of numbers too large", '{"l1": 1e400}'],
    ["of numbers that are none", "l1: .nan"],
    ["of PaddlePaddle's messages, which are bytes", "optimizerConfig: CAE="],
    ["nested without end", "[".repeat(CONFIG_TEXT_MAX)],
    ["nested maps", "{a: ".repeat(CONFIG_TEXT_MAX / 4)],
    ["nested lists of YAML", "- ".repeat(CONFIG_TEXT_MAX / 2)],
    ["long", " ".repeat(CONFIG_TEXT_MAX + 1)],
  ])("%s", (_what, text) => {
    expect(refusalOf(() => toConfig(text)).code).toBe("BAD_CONFIG");
  });

  // Levels by lines are fewer than a thousand, or their indentation alone would be too long.
  const block = (levels: number, key: string): string =>
    Array.from({ length: levels }, (_, level) => `${" ".repeat(level)}${key}\n`).join("");
  test.each<[string, (levels: number) => string]>([
    ["lists", (levels) => "[".repeat(levels)],
    ["lists that end", (levels) => "[".repeat(levels) + "]".repeat(levels)],
    ["lists around texts that look like ends", (levels) => "[a'b, ']', ".repeat(levels)],
    ["maps", (levels) => "{".repeat(levels)],
    ["maps in JSON", (levels) => '{"a":'.repeat(levels)],
    ["maps in lists", (levels) => "[a: ".repeat(levels)],
    ["lists of YAML on one line", (levels) => "- ".repeat(levels)],
    ["keys of YAML on one line", (levels) => "? ".repeat(levels)],
    ["values of YAML on one line", (levels) => ": ".repeat(levels)],
    ["maps of YAML by lines", (levels) => block(Math.min(levels, 170), "a:")],
    ["lists of YAML by lines", (levels) => block(Math.min(levels, 170), "-")],
    ["all of them", (levels) => "- ? [{a: ".repeat(levels / 4)],
  ])("too deep, of %s", (_what, textOf) => {
    const { message } = refusalOf(() => toConfig(textOf(1_000).slice(0, CONFIG_TEXT_MAX)));
    expect(message).toContain(`nested at most ${CONFIG_DEPTH_MAX} deep; received`);
  });

  test("too deep, and not before", () => {
    const nested = (levels: number): string => `l1: ${"[".repeat(levels)}${"]".repeat(levels)}`;
    const { message } = refusalOf(() => toConfig(nested(CONFIG_DEPTH_MAX - 1)));
    expect(message).toContain("config.l1");
    expect(refusalOf(() => toConfig(nested(CONFIG_DEPTH_MAX))).message).toContain("nested");
  });

  test("of too many words, which take their square in time, and not before", () => {
    const comments = (tokens: number): string => `l1: 1\n${"#\n".repeat(tokens / 2)}`;
    expect(toConfig(comments(CONFIG_TOKENS_MAX - 100)).l1).toBe(1);
    const { message } = refusalOf(() => toConfig(comments(CONFIG_TOKENS_MAX)));
    expect(message).toContain(`at most ${CONFIG_TOKENS_MAX} words`);
  });

  test("of pieces repeated up to the largest text, by no other error", () => {
    const pieces = [
      "[",
      "]",
      "{",
      "}",
      "- ",
      "? ",
      ": ",
      "a: ",
      ",",
      "\n",
      " ",
      "&a ",
      "*a ",
      "'",
      '"',
    ];
    const unit = fc.array(
      fc.oneof(fc.constantFrom(...pieces, "|", ">", "!!a ", "---"), fc.string()),
      {
        minLength: 1,
        maxLength: 6,
      },
    );
    fc.assert(
      fc.property(unit, (parts) => {
        const text = `${parts.join("")} `.repeat(CONFIG_TEXT_MAX).slice(0, CONFIG_TEXT_MAX);
        expect(["", "BAD_CONFIG"]).toContain(codeOf(() => toConfig(text)));
      }),
      { numRuns: 300 },
    );
  });

  test("in any way, and by no other error", () => {
    const pieces = [
      "{",
      "}",
      "[",
      "]",
      ":",
      ",",
      "- ",
      "\n",
      "  ",
      "&a ",
      "*a",
      "!!",
      "|",
      '"',
      "l1",
    ];
    const text = fc.array(fc.oneof(fc.constantFrom(...pieces, "? ", "%", "---", "1"), fc.string()));
    fc.assert(
      fc.property(
        text.map((parts) => parts.join("")),
        (given) => {
          expect(["", "BAD_CONFIG"]).toContain(codeOf(() => toConfig(given)));
        },
      ),
      { numRuns: 2000 },
    );
  });

  test("says where it is wrong", () => {
    expect(refusalOf(() => toConfig("l1: 1\nl1: 2")).message).toContain("line 2");
  });
});
