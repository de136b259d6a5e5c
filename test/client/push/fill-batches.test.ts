// Proves that the small updates of a call go together by shard, within the limits of batches and the
// broker's, that large ones and lonely ones go alone, and that a batch says of every block what its own
// record would say.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { entryPart, entryPayload, offsetsOf } from "../../../src/actors/fold/batch/run-change.ts";
import { SeenVersions } from "../../../src/client/calls/parameters.ts";
import type { UpdateSource } from "../../../src/client/io/update-sender.ts";
import { planRows, slicePart } from "../../../src/client/part-plan.ts";
import { addGradient, addTensor } from "../../../src/client/push/block-updates.ts";
import type { UpdateKind } from "../../../src/client/push/tensor-update.ts";
import { UpdateCollector } from "../../../src/client/push/update-collector.ts";
import {
  allocateData,
  BATCH_BYTES,
  BATCH_ENTRIES_MAX,
  blockPlace,
  blockRows,
  computeLayout,
  type Dtype,
  decodeMessage,
  elementCount,
  hashName,
  JobSubjects,
  type ParameterInfo,
  parseBatch,
  parseRecordHeader,
  parseTrainerRecord,
  readPartIndex,
  type Synchronization,
  type TrainerVerb,
  toConfig,
} from "../../../src/protocol/index.ts";
import { recordsOf, valuesOf } from "./sent-calls.ts";

const SENDER = { subjects: new JobSubjects("j"), trainer: "t" };
const HEAD = { session: 2, n: 9, done: 3, reply: "_INBOX_j.t.applied" };
const OPTIONS = { sender: SENDER, payloadBytesMax: 8 * 1024 * 1024, separatesIntegers: false };
const GRAD: UpdateKind = { verb: "push", operation: { op: "grad", lr: 0.5 } };

function infoOf(
  name: string,
  shape: readonly number[],
  more: { dtype?: Dtype; shards?: number; sparse?: boolean } = {},
): ParameterInfo {
  const { dtype = "float32", shards = 4, sparse = false } = more;
  const config = toConfig({ learningRate: 1, sparse });
  const payload = { maxPayloadBytes: OPTIONS.payloadBytesMax, wholeRows: sparse };
  const layout = computeLayout({ name, dtype, shape, shards, ...payload });
  const firstNumber = 1 + (hashName(name) % 2 ** 31);
  return { name, dtype, shape, config, epoch: 1, ready: true, layout, firstNumber };
}

/** Parameters of one block, all of one size. */
function small(count: number, elements: number, shards = 4): ParameterInfo[] {
  return Array.from({ length: count }, (_, i) => infoOf(`p${i}`, [elements], { shards }));
}

/** The records of gradients of whole parameters. */
function filled(
  infos: readonly ParameterInfo[],
  options: Partial<typeof OPTIONS> & { readonly isSingle?: boolean } = {},
  kind: UpdateKind = GRAD,
): UpdateSource[] {
  const collector = new UpdateCollector(kind, { ...OPTIONS, ...options });
  for (const info of infos) {
    const data = allocateData(info.dtype, elementCount(info.shape));
    if (data instanceof Float32Array) data.fill(hashName(info.name));
    addTensor(collector, info, data, 3);
  }
  return collector.finish();
}

const blocksOf = (sources: readonly UpdateSource[]): number[] =>
  sources.map(({ blocks }) => blocks);

/** What a record says of each of its blocks, by the block's number, with the elements as bytes. */
function contents(source: UpdateSource, infos: ReadonlyMap<string, ParameterInfo>): unknown[] {
  const message = decodeMessage(source.draft(HEAD, true));
  const parsed = SENDER.subjects.parseLog(source.subject);
  if (parsed.by === "batch") {
    return parseBatch(message, BATCH_ENTRIES_MAX).runs.flatMap((run) =>
      [...run.numbers].map((number, place) => {
        const { verb, dtype, encoding, operation, norms, seen } = run;
        const offsets = offsetsOf(run, place);
        const named = seen?.[place] ? { ...operation, seen: seen[place] } : operation;
        const norm = verb === "push" ? (norms?.[place] ?? 0) : undefined;
        const part = entryPart(run, place, offsets);
        const elements = [...entryPayload(run, place, offsets).bytes];
        return { number, verb, dtype, encoding, operation: defined(named), norm, part, elements };
      }),
    );
  }
  if (parsed.by !== "trainer") throw new Error(`unexpected subject ${source.subject}`);
  const info = infos.get(parsed.parameter) as ParameterInfo;
  const header = parseRecordHeader(message.fields);
  const record = parseTrainerRecord(parsed.verb as TrainerVerb, header, message);
  const { verb, dtype } = record;
  const number = info.firstNumber + parsed.index;
  const push = record.verb === "push" ? record : undefined;
  const rows = blockRows({ shape: info.shape, ...blockPlace(info.layout, parsed.index) });
  const indexed = push?.part && readPartIndex(push.part, message.data, rows);
  const part = indexed && { rows: indexed.rows };
  return [
    {
      ...{ number, verb, dtype, encoding: push?.encoding },
      operation: push && defined(push.operation),
      norm: push && (push.norm ?? 0),
      ...{ part, elements: [...(indexed?.elements ?? message.data)] },
    },
  ];
}

function defined(operation: object | undefined): unknown {
  return operation && JSON.parse(JSON.stringify(operation));
}

describe("joined by shard", () => {
  test("all small updates of a call", () => {
    const sources = filled(small(100, 16));
    expect(sources.map(({ shard }) => shard).sort()).toEqual([0, 1, 2, 3]);
    expect(blocksOf(sources).reduce((sum, blocks) => sum + blocks, 0)).toBe(100);
    for (const { subject, shard } of sources) {
      expect(subject).toBe(SENDER.subjects.batch(shard, "t"));
    }
  });

  test("an update that is alone in its shard stays a record of its block", () => {
    const [one, ...none] = filled(small(1, 16));
    expect(SENDER.subjects.parseLog(one?.subject ?? "")).toMatchObject({ by: "trainer" });
    expect(none).toEqual([]);
  });

  test("large updates stay alone, and keep their places among themselves", () => {
    const large = ["x", "y", "z"].map((name) => infoOf(name, [64 * 1024], { shards: 1 }));
    const [x, y, z] = large as [ParameterInfo, ParameterInfo, ParameterInfo];
    const sources = filled([x, ...small(4, 16, 1), y, z]);
    expect(blocksOf(sources)).toEqual([1, 4, 1, 1]);
    const names = sources.flatMap(({ topic }) => (topic.kind === "blocks" ? topic.blocks : []));
    expect(names.map(({ parameter }) => parameter)).toEqual([
      "x",
      "p0",
      "p1",
      "p2",
      "p3",
      "y",
      "z",
    ]);
  });

  test("inits are joined", () => {
    expect(blocksOf(filled(small(2, 2, 1), {}, { verb: "init" }))).toEqual([2]);
  });

  test("integers stay apart only where gradients of floats wait for a step", () => {
    const integers = [0, 1].map((i) => infoOf(`i${i}`, [2], { dtype: "int32", shards: 1 }));
    const all = [...small(2, 2, 1), ...integers];
    expect(blocksOf(filled(all))).toEqual([4]);
    expect(blocksOf(filled(all, { separatesIntegers: true }))).toEqual([2, 2]);
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

test("the window counts no less data of a batch than is sent", () => {
  const [batch, ...others] = filled(small(5, 3, 1));
  expect([batch?.blocks, others]).toEqual([5, []]);
  const sent = decodeMessage(batch?.draft(HEAD, true) ?? new Uint8Array(0)).data;
  expect(batch?.dataBytes).toBeGreaterThanOrEqual(sent.length);
});

describe("a batch ends", () => {
  test("at 1 MiB of elements", () => {
    const sources = filled(small(17, 32 * 1024, 1));
    expect(blocksOf(sources)).toEqual([8, 8, 1]);
    expect(8 * 32 * 1024 * 4).toBe(BATCH_BYTES);
  });

  test("at its most blocks", () => {
    const info = infoOf("t", [6000 * 2], { shards: 1 });
    const cut = { ...info, layout: { ...info.layout, blockElements: 2, blocks: 6000 } };
    expect(blocksOf(filled([cut]))).toEqual([BATCH_ENTRIES_MAX, 6000 - 4096]);
  });

  test("where the broker takes no larger message", () => {
    const payloadBytesMax = 256 * 1024;
    const sources = filled(small(100, 1024, 1), { payloadBytesMax });
    expect(sources.length).toBeGreaterThan(1);
    for (const one of sources) {
      expect(one.draft(HEAD, true).length).toBeLessThanOrEqual(payloadBytesMax);
    }
  });

  test("where a block comes again", () => {
    const [info] = small(1, 4) as [ParameterInfo];
    expect(blocksOf(filled([info, info, info]))).toEqual([1, 1, 1]);
  });
});

test("a batch says of each block what its own record says", () => {
  const rowsInfo = infoOf("rows", [30_000, 64], { sparse: true });
  const wholes = [5, 7, 3, 7].map((size, i) => infoOf(`whole ${i}`, [size]));
  const double = infoOf("double", [3], { dtype: "float64" });
  const infos = new Map([rowsInfo, ...wholes, double].map((info) => [info.name, info]));
  const rows = fc
    .uniqueArray(fc.nat(29_999), { minLength: 1, maxLength: 20 })
    .map((list) => Float64Array.from(list).sort());
  const kinds: readonly UpdateKind[] = [
    { ...GRAD, step: () => undefined },
    { verb: "push", operation: { op: "mix", alpha: 0.5, beta: 2 } },
    { verb: "set" },
    { verb: "init" },
  ];
  const kind = fc.constantFrom(...kinds);
  fc.assert(
    fc.property(rows, fc.nat(100), kind, fc.boolean(), (numbers, seed, chosen, isEncoded) => {
      const isPush = chosen.verb === "push";
      const encoded = isPush && isEncoded ? ({ ...chosen, encoding: "bfloat16" } as const) : chosen;
      const seen = new SeenVersions();
      if (chosen.step !== undefined) seen.note(wholes[2]?.firstNumber ?? 0, 4);
      const collect = (isSingle: boolean): UpdateSource[] => {
        const collector = new UpdateCollector(encoded, { ...OPTIONS, isSingle });
        const values = Float32Array.from({ length: numbers.length * 64 }, (_, i) => i + seed);
        const slices = planRows(rowsInfo, numbers).flatMap((part) => slicePart(part, 0, 1e9));
        for (const slice of isPush ? slices : []) collector.addSlice(rowsInfo, slice, values, 3);
        for (const info of wholes) {
          const data = new Float32Array(info.layout.elements).fill(seed);
          addTensor(collector, info, data, isPush ? 2 : undefined, seen);
        }
        if (encoded.encoding === undefined) addTensor(collector, double, Float64Array.of(1, 2, 3));
        return collector.finish();
      };
      const byBlock = (all: unknown[]): unknown[] =>
        all.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
      const batches = collect(false);
      const singles = collect(true);
      expect(batches.length).toBeLessThanOrEqual(4);
      expect(blocksOf(singles)).toEqual(singles.map(() => 1));
      expect(byBlock(batches.flatMap((one) => contents(one, infos)))).toEqual(
        byBlock(singles.flatMap((one) => contents(one, infos))),
      );
    }),
    { numRuns: 40 },
  );
});

test("gradients name the versions they were made from, and none once they belong to a step", () => {
  const seen = new SeenVersions();
  const infos = small(2, 4, 1);
  for (const { firstNumber } of infos) seen.note(firstNumber, 7);
  let step: number | undefined;
  const kind: UpdateKind = { ...GRAD, step: () => step };
  const sources = [true, false].flatMap((isSingle) => {
    const collector = new UpdateCollector(kind, { ...OPTIONS, isSingle });
    const mode = { learningRate: 1, encoding: undefined, seen };
    for (const info of infos) addGradient(collector, info, new Float32Array(4), mode);
    return collector.finish();
  });
  expect(sources.map(({ namesVersion }) => namesVersion)).toEqual([true, true, true]);
  // The step is known when the call's turn comes, after its updates were made.
  step = 3;
  expect(sources.map(({ namesVersion }) => namesVersion)).toEqual([false, false, false]);
});
