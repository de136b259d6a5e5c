// Proves how PaddlePaddle's serialized messages are read: against bytes put together by hand from the
// field numbers, and that bytes which are wrong in any way are a BAD_CONFIG or read, never else.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { paddleDescriptor } from "../../../scripts/write-paddle-descriptor.mjs";
import { PADDLE_DESCRIPTOR } from "../../../src/protocol/config/paddle/descriptor.ts";
import {
  decodeOptimizerConfig,
  decodeParameterConfig,
} from "../../../src/protocol/config/paddle/paddle.ts";
import { PADDLE_BYTES_MAX, toConfig } from "../../../src/protocol/index.ts";
import { hex } from "../raw-message.ts";
import { codeOf, refusalOf } from "../refusal.ts";
import { optimizerBytes, parameterBytes } from "./paddle-bytes.ts";

/** What the script of the ancestor's own test wrote: SGD at 0.1, clip_norm 0.1, zeros written out. */
const GOLDEN =
  "08011a17a9010000000000000000b9010000000000000000c0010058006209099a9999999999b93fa9069a9999999999b93f";
const HEAD = "0a01771006"; // name "w", size 6
const ONE = "000000000000f03f"; // 1 as a double
const HALF = "000000000000e03f";

test("the descriptor is that of the .proto files: else run scripts/write-paddle-descriptor.mjs", () => {
  expect(PADDLE_DESCRIPTOR).toStrictEqual(paddleDescriptor());
});

test("the golden message is SGD with learning rate 0.1", () => {
  expect(hex(GOLDEN)).toHaveLength(50);
  expect(toConfig(hex(GOLDEN))).toStrictEqual(toConfig({ learningRate: 0.1, clipNorm: 0.1 }));
  const fields = {
    optimizer: "SGD",
    sgd: { momentum: 0, decay: 0, nesterov: false },
    lr_policy: "Const",
    const_lr: { learning_rate: 0.1 },
    clip_norm: 0.1,
  };
  expect(decodeOptimizerConfig(hex(GOLDEN))).toStrictEqual(fields);
  expect(Buffer.from(optimizerBytes(fields)).toString("hex")).toBe(GOLDEN);
});

describe("fields are read by their numbers", () => {
  test.each([
    [`1a0aa901${ONE}`, { sgd: { momentum: 1 } }],
    [`1a0ab901${ONE}`, { sgd: { decay: 1 } }],
    ["1a03c00101", { sgd: { nesterov: true } }],
    [`220a8902${ONE}`, { adadelta: { rho: 1 } }],
    [`220af901${ONE}`, { adadelta: { epsilon: 1 } }],
    [`220a8102${ONE}`, { adadelta: { decay: 1 } }],
    [`2a0ac902${ONE}`, { adagrad: { epsilon: 1 } }],
    [`2a0ad102${ONE}`, { adagrad: { decay: 1 } }],
    [`320ac902${ONE}`, { adam: { beta_1: 1 } }],
    [`320ad102${ONE}`, { adam: { beta_2: 1 } }],
    [`320ad902${ONE}`, { adam: { epsilon: 1 } }],
    [`320ae102${ONE}`, { adam: { decay: 1 } }],
    ["0802", { optimizer: "Adadelta" }],
    ["0803", { optimizer: "Adagrad" }],
    ["0804", { optimizer: "Adam" }],
    ["5801", { lr_policy: "Linear" }],
    [`620909${ONE}`, { const_lr: { learning_rate: 1 } }],
    [`6a0909${ONE}`, { linear_lr: { learning_rate: 1 } }],
    [`6a0911${ONE}`, { linear_lr: { lr_decay_a: 1 } }],
    [`6a0919${ONE}`, { linear_lr: { lr_decay_b: 1 } }],
    [`a906${ONE}`, { clip_norm: 1 }],
    [`b106${ONE}`, { clip_value: 1 }],
  ])("of an OptimizerConfig: %s", (bytes, fields) => {
    expect(decodeOptimizerConfig(hex(bytes as string))).toStrictEqual(fields);
  });

  test.each([
    [`19${ONE}`, { learning_rate: 1 }],
    [`21${ONE}`, { momentum: 1 }],
    [`39${ONE}`, { decay_rate: 1 }],
    [`41${ONE}`, { decay_rate_l1: 1 }],
    ["48024803", { dims: [2n, 3n] }],
    ["4a020203", { dims: [2n, 3n] }],
    ["800101", { sparse_remote_update: true }],
    [`8901${ONE}`, { gradient_clipping_threshold: 1 }],
    ["900101", { is_static: true }],
    ["b00101", { sparse_update: true }],
  ])("of a ParameterConfig: %s", (bytes, fields) => {
    expect(decodeParameterConfig(hex(HEAD + bytes))).toStrictEqual({
      name: "w",
      size: 6n,
      ...fields,
    });
  });

  test("whatever an update hook holds in the field that changed its type", () => {
    for (const hook of [`a2010c0a017011${ONE}`, "a201060a0170120166"]) {
      expect(decodeParameterConfig(hex(HEAD + hook))).toMatchObject({ name: "w", size: 6n });
    }
  });
});

describe("protobuf's own rules hold", () => {
  test("no bytes are a message without fields", () => {
    expect(decodeOptimizerConfig(new Uint8Array(0))).toStrictEqual({});
  });

  test("unknown fields of every wire type are skipped", () => {
    const unknown = `9003ff01${`9103${ONE}`}9203026869930308019403${"95030000803f"}`;
    expect(decodeOptimizerConfig(hex(unknown + GOLDEN))).toMatchObject({ optimizer: "SGD" });
  });

  test("the last value counts, and messages merge", () => {
    expect(decodeOptimizerConfig(hex("08020804"))).toStrictEqual({ optimizer: "Adam" });
    expect(
      decodeOptimizerConfig(hex(`1a0aa901${ONE}1a0ab901${HALF}1a0aa901${HALF}`)),
    ).toStrictEqual({ sgd: { momentum: 0.5, decay: 0.5 } });
  });
});

describe("refused is", () => {
  test.each([
    ["a message cut within a double", "a9069a99"],
    ["a message cut after a tag", "08"],
    ["a nested message longer than the rest", "1a7f"],
    ["a field that ends beyond its message", `1a04a901${ONE}`],
    ["a varint of 11 bytes", "08ffffffffffffffffffff01"],
    ["field number 0", "0001"],
    ["wire type 6", "0e"],
    ["wire type 7", "0f"],
    ["the end of a group that has not begun", "0c"],
    ["a group without an end", "9303"],
    ["groups within groups", "9303".repeat(PADDLE_BYTES_MAX / 2)],
    ["a double for the optimizer", `09${ONE}`],
    ["a whole number for a message", "1801"],
    ["a whole number for a double", "a80601"],
    ["a float for a double", "ad060000803f"],
    ["a text for a double in a nested message", "6202" + "0a00"],
    ["an optimizer that there is not", "0805"],
    ["an optimizer of number 0", "0800"],
    ["a negative optimizer", "08ffffffffffffffffff01"],
    ["a policy that there is not", "5802"],
  ])("%s", (_what, bytes) => {
    const error = refusalOf(() => toConfig(hex(bytes)));
    expect(error.code).toBe("BAD_CONFIG");
    expect(error.message).toMatch(/^Paddle's \w+(\.\w+)?: expected .+; received .+/);
  });

  test.each([
    ["no field at all", ""],
    ["a missing name", "1006"],
    ["a missing size", "0a0177"],
    ["an update hook without its type", `${HEAD}a20100`],
    ["a name that is not UTF-8", "0a02c3281006"],
    ["a name as a number", "08011006"],
    ["a flag as a double", `${HEAD}9101${ONE}`],
  ])("%s in a ParameterConfig", (_what, bytes) => {
    expect(codeOf(() => toConfig({ parameterConfig: hex(bytes) }))).toBe("BAD_CONFIG");
  });

  test("more bytes than the limit", () => {
    const unknown = new Uint8Array(PADDLE_BYTES_MAX + 1).fill(0x78);
    expect(refusalOf(() => toConfig(unknown)).message).toContain(String(PADDLE_BYTES_MAX));
    expect(codeOf(() => toConfig({ parameterConfig: unknown }))).toBe("BAD_CONFIG");
  });
});

const samples = [
  hex(GOLDEN),
  optimizerBytes({ optimizer: 4, adam: { beta_1: 0.5, decay: 0.1 }, clip_value: 3 }),
  optimizerBytes({ lr_policy: 1, linear_lr: { learning_rate: 1, lr_decay_a: 0.5 } }),
  parameterBytes({ dims: [2, 3], momentum: 0.5, update_hooks: [{ type: "pruning" }] }),
];

/** Bytes of a valid message: some changed, some taken out, some put in. */
const mutated: fc.Arbitrary<Uint8Array> = fc
  .tuple(
    fc.constantFrom(...samples),
    fc.array(fc.tuple(fc.nat(60), fc.nat(1), fc.uint8Array({ maxLength: 3 })), { maxLength: 4 }),
  )
  .map(([sample, edits]) => {
    const bytes = [...sample];
    for (const [at, remove, insert] of edits) bytes.splice(at, remove, ...insert);
    return Uint8Array.from(bytes);
  });

test("any bytes and any changed message are read or refused with BAD_CONFIG", () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 60 }), mutated), (bytes) => {
      for (const input of [bytes, { parameterConfig: bytes }, { optimizerConfig: bytes }]) {
        const code = codeOf(() => {
          const config = toConfig(input);
          expect(toConfig(config)).toStrictEqual(config);
        });
        seen.add(code);
      }
    }),
    { numRuns: 5000 },
  );
  expect([...seen].sort()).toEqual(["", "BAD_CONFIG"]);
});

test("a message cut at any byte is the message before or refused", () => {
  for (const sample of samples) {
    for (let end = 0; end < sample.length; end++) {
      for (const input of [sample.slice(0, end), { parameterConfig: sample.slice(0, end) }]) {
        expect(["", "BAD_CONFIG"]).toContain(codeOf(() => toConfig(input)));
      }
    }
  }
});
