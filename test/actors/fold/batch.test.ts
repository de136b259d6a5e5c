// Proves that a batch is a transaction that changes what its updates change as records of their own: the
// same values, slots, counts and versions, of every optimizer, element type and kind of update, also in
// steps; that it is applied once; and that, if one of its entries is rejected, nothing is changed.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeMessage, encodeMessage, sealMessage } from "../../../src/protocol/codec.ts";
import type {
  ParameterSettings,
  SynchronizationInput,
} from "../../../src/protocol/config/index.ts";
import { allocateData, type Encoding, type TensorData } from "../../../src/protocol/dtypes.ts";
import type { PushOperation } from "../../../src/protocol/messages/records.ts";
import { ascending } from "./arbitrary-parts.ts";
import type { BatchUpdate } from "./batch-payload.ts";
import { Folded, limitedRules } from "./folded.ts";
import { floats, fullConfig, OPTIMIZERS } from "./optimizer-configs.ts";

const GRAD: PushOperation = { op: "grad" };
const ROWS = 9;
const WIDTH = 3;

/** A parameter of one block, as wide as all others here. */
interface Model {
  readonly name: string;
  readonly data: TensorData;
  readonly config: unknown;
  readonly isSparse: boolean;
}

const MODELS: readonly Model[] = [
  ...OPTIMIZERS.map((optimizer, i) => ({
    name: `dense ${optimizer}`,
    data: floats(i % 2 === 0 ? "float32" : "float64", ROWS * WIDTH, i),
    config: fullConfig(optimizer),
    isSparse: false,
  })),
  ...OPTIMIZERS.filter((name) => name !== "none").map((optimizer, i) => ({
    name: `sparse ${optimizer}`,
    data: floats("float32", ROWS * WIDTH, i + 50),
    config: fullConfig(optimizer, { sparse: true }),
    isSparse: true,
  })),
  ...(["int32", "uint64"] as const).map((dtype) => ({
    name: dtype,
    data: allocateData(dtype, ROWS * WIDTH),
    config: { optimizer: "none" },
    isSparse: false,
  })),
];

function initAll(folded: Folded): void {
  for (const { name: parameter, data, config } of MODELS) {
    folded.journal.init(data, { parameter, shape: [ROWS, WIDTH], config });
  }
  folded.apply();
}

/** As singles: each a record of its own. */
function sendSingles(folded: Folded, updates: readonly BatchUpdate[], trainer = "alice"): void {
  for (const { parameter, data, change } of updates) {
    if (change.kind === "set") folded.journal.set(data, { trainer, parameter });
    else if (change.kind === "push") {
      const { operation, encoding, part } = change;
      folded.journal.push(data, operation, {
        trainer,
        parameter,
        ...(encoding === undefined ? {} : { encoding }),
        ...(part === undefined ? {} : { part }),
      });
    }
  }
}

function gradient({ data, isSparse }: Model, seed: number, operation: PushOperation) {
  const like = (length: number): TensorData => {
    const values = floats("float32", length, seed);
    if (data instanceof Float32Array) return values;
    if (data instanceof Float64Array) return Float64Array.from(values);
    if (data instanceof Int32Array) return Int32Array.from(values, (x) => Math.round(100 * x));
    return BigUint64Array.from(values, (x) => BigInt.asUintN(64, BigInt(Math.round(100 * x))));
  };
  const whole = fc.constant<Pick<BatchUpdate, "data" | "change">>({
    data: like(ROWS * WIDTH),
    change: { kind: "push", operation },
  });
  if (!isSparse) return whole;
  const rows = ascending(ROWS).map(
    (rows): Pick<BatchUpdate, "data" | "change"> => ({
      data: like(rows.length * WIDTH),
      change: { kind: "push", operation, part: { rows } },
    }),
  );
  return fc.oneof(whole, rows);
}

/** What is no gradient: a mix, also of a part, an encoded one, or a set. */
function other({ data }: Model, seed: number): fc.Arbitrary<Pick<BatchUpdate, "data" | "change">> {
  const mix = { op: "mix", alpha: 0.5, beta: 2 } as const;
  const encodings =
    data instanceof Float32Array ? (["bfloat16", "float16", "int8", "e3m0"] as const) : [];
  const changes: BatchUpdate["change"][] = [
    { kind: "set" },
    { kind: "push", operation: mix },
    ...encodings.map((encoding) => ({ kind: "push" as const, operation: mix, encoding })),
  ];
  const values = data.slice();
  if (values instanceof Float32Array || values instanceof Float64Array) {
    values.set(floats("float32", values.length, seed));
  }
  const parts = fc.record({ rows: ascending(ROWS), inner: ascending(WIDTH) }).map((index) => ({
    data: values.slice(0, index.rows.length * index.inner.length),
    change: { kind: "push" as const, operation: mix, part: index },
  }));
  return fc.oneof(
    fc.constantFrom(...changes).map((change) => ({ data: values, change })),
    parts,
  );
}

function updatesOf(seed: number, onlyGradients: PushOperation | undefined) {
  return fc
    .subarray([...MODELS], { minLength: 1 })
    .chain((models) =>
      fc.tuple(
        ...models.map((model) =>
          (onlyGradients === undefined
            ? fc.oneof(gradient(model, seed, GRAD), other(model, seed))
            : gradient(model, seed, onlyGradients)
          ).map((update): BatchUpdate => ({ parameter: model.name, ...update })),
        ),
      ),
    );
}

test("changes what its updates change as records of their own", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.nat(1000).chain((seed) => updatesOf(seed, undefined)),
        { maxLength: 4 },
      ),
      (calls) => {
        const [singles, batches] = [new Folded(), new Folded()];
        initAll(singles);
        initAll(batches);
        for (const updates of calls) {
          sendSingles(singles, updates);
          batches.journal.batch(updates);
        }
        singles.apply();
        batches.apply();
        expect(batches.content()).toBe(singles.content());
        expect(batches.restored().digest()).toBe(batches.shard.digest());
      },
    ),
    { numRuns: 30 },
  );
});

test("adds its gradients to the step as records of their own do", () => {
  const synchronization: SynchronizationInput = { mode: "sync", trainers: 2, backups: 0 };
  fc.assert(
    fc.property(
      fc.tuple(updatesOf(3, { op: "grad", step: 1 }), updatesOf(4, { op: "grad", step: 1 })),
      ([first, second]) => {
        const [singles, batches] = [new Folded(synchronization), new Folded(synchronization)];
        for (const folded of [singles, batches]) {
          initAll(folded);
          folded.journal.host({
            verb: "members",
            revision: 1,
            started: true,
            trainers: ["alice", "bob"],
          });
        }
        sendSingles(singles, first);
        sendSingles(singles, second, "bob");
        batches.journal.batch(first);
        batches.journal.batch(second, { trainer: "bob" });
        for (const folded of [singles, batches]) {
          folded.journal.clock("alice", 1);
          folded.apply();
          folded.journal.clock("bob", 1);
          folded.apply();
        }
        expect(batches.shard.steps.closed).toBe(1);
        expect(batches.content()).toBe(singles.content());
      },
    ),
    { numRuns: 20 },
  );
});

describe("neighbours of one rule are changed together as they are one by one", () => {
  /** Elements of the blocks: small ones of all sizes, and one that is changed alone. */
  const SIZES = [1, 3, 16, 5, 1500, 2, 8, 31, 64, 7];
  const COLUMNS = 3;
  const twins: fc.Arbitrary<{
    optimizer: (typeof OPTIMIZERS)[number];
    isSparse: boolean;
    isSteady: boolean;
  }> = fc
    .record({
      optimizer: fc.constantFrom(...OPTIMIZERS),
      ...{ isSparse: fc.boolean(), isSteady: fc.boolean() },
    })
    .filter(({ optimizer, isSparse }) => !isSparse || optimizer !== "none");
  const call = fc.record<{
    order: number[];
    form: "whole" | "rows";
    op: "grad" | "mix" | "set";
    encoding: Encoding | undefined;
    isSeen: boolean;
    seed: number;
  }>({
    order: fc.shuffledSubarray([...SIZES.keys()], { minLength: 1 }),
    form: fc.constantFrom("whole", "rows"),
    op: fc.constantFrom("grad", "mix", "set"),
    encoding: fc.constantFrom(undefined, "bfloat16", "float16", "int8", "e3m0"),
    /** Whether every second gradient names an older version. */
    isSeen: fc.boolean(),
    seed: fc.nat(1000),
  });

  test.each<["float32" | "float64", SynchronizationInput | undefined]>([
    ["float32", undefined],
    ["float64", undefined],
    ["float32", { mode: "sync", trainers: 1, backups: 0 }],
  ])("of %s, in a job of %j", (dtype, synchronization) => {
    fc.assert(
      fc.property(
        twins,
        fc.array(call, { minLength: 1, maxLength: 5 }),
        fc.subarray([...SIZES.keys()]),
        ({ optimizer, isSparse, isSteady }, calls, updatedBefore) => {
          const [singles, batches] = [new Folded(synchronization), new Folded(synchronization)];
          const steady = isSteady && optimizer !== "none" ? { learningRate: 0.3 } : {};
          const stalenessScaling = optimizer !== "none" && synchronization === undefined;
          const config = fullConfig(optimizer, { sparse: isSparse, stalenessScaling, ...steady });
          for (const folded of [singles, batches]) {
            SIZES.forEach((size, i) => {
              const data = floats(dtype, size * COLUMNS, i);
              const place = { parameter: `p${i}`, shape: [size, COLUMNS] };
              folded.journal.init(data, { ...place, config });
            });
            if (synchronization !== undefined) {
              const members = { revision: 1, started: true, trainers: ["alice"] };
              folded.journal.host({ verb: "members", ...members });
            }
          }
          let step = 0;
          const sendBoth = (make: () => readonly BatchUpdate[]): void => {
            step += 1;
            const updates = make();
            sendSingles(singles, updates);
            batches.journal.batch(updates);
            if (synchronization === undefined) return;
            for (const { journal } of [singles, batches]) journal.clock("alice", step);
          };
          const gradientOf = (isSeen: boolean): PushOperation => {
            if (synchronization !== undefined) return { op: "grad", step };
            return isSeen ? { op: "grad", seen: 1 } : { op: "grad" };
          };
          // Some blocks have had more updates than others.
          if (updatedBefore.length > 0) {
            sendBoth(() =>
              updatedBefore.map((i) => ({
                parameter: `p${i}`,
                data: floats(dtype, (SIZES[i] as number) * COLUMNS, i + 7),
                change: { kind: "push", operation: gradientOf(false) },
              })),
            );
          }
          for (const { order, form, op, encoding, isSeen, seed } of calls) {
            const isPart = form === "rows" && op !== "set" && (isSparse || op === "mix");
            const isEncoded = dtype === "float32" && op !== "set" && encoding !== undefined;
            const encoded = isEncoded ? { encoding } : {};
            sendBoth(() =>
              order.map((i): BatchUpdate => {
                const size = SIZES[i] as number;
                // Every second row, which is all of a block of one.
                const rows = Uint32Array.from({ length: Math.ceil(size / 2) }, (_, row) => 2 * row);
                const count = (isPart ? rows.length : size) * COLUMNS;
                const data = floats(dtype, count, seed + i);
                if (op === "set") return { parameter: `p${i}`, data, change: { kind: "set" } };
                const operation =
                  op === "mix"
                    ? ({ op, alpha: 0.5, beta: 2 } as const)
                    : gradientOf(isSeen && i % 2 === 1);
                const part = isPart ? { part: { rows } } : {};
                const change = { kind: "push", operation, ...encoded, ...part } as const;
                return { parameter: `p${i}`, data, change };
              }),
            );
          }
          singles.apply();
          batches.apply();
          expect(batches.content()).toBe(singles.content());
          expect(batches.restored().digest()).toBe(batches.shard.digest());
        },
      ),
      { numRuns: 60 },
    );
  });
});

/** Two parameters, of which `a` takes gradients and `b` none of them. */
function twoBlocks(config: ParameterSettings = { optimizer: "none" }): Folded {
  const folded = new Folded();
  folded.journal.init(Float32Array.of(1, 2), { parameter: "a", config: { optimizer: "none" } });
  folded.journal.init(Float32Array.of(3, 4), { parameter: "b", config });
  folded.journal.declare(ONES, { parameter: "late", config });
  folded.apply();
  return folded;
}

function push(parameter: string, data: TensorData, more: Partial<BatchUpdate> = {}): BatchUpdate {
  return { parameter, data, change: { kind: "push", operation: GRAD }, ...more };
}

const ONES = Float32Array.of(1, 1);

describe("rejected as a whole, with the block in the message, if one of its entries", () => {
  test.each<[string, BatchUpdate, string, RegExp, ParameterSettings?]>([
    [
      "names an unknown block",
      push("c", ONES),
      "STALE_EPOCH",
      /^entry 1, number \d+: expected the present/,
    ],
    [
      "names one that has no values yet",
      push("late", ONES),
      "NOT_INITIALIZED",
      /^entry 1, "late" block 0: /,
    ],
    [
      "names a block elsewhere",
      push("b", ONES, { index: 7 }),
      "STALE_EPOCH",
      /^entry 1, number \d+: /,
    ],
    ["names a block again", push("a", ONES), "BAD_INDEX", /^entry 1, "a" block 0: /],
    ["is of another epoch", push("b", ONES, { epoch: 2 }), "STALE_EPOCH", /^entry 1, number \d+: /],
    [
      "is of another type",
      push("b", Float64Array.of(1, 1)),
      "BAD_DTYPE",
      /^entry 1, "b" block 0: /,
    ],
    [
      "is too short",
      push("b", Float32Array.of(1)),
      "BAD_LENGTH",
      /^entry 1, "b" block 0: expected 2 elements/,
    ],
    [
      "is not finite",
      push("b", Float32Array.of(1, Number.NaN)),
      "NON_FINITE",
      /^entry 1, "b" block 0: /,
    ],
    [
      "is of a static block",
      push("b", ONES),
      "STATIC",
      /^entry 1, "b" block 0: /,
      { static: true },
    ],
    [
      "names rows that are not there",
      push("b", ONES, {
        change: {
          kind: "push",
          operation: { op: "mix", alpha: 1, beta: 1 },
          part: { rows: Uint32Array.of(0, 2) },
        },
      }),
      "BAD_INDEX",
      /^entry 1, "b" block 0: part: /,
    ],
    [
      "has seen a version that is to come",
      push("b", ONES, { change: { kind: "push", operation: { op: "grad", seen: 2 } } }),
      "BAD_VALUE",
      /^entry 1, "b" block 0: seen: /,
    ],
    [
      "names a step",
      push("b", ONES, { change: { kind: "push", operation: { op: "grad", step: 2 } } }),
      "BAD_VALUE",
      /step: expected none/,
    ],
    [
      "initializes without leave",
      push("b", ONES, { change: { kind: "init" } }),
      "ALREADY_INITIALIZED",
      /^entry 1, "b" block 0: /,
    ],
  ])("%s", (_what, wrong, code, message, config) => {
    const folded = twoBlocks(config);
    const before = folded.content();
    folded.journal.batch([push("a", ONES), wrong]);
    expect(folded.run()).toEqual([
      { n: 3, seq: folded.shard.seq, version: 0, code, message: expect.stringMatching(message) },
    ]);
    expect(folded.content()).toBe(before);
    // The session goes on.
    folded.journal.batch([push("a", ONES), push("b", ONES)].slice(0, config?.static ? 1 : 2));
    folded.apply();
    expect(folded.block("a").version).toBe(2);
  });
});

describe("rejected for groups that no client writes, with the block in the message", () => {
  // Numbers, counts and norms of two entries are before their scales, and these before their codes.
  const [SCALES, CODES] = [32, 40];
  const second = { int8: CODES + 2, e3m0: CODES + 1 };

  test.each<[string, "int8" | "e3m0", (data: DataView) => void, string]>([
    ["a negative scale", "int8", (data) => data.setFloat32(SCALES + 4, -1, true), "BAD_VALUE"],
    [
      "an infinite scale",
      "e3m0",
      (data) => data.setUint32(SCALES + 4, 0x7f800000, true),
      "NON_FINITE",
    ],
    [
      "a scale that is NaN",
      "int8",
      (data) => data.setUint32(SCALES + 4, 0x7fc00000, true),
      "NON_FINITE",
    ],
    ["the code -128", "int8", (data) => data.setUint8(second.int8, 0x80), "BAD_VALUE"],
    ["the code of -0", "e3m0", (data) => data.setUint8(second.e3m0, 0x81), "BAD_VALUE"],
    ["codes behind the last one", "e3m0", (data) => data.setUint8(CODES + 3, 1), "BAD_MESSAGE"],
  ])("%s in %s", (_what, encoding, change, code) => {
    const folded = twoBlocks();
    const before = folded.content();
    const grouped = { change: { kind: "push", operation: GRAD, encoding } } as const;
    const { payload } = folded.journal.batch([push("a", ONES, grouped), push("b", ONES, grouped)]);
    const { fields, data } = decodeMessage(payload);
    change(new DataView(data.buffer, data.byteOffset, data.length));
    payload.set(encodeMessage(fields, data.slice()));
    const label = code === "BAD_MESSAGE" ? /^runs\[0\]: / : /^entry 1, "b" block 0: /;
    expect(folded.run()).toMatchObject([{ code, message: expect.stringMatching(label) }]);
    expect(folded.content()).toBe(before);
  });
});

test("is answered with no version, and once more with the same when it is repeated", () => {
  const folded = twoBlocks();
  const { subject, payload } = folded.journal.batch([push("a", ONES), push("b", ONES)]);
  const [first] = folded.run();
  expect(first).toEqual({ n: 3, seq: 7, version: 0 });
  const after = folded.content();
  folded.journal.append(subject, payload);
  expect(folded.run()).toEqual([first]);
  expect(folded.content()).toBe(after);
});

describe("init entries", () => {
  const init = (parameter: string): BatchUpdate => ({
    parameter,
    data: Float64Array.of(1, 2),
    change: { kind: "init" },
  });
  const declared = (limits: { blocksMax?: number; shardBytesMax?: number }): Folded => {
    const folded = new Folded(undefined, { knownRules: limitedRules(limits) });
    for (const parameter of ["a", "b", "c"]) {
      const config = { optimizer: "adam", learningRate: 1 };
      folded.journal.declare(init(parameter).data, { parameter, config });
    }
    folded.run();
    return folded;
  };

  test("create their blocks together", () => {
    const folded = declared({});
    folded.journal.batch([init("a"), init("b"), init("c")]);
    folded.apply();
    expect(
      [...folded.shard.blocks()].map(({ parameter, version }) => [parameter, version]),
    ).toEqual([
      ["a", 1],
      ["b", 1],
      ["c", 1],
    ]);
  });

  // Two elements, and two slots of adam.
  test.each([
    [{ blocksMax: 3 }, { blocksMax: 2 }],
    [{ shardBytesMax: 3 * 48 }, { shardBytesMax: 3 * 48 - 1 }],
  ])("count together against a limit: %j is enough, %j is not", (enough, tooFew) => {
    const fits = declared(enough);
    fits.journal.batch([init("a"), init("b"), init("c")]);
    fits.apply();
    const full = declared(tooFew);
    full.journal.batch([init("a"), init("b"), init("c")]);
    expect(full.run()).toMatchObject([
      { code: "TOO_LARGE", message: expect.stringMatching(/^entry 2, "c" block 0: /) },
    ]);
    expect([...full.shard.blocks()]).toEqual([]);
  });

  test("replace blocks of an older epoch without counting both", () => {
    const folded = declared({ shardBytesMax: 2 * 48 });
    folded.journal.batch([init("a"), init("b")]);
    folded.apply();
    for (const parameter of ["a", "b"]) {
      const { data } = init(parameter);
      const config = { optimizer: "adam", learningRate: 1 };
      folded.journal.declare(data, { parameter, config, epoch: 2 });
    }
    folded.journal.batch([
      { ...init("a"), epoch: 2 },
      { ...init("b"), epoch: 2 },
    ]);
    folded.apply();
    expect(folded.block("b").epoch).toBe(2);
  });
});

describe("in a step", () => {
  const synchronization: SynchronizationInput = { mode: "sync", trainers: 1, backups: 0 };
  const stepped = (): Folded => {
    const folded = new Folded(synchronization);
    initAll(folded);
    folded.journal.host({ verb: "members", revision: 1, started: true, trainers: ["alice"] });
    folded.journal.clock("alice", 1);
    folded.apply();
    return folded;
  };
  const [first, second] = MODELS;
  const at = (model: Model | undefined, step: number): BatchUpdate => {
    if (model === undefined) throw new Error("expected a model");
    return push(model.name, model.data, {
      change: { kind: "push", operation: { op: "grad", step } },
    });
  };

  test.each([
    ["LATE", "alice", 1],
    ["EARLY", "alice", 3],
    ["NOT_MEMBER", "bob", 2],
  ])("is %s as a whole", (code, trainer, step) => {
    const folded = stepped();
    const before = folded.content();
    folded.journal.batch([at(first, step), at(second, step)], { trainer });
    expect(folded.run()).toMatchObject([{ code }]);
    expect(folded.content()).toBe(before);
  });

  test("is LATE as a whole if one of its blocks has the trainer's gradient already", () => {
    const folded = stepped();
    folded.journal.batch([at(second, 2)]);
    folded.apply();
    const before = folded.content();
    folded.journal.batch([at(first, 2), at(second, 2)]);
    expect(folded.run()).toMatchObject([{ code: "LATE" }]);
    expect(folded.content()).toBe(before);
  });
});

test("whatever is changed in its bytes, it is applied, or rejected without a trace", () => {
  const change = fc.tuple(fc.nat(), fc.nat(255));
  fc.assert(
    fc.property(
      updatesOf(7, undefined),
      fc.array(change, { minLength: 1, maxLength: 3 }),
      (updates, changes) => {
        const folded = new Folded();
        initAll(folded);
        const before = folded.content();
        const { subject, payload } = folded.journal.batch(updates);
        const bytes = payload.slice();
        for (const [at, value] of changes) bytes[10 + (at % (bytes.length - 10))] = value;
        folded.journal.records.pop();
        folded.journal.append(subject, sealMessage({ bytes, data: bytes.subarray(10) }));
        const [outcome] = folded.run();
        const isUnreadable = folded.shard.senders.unreadable > 0;
        if (outcome?.code !== undefined) expect(folded.content()).toBe(before);
        expect(outcome === undefined).toBe(isUnreadable);
        // The shard goes on.
        folded.journal.batch(updates.slice(0, 1), { trainer: "bob" });
        expect(folded.run()).toHaveLength(1);
      },
    ),
    { numRuns: 100 },
  );
});
