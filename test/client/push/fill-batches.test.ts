// Proves that the small updates of a call go together by shard, within the limits of batches and the
// broker's, that large ones and lonely ones go alone, and that a batch says of every block what its own
// record would say.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SeenVersions } from "../../../src/client/calls/parameters.ts";
import type { UpdateSource } from "../../../src/client/io/update-sender.ts";
import { planRows, slicePart } from "../../../src/client/part-plan.ts";
import {
  gradientUpdates,
  initUpdates,
  type Push,
  partUpdates,
  pushUpdates,
  setUpdates,
} from "../../../src/client/push/block-updates.ts";
import { fillBatches } from "../../../src/client/push/updates.ts";
import {
  BATCH_BYTES,
  BATCH_ENTRIES_MAX,
  blockPlace,
  blockRows,
  computeLayout,
  type Dtype,
  decodeMessage,
  JobSubjects,
  type ParameterInfo,
  parseBatch,
  parseRecordHeader,
  parseTrainerRecord,
  readPackedIndex,
  readPartIndex,
  type Synchronization,
  type TrainerVerb,
  toConfig,
} from "../../../src/protocol/index.ts";
import { recordsOf, valuesOf } from "./sent-calls.ts";

const SENDER = { subjects: new JobSubjects("j"), trainer: "t" };
const HEAD = { session: 2, n: 9, done: 3, reply: "_INBOX_j.t.applied" };
const OPTIONS = {
  subject: (shard: number): string => SENDER.subjects.batch(shard, "t"),
  payloadBytesMax: 8 * 1024 * 1024,
  separatesIntegers: false,
};
const GRAD: Push = { norm: 3, operation: () => ({ op: "grad", lr: 0.5 }) };

function infoOf(
  name: string,
  shape: readonly number[],
  more: { dtype?: Dtype; shards?: number; sparse?: boolean } = {},
): ParameterInfo {
  const { dtype = "float32", shards = 4, sparse = false } = more;
  const config = toConfig({ learningRate: 1, sparse });
  const payload = { maxPayloadBytes: OPTIONS.payloadBytesMax, wholeRows: sparse };
  const layout = computeLayout({ name, dtype, shape, shards, ...payload });
  return { name, dtype, shape, config, epoch: 1, ready: true, layout };
}

/** Gradients of as many parameters of one block, all of one size. */
function small(count: number, elements: number, shards?: number): UpdateSource[] {
  return Array.from({ length: count }, (_, i) => {
    const info = infoOf(`p${i}`, [elements], shards === undefined ? {} : { shards });
    return pushUpdates(SENDER, info, new Float32Array(elements).fill(i), GRAD);
  }).flat();
}

/** What a record says of each of its blocks, with the elements as bytes. */
function contents(source: UpdateSource, shapeOf: (name: string) => readonly number[]): unknown[] {
  const message = decodeMessage(source.draft(HEAD, true));
  const header = parseRecordHeader(message.fields);
  if (source.subject === OPTIONS.subject(source.shard)) {
    return parseBatch(header, message, BATCH_ENTRIES_MAX).map(
      ({ parameter, index, record, data }) => {
        const counts = record.verb === "push" ? record.part : undefined;
        if (counts === undefined) return { parameter, index, record, elements: [...data] };
        const shape = shapeOf(parameter);
        const info = infoOf(parameter, shape, { sparse: true });
        const rows = blockRows({ shape, ...blockPlace(info.layout, index) });
        const { elements, ...part } = readPackedIndex(counts, data, rows);
        return { parameter, index, record, part, elements: [...elements] };
      },
    );
  }
  const parsed = SENDER.subjects.parseLog(source.subject);
  if (parsed.by !== "trainer") throw new Error(`unexpected subject ${source.subject}`);
  const { parameter, index } = parsed;
  const record = parseTrainerRecord(parsed.verb as TrainerVerb, header, message);
  const counts = record.verb === "push" ? record.part : undefined;
  if (counts === undefined) return [{ parameter, index, record, elements: [...message.data] }];
  const shape = shapeOf(parameter);
  const info = infoOf(parameter, shape, { sparse: true });
  const rows = blockRows({ shape, ...blockPlace(info.layout, index) });
  const { elements, ...part } = readPartIndex(counts, message.data, rows);
  return [{ parameter, index, record, part, elements: [...elements] }];
}

describe("joined by shard", () => {
  test("all small updates of a call", () => {
    const filled = fillBatches(small(100, 16), OPTIONS);
    expect(filled.map(({ shard }) => shard).sort()).toEqual([0, 1, 2, 3]);
    expect(filled.reduce((sum, { blocks }) => sum + blocks, 0)).toBe(100);
    for (const { subject, shard } of filled) expect(subject).toBe(OPTIONS.subject(shard));
  });

  test("an update that is alone in its shard stays a record of its block", () => {
    const [one, ...none] = small(1, 16);
    expect(fillBatches([one as UpdateSource], OPTIONS)).toEqual([one]);
    expect(none).toEqual([]);
  });

  test("large updates stay alone, and keep their places among themselves", () => {
    const large = small(3, 64 * 1024, 1);
    const mixed = [large[0], ...small(4, 16, 1), large[1], large[2]] as UpdateSource[];
    const filled = fillBatches(mixed, OPTIONS);
    expect(filled.filter(({ blocks }) => blocks === 1)).toEqual(large);
    expect(filled.map(({ blocks }) => blocks)).toEqual([1, 4, 1, 1]);
  });

  test("inits are joined, with space for shapes and configurations", () => {
    const inits = [0, 1].flatMap((i) => {
      const data = new Float32Array(2);
      return initUpdates(SENDER, infoOf(`p${i}`, [2], { shards: 1 }), {
        dtype: "float32",
        shape: [2],
        data,
      });
    });
    expect(fillBatches(inits, OPTIONS).map(({ blocks }) => blocks)).toEqual([2]);
  });

  test("integers stay apart only where gradients of floats wait for a step", () => {
    const integers = [0, 1].flatMap((i) =>
      pushUpdates(SENDER, infoOf(`i${i}`, [2], { dtype: "int32", shards: 1 }), new Int32Array(2), {
        operation: () => ({ op: "grad" }),
      }),
    );
    const all = [...small(2, 2, 1), ...integers];
    expect(fillBatches(all, OPTIONS).map(({ blocks }) => blocks)).toEqual([4]);
    const apart = fillBatches(all, { ...OPTIONS, separatesIntegers: true });
    expect(apart.map(({ blocks }) => blocks)).toEqual([2, 2]);
  });

  test.each<[Synchronization, number]>([
    [{ mode: "async" }, 1],
    [{ mode: "ssp", trainers: 2, staleness: 1 }, 1],
    [{ mode: "sync", trainers: 2, reduce: "mean", backups: 0 }, 2],
  ])(
    "gradients of floats and of integers, in a job of %j: %i records",
    async (synchronization, count) => {
      const floats = ["a", "b"].map((name) => infoOf(name, [2], { shards: 1 }));
      const integers = ["c", "d"].map((name) => {
        const config = toConfig({ optimizer: "none" });
        return { ...infoOf(name, [2], { dtype: "int64", shards: 1 }), config };
      });
      const parameters = [...floats, ...integers];
      const job = { synchronization, payloadBytes: 1 << 20, seen: [], parameters };
      const values = parameters.map((info) => ({ name: info.name, data: valuesOf(info, () => 1) }));
      expect(await recordsOf(job, [{ kind: "sendGrads", values }])).toHaveLength(count);
    },
  );
});

test("the window counts the data of a batch as it is sent, with what fills entries up", () => {
  const [batch, ...others] = fillBatches(small(5, 3, 1), OPTIONS);
  expect([batch?.blocks, others]).toEqual([5, []]);
  const sent = decodeMessage(batch?.draft(HEAD, true) ?? new Uint8Array(0)).data;
  expect([batch?.dataBytes, sent.length]).toEqual([5 * 16, 5 * 16]);
});

describe("a batch ends", () => {
  test("at 1 MiB of elements", () => {
    const filled = fillBatches(small(17, 32 * 1024, 1), OPTIONS);
    expect(filled.map(({ blocks }) => blocks)).toEqual([8, 8, 1]);
    for (const { dataBytes } of filled) expect(dataBytes).toBeLessThanOrEqual(BATCH_BYTES);
  });

  test("at its most blocks", () => {
    const info = infoOf("t", [6000 * 2], { shards: 1 });
    const layout = { ...info.layout, blockElements: 2, blocks: 6000 };
    const cut = { ...info, layout };
    const filled = fillBatches(pushUpdates(SENDER, cut, new Float32Array(12_000), GRAD), OPTIONS);
    expect(filled.map(({ blocks }) => blocks)).toEqual([BATCH_ENTRIES_MAX, 6000 - 4096]);
  });

  test("where the header would become too long", () => {
    const filled = fillBatches(small(4096, 1, 1), OPTIONS);
    expect(filled.length).toBeGreaterThan(1);
    for (const one of filled) expect(contents(one, () => [1])).toHaveLength(one.blocks);
  });

  test("where the broker takes no larger message", () => {
    const payloadBytesMax = 256 * 1024;
    const filled = fillBatches(small(100, 1024, 1), { ...OPTIONS, payloadBytesMax });
    expect(filled.length).toBeGreaterThan(1);
    for (const one of filled) {
      expect(one.draft(HEAD, true).length).toBeLessThanOrEqual(payloadBytesMax);
    }
  });

  test("where a block comes again", () => {
    const update = small(1, 4)[0] as UpdateSource;
    expect(fillBatches([update, update, update], OPTIONS)).toEqual([update, update, update]);
  });
});

test("a batch says of each block what its own record says", () => {
  const shapes = new Map<string, readonly number[]>([
    ["rows", [30_000, 64]],
    ["set", [5]],
    ["push", [7]],
    ["seen", [3]],
  ]);
  const rowsInfo = infoOf("rows", [30_000, 64], { sparse: true });
  const rows = fc
    .uniqueArray(fc.nat(29_999), { minLength: 1, maxLength: 20 })
    .map((list) => Float64Array.from(list).sort());
  fc.assert(
    fc.property(rows, fc.nat(100), (numbers, seed) => {
      const values = Float32Array.from({ length: numbers.length * 64 }, (_, i) => i + seed);
      const slices = planRows(rowsInfo, numbers).flatMap((part) => slicePart(part, 0, 1e9));
      const data = (count: number): Float32Array => new Float32Array(count).fill(seed);
      const set = { dtype: "float32", shape: [5], data: data(5) } as const;
      const seen: Push = {
        namesVersion: () => true,
        operation: (_block, isNamed) => (isNamed ? { op: "grad", seen: 4 } : { op: "grad" }),
      };
      const updates = [
        ...partUpdates(SENDER, rowsInfo, slices, values, GRAD),
        ...setUpdates(SENDER, infoOf("set", [5]), set),
        ...pushUpdates(SENDER, infoOf("push", [7]), data(7), { ...GRAD, encoding: "bfloat16" }),
        ...pushUpdates(SENDER, infoOf("seen", [3]), data(3), seen),
      ];
      const shapeOf = (name: string): readonly number[] => shapes.get(name) ?? [];
      const byBlock = (all: unknown[]): unknown[] =>
        all.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
      const batches = fillBatches(updates, OPTIONS);
      expect(batches.length).toBeLessThanOrEqual(4);
      expect(byBlock(batches.flatMap((one) => contents(one, shapeOf)))).toEqual(
        byBlock(updates.flatMap((one) => contents(one, shapeOf))),
      );
    }),
    { numRuns: 30 },
  );
});

test("gradients name the versions they were made from, and none once they belong to a step", () => {
  const seen = new SeenVersions();
  const info = infoOf("p", [4], { shards: 1 });
  seen.note(info, 0, 7);
  let step: number | undefined;
  const mode = { ...SENDER, seen, step: () => step, learningRate: 1, encoding: undefined };
  const updates = ["p", "p"].flatMap(() => gradientUpdates(info, new Float32Array(4), mode));
  const sources = [...updates, ...fillBatches(updates, OPTIONS)];
  expect(sources.map(({ namesVersion }) => namesVersion)).toEqual(sources.map(() => true));
  // The step is known when the call's turn comes, after its updates were made.
  step = 3;
  expect(sources.map(({ namesVersion }) => namesVersion)).toEqual(sources.map(() => false));
});
