// Proves that a push, set or init that does not fit is rejected with its code and changes nothing: wrong
// lengths, indices, encodings, element types, rates, versions, static parameters and a full shard.
import { describe, expect, test } from "vitest";
import type { ShardOptions } from "../../../src/actors/fold/shard.ts";
import type { Encoding, TensorData } from "../../../src/protocol/dtypes.ts";
import type { PushOperation, TrainerRecord } from "../../../src/protocol/messages/records.ts";
import { encoded } from "./batch-payload.ts";
import { Folded, limitedRules } from "./folded.ts";
import type { InitInput, JournalWriter, PushInput } from "./journal-writer.ts";

const GRAD = { op: "grad" } as const;
const MIX = { op: "mix", alpha: 1, beta: 1 } as const;
const f32 = (...values: number[]): Float32Array => Float32Array.from(values);
const rows = (...numbers: number[]): Uint32Array => Uint32Array.from(numbers);

/** A 3 × 2 block, trained once, and what is sent to it. */
function outcomeOf(
  values: TensorData,
  config: unknown,
  send: (journal: JournalWriter) => void,
  train = true,
): { code: string | undefined; message: string | undefined; changed: boolean } {
  const folded = new Folded();
  folded.journal.init(values, { config, shape: [3, 2] });
  if (train) folded.journal.push(values, GRAD);
  folded.apply();
  const before = folded.content();
  send(folded.journal);
  const [outcome] = folded.run();
  return {
    code: outcome?.code,
    message: outcome?.message,
    changed: folded.content() !== before,
  };
}

function withByte(at: number, byte: number): (bytes: Uint8Array) => Uint8Array {
  return (bytes) => bytes.with(at, byte);
}

/** Changes the scale of the first group to these bits. */
function withScale(bits: number): (bytes: Uint8Array) => Uint8Array {
  return (bytes) => {
    const changed = bytes.slice();
    new DataView(changed.buffer).setUint32(0, bits, true);
    return changed;
  };
}

const ADAM = { optimizer: "adam", learningRate: 0.1 };
const SPARSE = { ...ADAM, sparse: true };
const VALUES = f32(1, 2, 3, 4, 5, 6);

describe("a push", () => {
  const cases: [string, unknown, string, RegExp, TensorData, PushOperation, PushInput][] = [
    [
      "too short",
      ADAM,
      "BAD_LENGTH",
      /expected 24 bytes; received 20/,
      f32(1, 2, 3, 4, 5),
      GRAD,
      {},
    ],
    [
      "too long for its encoding",
      ADAM,
      "BAD_LENGTH",
      /expected 12 bytes; received 14/,
      f32(1, 2, 3, 4, 5, 6, 7),
      GRAD,
      { encoding: "bfloat16" },
    ],
    [
      "too short for its rows",
      SPARSE,
      "BAD_LENGTH",
      /expected 16 bytes; received 12/,
      f32(1, 2, 3),
      GRAD,
      { part: { rows: rows(0, 1) } },
    ],
    [
      "too long for its encoded rows and offsets",
      ADAM,
      "BAD_LENGTH",
      /expected 4 bytes; received 8/,
      f32(1, 2, 3, 4),
      MIX,
      { part: { rows: rows(0, 2), inner: rows(1) }, encoding: "float16" },
    ],
    [
      "of a row that is not there",
      SPARSE,
      "BAD_INDEX",
      /rows from 0 to 2 .* received 3/,
      f32(1, 2),
      GRAD,
      { part: { rows: rows(3) } },
    ],
    [
      "of rows out of order",
      SPARSE,
      "BAD_INDEX",
      /ascending order; received 0 after 1/,
      f32(1, 2, 3, 4),
      GRAD,
      { part: { rows: rows(1, 0) } },
    ],
    [
      "of one row twice",
      ADAM,
      "BAD_INDEX",
      /received 1 after 1/,
      f32(1, 2, 3, 4),
      MIX,
      { part: { rows: rows(1, 1) } },
    ],
    [
      "of an element beyond the row",
      ADAM,
      "BAD_INDEX",
      /offsets in a row from 0 to 1 .* received 2/,
      f32(1),
      MIX,
      { part: { rows: rows(0), inner: rows(2) } },
    ],
    [
      "of some rows of a dense parameter",
      ADAM,
      "UNSUPPORTED",
      /expected a gradient of all rows: the parameter is not sparse; received one of some rows/,
      f32(1, 2),
      GRAD,
      { part: { rows: rows(0) } },
    ],
    [
      "of some elements of rows",
      SPARSE,
      "UNSUPPORTED",
      /expected a gradient of whole rows; received one of some elements/,
      f32(1),
      GRAD,
      { part: { rows: rows(0), inner: rows(1) } },
    ],
    [
      "of a version to come",
      { ...ADAM, stalenessScaling: true },
      "BAD_VALUE",
      /version of at most 2; received 3/,
      VALUES,
      { ...GRAD, seen: 3 },
      {},
    ],
    [
      "of a version to come, though it does not matter",
      ADAM,
      "BAD_VALUE",
      /version of at most 2; received 3/,
      VALUES,
      { ...GRAD, seen: 3 },
      {},
    ],
    [
      "with a learning rate where there is none",
      { optimizer: "none" },
      "BAD_VALUE",
      /takes no learning rate; received 0.5/,
      VALUES,
      { ...GRAD, lr: 0.5 },
      {},
    ],
    [
      "with a learning rate that FTRL would divide by",
      { optimizer: "ftrl", learningRate: 0.1 },
      "BAD_VALUE",
      /learning rate above 0; received 0/,
      VALUES,
      { ...GRAD, lr: 0 },
      {},
    ],
    [
      "with an encoded infinity",
      ADAM,
      "NON_FINITE",
      /finite elements/,
      f32(1, 2, 3, 4, 5, 7e4),
      GRAD,
      { encoding: "float16", norm: 1 },
    ],
    [
      "with a NaN in a part",
      ADAM,
      "NON_FINITE",
      /finite elements/,
      f32(Number.NaN),
      MIX,
      { part: { rows: rows(0), inner: rows(1) }, norm: 1 },
    ],
    [
      "that is to be clipped by its norm, without one",
      { ...ADAM, clipNorm: 3 },
      "BAD_VALUE",
      /expected the norm of the gradient, which is clipped to 3; received none/,
      VALUES,
      GRAD,
      { norm: null },
    ],
    [
      "with a norm that tells of a NaN elsewhere",
      ADAM,
      "NON_FINITE",
      /finite norm/,
      f32(1),
      MIX,
      { part: { rows: rows(0), inner: rows(1) }, norm: Number.NaN },
    ],
  ];

  test.each(cases)("%s is rejected", (_what, config, code, message, data, operation, input) => {
    const outcome = outcomeOf(VALUES, config, (journal) => journal.push(data, operation, input));
    expect(outcome).toEqual({ code, message: expect.stringMatching(message), changed: false });
  });

  test("whose bytes end within the index is rejected", () => {
    const outcome = outcomeOf(VALUES, SPARSE, (journal) => {
      const head = { dtype: "float32", norm: 1, operation: GRAD, part: { rows: 9 } } as const;
      journal.trainer({}, new Uint8Array(8), (from): TrainerRecord => {
        return { verb: "push", ...from, ...head };
      });
    });
    expect(outcome).toMatchObject({ code: "BAD_LENGTH", changed: false });
    expect(outcome.message).toMatch(/at least 40 bytes of index; received 8/);
  });

  test("without any learning rate is rejected", () => {
    const config = { optimizer: "momentum" };
    const outcome = outcomeOf(VALUES, config, (journal) => journal.push(VALUES, GRAD), false);
    expect(outcome).toMatchObject({ code: "NO_LEARNING_RATE", changed: false });
  });
});

describe("elements that are encoded", () => {
  test.each([
    ["whole", {}, Float64Array.from(VALUES)],
    ["a part", { part: { rows: rows(0) } }, Float64Array.of(1, 2)],
  ])("are for float32 blocks only: %s", (_what, input, data) => {
    const values = Float64Array.from(VALUES);
    const outcome = outcomeOf(values, ADAM, (journal) =>
      journal.push(data, MIX, { ...input, encoding: "bfloat16" }),
    );
    expect(outcome).toMatchObject({ code: "UNSUPPORTED", changed: false });
    expect(outcome.message).toMatch(/bfloat16 is for float32 elements; received float64/);
  });
});

describe("groups of elements that no client writes are rejected", () => {
  const cases: [string, Encoding, (bytes: Uint8Array) => Uint8Array, string, RegExp][] = [
    ["a scale that is infinite", "int8", withScale(0x7f800000), "NON_FINITE", /finite elements/],
    ["a scale that is NaN", "e3m0", withScale(0x7fc00000), "NON_FINITE", /finite elements/],
    ["a scale times which a code overflows", "int8", withScale(0x7f7fffff), "NON_FINITE", /finite/],
    ["a negative scale", "int8", withScale(0xbf800000), "BAD_VALUE", /"w" block 0.*without a sign/],
    ["a scale of -0", "e3m0", withScale(0x80000000), "BAD_VALUE", /without a sign/],
    ["a scale that is NaN with a sign", "int8", withScale(0xffc00000), "BAD_VALUE", /a sign/],
    ["the code -128", "int8", withByte(5, 0x80), "BAD_VALUE", /from -127 to 127; received -128/],
    ["the code of -0", "e3m0", withByte(5, 0x81), "BAD_VALUE", /not 8/],
    [
      "too few bytes",
      "int8",
      (bytes) => bytes.subarray(0, 9),
      "BAD_LENGTH",
      /10 bytes; received 9/,
    ],
    ["too many bytes", "e3m0", (bytes) => Buffer.concat([bytes, bytes]), "BAD_LENGTH", /7 bytes/],
    [
      "a scale alone",
      "int8",
      (bytes) => bytes.subarray(0, 4),
      "BAD_LENGTH",
      /at least 5; received 4/,
    ],
  ];

  test.each(cases)("%s in %s", (_what, encoding, change, code, message) => {
    const bytes = change(encoded(encoding, VALUES));
    const outcome = outcomeOf(VALUES, ADAM, (journal) => {
      const head = { dtype: "float32", encoding, operation: GRAD } as const;
      journal.trainer({}, bytes, (from): TrainerRecord => ({ verb: "push", ...from, ...head }));
    });
    expect(outcome).toEqual({ code, message: expect.stringMatching(message), changed: false });
  });

  test.each(["int8", "e3m0"] as const)("but in %s a parameter may allow them", (encoding) => {
    const config = { ...ADAM, allowNonFinite: true };
    const bytes = withScale(0x7f800000)(encoded(encoding, VALUES));
    const outcome = outcomeOf(VALUES, config, (journal) => {
      const head = { dtype: "float32", encoding, operation: GRAD } as const;
      journal.trainer({}, bytes, (from): TrainerRecord => ({ verb: "push", ...from, ...head }));
    });
    expect(outcome).toMatchObject({ code: undefined, changed: true });
  });
});

describe("integers", () => {
  const values = Int32Array.from(VALUES);

  test("take no gradient but with none", () => {
    const push = (journal: JournalWriter): unknown => journal.push(values, GRAD);
    expect(outcomeOf(values, ADAM, push, false)).toMatchObject({
      code: "UNSUPPORTED",
      changed: false,
    });
    expect(outcomeOf(values, { optimizer: "none" }, push)).toMatchObject({
      code: undefined,
      changed: true,
    });
  });

  test.each([{ gradientScale: 0.5 }, { clipNorm: 1 }, { clipValue: 1 }])(
    "are neither scaled nor clipped: %j",
    (shaping) => {
      const config = { optimizer: "none", ...shaping };
      const outcome = outcomeOf(values, config, (journal) => journal.push(values, GRAD), false);
      expect(outcome).toMatchObject({ code: "UNSUPPORTED", changed: false });
    },
  );

  test.each([
    [Int32Array.of(2 ** 31 - 1), Int32Array.of(1), -(2 ** 31)],
    [Uint32Array.of(2 ** 32 - 1), Uint32Array.of(3), 2],
    [BigInt64Array.of(2n ** 63n - 1n), BigInt64Array.of(1n), -(2n ** 63n)],
    [BigUint64Array.of(2n ** 64n - 1n), BigUint64Array.of(3n), 2n],
  ])("wrap around: %o + %o", (value, gradient, sum) => {
    const folded = new Folded();
    folded.journal.init(value, { config: { optimizer: "none" } });
    folded.journal.push(gradient, GRAD);
    folded.apply();
    const { buffer } = folded.block().values().slice();
    const Type = value.constructor as new (buffer: ArrayBuffer) => TensorData;
    expect(new Type(buffer)[0]).toBe(sum);
    expect(folded.block()).toMatchObject({ version: 2, updates: 1, slots: 0 });
  });
});

describe("a static parameter", () => {
  test.each<[string, (journal: JournalWriter) => void]>([
    ["gradient", (journal) => journal.push(VALUES, GRAD)],
    ["mix", (journal) => journal.push(VALUES, MIX)],
    ["part", (journal) => journal.push(f32(1, 2), MIX, { part: { rows: rows(0) } })],
    ["set", (journal) => journal.set(VALUES)],
  ])("rejects a %s", (_what, send) => {
    const outcome = outcomeOf(VALUES, { ...SPARSE, static: true }, send, false);
    expect(outcome).toMatchObject({ code: "STATIC", changed: false });
  });

  test("can be initialized anew, and has no slots", () => {
    const folded = new Folded();
    folded.journal.init(f32(1), { config: { ...SPARSE, static: true } });
    folded.journal.init(f32(2), { config: { ...SPARSE, static: true }, epoch: 2 });
    folded.apply();
    expect(folded.block()).toMatchObject({ epoch: 2, slots: 0, heldBytes: 4 });
  });
});

describe("an init", () => {
  const limit = (shardBytesMax: number): Pick<ShardOptions, "knownRules"> => {
    return { knownRules: limitedRules({ shardBytesMax }) };
  };
  const init = (folded: Folded, input: InitInput): unknown => {
    folded.journal.init(f32(1, 2, 3, 4), input);
    return folded.run()[0]?.code;
  };

  test.each([
    // Values and two slots of 16 bytes each.
    [ADAM, undefined, 48],
    // And 4 bytes of count for each of 2 rows.
    [SPARSE, undefined, 56],
    // And the sum of the open step and 1 byte for each row.
    [SPARSE, { mode: "sync", trainers: 2 } as const, 74],
    [ADAM, { mode: "ssp", trainers: 2, staleness: 1 } as const, 48],
  ])("with %j under %j takes %d bytes, and not one less", (config, synchronization, bytes) => {
    const full = new Folded(synchronization, limit(bytes - 1));
    const roomy = new Folded(synchronization, limit(bytes));
    full.run();
    roomy.run();
    const before = full.content();
    expect(init(full, { config, shape: [2, 2] })).toBe("TOO_LARGE");
    expect(full.content()).toBe(before);
    expect(full.shard.memory.allocatedBytes).toBe(0);
    expect(init(roomy, { config, shape: [2, 2] })).toBeUndefined();
    expect(roomy.shard.valueBytes).toBe(bytes);
    expect(roomy.block().heldBytes).toBe(bytes);
  });

  test("in place of a block with slots counts the bytes that are freed", () => {
    const folded = new Folded(undefined, limit(48));
    folded.run();
    expect(init(folded, { config: ADAM })).toBeUndefined();
    expect(init(folded, { config: ADAM, epoch: 2 })).toBeUndefined();
    expect(init(folded, { config: { ...ADAM, optimizer: "amsgrad" }, epoch: 3 })).toBe("TOO_LARGE");
    expect(folded.block()).toMatchObject({ epoch: 2, heldBytes: 48 });
    folded.journal.host({ verb: "drop", parameter: "w", epoch: 2 });
    folded.run();
    expect(folded.shard.valueBytes).toBe(0);
    expect(folded.shard.memory.allocatedBytes).toBe(0);
  });

  test("of a sparse block that is cut inside a row is rejected", () => {
    const folded = new Folded();
    folded.run();
    const cut = { shape: [4, 3], index: 1, start: 4, count: 4 };
    expect(init(folded, { ...cut, config: SPARSE })).toBe("BAD_VALUE");
    expect(init(folded, { ...cut, config: ADAM, epoch: 2 })).toBeUndefined();
  });
});
