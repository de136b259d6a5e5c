import fc from "fast-check";
import { decodeMessage, encodeMessage, type Fields } from "../../../src/protocol/codec.ts";
import type { SynchronizationInput } from "../../../src/protocol/config/index.ts";
import type { BatchUpdate } from "./batch-payload.ts";
import { Folded } from "./folded.ts";

/** A record as it stands in the journal. */
export interface Sample {
  readonly subject: string;
  readonly payload: Uint8Array;
}

const ROWS = Float32Array.from({ length: 12 }, (_, i) => i);
const PART = { rows: Uint32Array.of(0, 2), inner: Uint32Array.of(1) };

/** A shard with blocks of several kinds. */
export function folded(synchronization?: SynchronizationInput): Folded {
  const shard = new Folded(synchronization);
  const { journal } = shard;
  if (synchronization !== undefined) {
    journal.host({ verb: "members", revision: 1, started: true, trainers: ["alice", "bob"] });
  }
  journal.init(Float32Array.of(1, 2, 3), { config: { learningRate: 0.5 } });
  const rows = { parameter: "rows", shape: [4, 3] };
  journal.init(ROWS, { ...rows, config: { optimizer: "adagrad", learningRate: 1, sparse: true } });
  const momentum = { optimizer: "momentum", learningRate: 0.1, clipNorm: 1 };
  journal.init(Float64Array.of(1, 2), { parameter: "m", config: momentum });
  journal.init(BigInt64Array.of(1n, 2n), { parameter: "count", config: { optimizer: "none" } });
  journal.declare(Float32Array.of(7, 8), { parameter: "new", trainer: "bob" });
  shard.apply();
  return shard;
}

/** Sound records of hosts of every kind but `rules`, none of them folded. */
export function hostSamples(): Sample[] {
  const { journal } = folded();
  const first = journal.records.length;
  journal.host({ verb: "members", revision: 2, started: true, trainers: ["alice", "bob"] });
  journal.declare(Float32Array.of(1, 2), { parameter: "later", trainer: "bob" });
  journal.host({ verb: "drop", parameter: "w", epoch: 1 });
  journal.host({ verb: "floor", session: 1 });
  journal.host({ verb: "sessions", upTo: 2, live: [1] });
  journal.host({ verb: "forget", trainers: [["bob", 1]] });
  return journal.records.slice(first);
}

/** Sound records of every kind of "bob", none of them folded. */
export function samples(): Sample[] {
  const { journal } = folded();
  const sender = { trainer: "bob" };
  const first = journal.records.length;
  journal.push(Float32Array.of(1, 1, 1), { op: "grad" }, sender);
  journal.push(Float32Array.of(1, 1, 1), { op: "grad", seen: 1 }, { ...sender, norm: null });
  journal.push(Float32Array.of(1, 1, 1), { op: "grad" }, { ...sender, encoding: "bfloat16" });
  journal.push(Float32Array.of(1, 1, 1), { op: "grad" }, { ...sender, encoding: "int8" });
  journal.push(Float32Array.of(1, 1, 1), { op: "grad" }, { ...sender, encoding: "e3m0" });
  journal.push(
    Float64Array.of(1, 1),
    { op: "mix", alpha: 0.5, beta: 2 },
    { ...sender, parameter: "m" },
  );
  const part = { ...sender, parameter: "rows", part: PART };
  journal.push(Float32Array.of(1, 2), { op: "mix", alpha: 1, beta: 1 }, part);
  const rows = { ...part, part: { rows: Uint32Array.of(1, 3) } };
  journal.push(new Float32Array(6).fill(1), { op: "grad" }, rows);
  // Parts of blocks whose elements cannot be encoded.
  const one = { rows: Uint32Array.of(1) };
  const mix = { op: "mix", alpha: 1, beta: 1 } as const;
  journal.push(Float64Array.of(1), mix, { ...sender, parameter: "m", part: one });
  journal.push(BigInt64Array.of(1n), mix, { ...sender, parameter: "count", part: one });
  journal.set(BigInt64Array.of(5n, 6n), { ...sender, parameter: "count" });
  journal.note({ loss: 1, mark: "here", isGood: true }, sender);
  journal.clock("bob", 1);
  const batch: BatchUpdate[] = [
    { parameter: "count", data: BigInt64Array.of(1n, 1n), change: { kind: "set" } },
    {
      parameter: "rows",
      data: new Float32Array(6).fill(1),
      change: {
        ...{ kind: "push", operation: { op: "grad" } },
        part: { rows: Uint32Array.of(0, 3) },
      },
    },
    {
      parameter: "w",
      data: Float32Array.of(1, 1, 1),
      change: { kind: "push", operation: { op: "grad", seen: 1 }, encoding: "float16" },
    },
  ];
  journal.batch(batch, sender);
  for (const encoding of ["int8", "e3m0"] as const) {
    const update = { data: Float32Array.of(1, -2, 3), parameter: "w" };
    const grouped = { kind: "push", operation: { op: "grad" }, encoding } as const;
    const rest = { data: Float32Array.of(1, 2), parameter: "rows" };
    const rows = { part: { rows: Uint32Array.of(2) } };
    const both = [
      { ...update, change: grouped },
      { ...rest, change: { ...grouped, ...rows } },
    ];
    journal.batch(both, sender);
  }
  const init = { kind: "init" } as const;
  journal.batch([{ parameter: "new", data: Float32Array.of(7, 8), change: init }], sender);
  return journal.records.slice(first);
}

const nasty = fc.oneof(
  fc.constantFrom<unknown>(
    ...[0, -1, 1, 2, 0.5, 1024, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER, 2 ** 53, -(2 ** 53)],
    ...[
      Number.NaN,
      Number.POSITIVE_INFINITY,
      1e308,
      5e-324,
      true,
      false,
      null,
      "",
      "w",
      "__proto__",
    ],
    ...["alice", "ps.test.inbox.alice.1", "grad", "mix", "float32", "x".repeat(2000)],
    ...[[], {}, [[]], [0], [[0, 1, 2, 3]], [-1], ["w"], { op: "grad" }, { alpha: 1, beta: 1 }],
  ),
  fc.integer(),
  fc.double(),
  fc.string({ maxLength: 8 }),
  fc.uint8Array({ maxLength: 8 }),
  fc.array(fc.integer({ min: -2, max: 5 }), { maxLength: 5 }),
);

/** A change of one value somewhere within entries: the numbers choose the way to it. */
interface EntryChange {
  readonly way: readonly number[];
  readonly how: "replace" | "remove" | "add";
  readonly value: unknown;
}
const entryChange: fc.Arbitrary<EntryChange> = fc.record({
  way: fc.array(fc.nat(20), { minLength: 1, maxLength: 5 }),
  how: fc.constantFrom("replace", "remove", "add"),
  value: nasty,
});

/** Values that an entry of a record may have in some record, by its name. */
const LIKELY: Readonly<Record<string, readonly unknown[]>> = {
  dtype: ["int32", "uint32", "int64", "uint64", "float32", "float64", "bfloat16"],
  encoding: ["bfloat16", "float16", "int8", "e3m0", "float32", undefined],
  scales: [0, 1, 2, 2 ** 31, undefined],
  codes: [0, 1, 2, 3, 2 ** 31, undefined],
  part: [[1], [2, 1], [2 ** 31], [1, 0], undefined],
  op: ["grad", "mix", "init"],
  ...{ alpha: [0, 0.5, -1, Number.NaN], beta: [1, 1e308], lr: [0, 0.5, -1, Number.NaN] },
  ...{ norm: [0, 1, Number.NaN, Number.POSITIVE_INFINITY, undefined], seen: [1, 2, 2 ** 40, [1]] },
  ...{ step: [1, 2, 7, 2 ** 40, undefined], epoch: [1, 2, 2 ** 53 - 1] },
  ...{ session: [1, 2, 2 ** 53 - 1], n: [1, 2, 3, 9, 2 ** 53 - 1], done: [0, 1, 8] },
  reply: ["", "_INBOX_test.t.alice.1", "elsewhere"],
  ...{ shape: [[2], [4, 3], [1, 2], [2 ** 40]], start: [0, 1], count: [1, 2, 3] },
  ...{ parameter: ["w", "rows", "m", "count", "new", "gone"], verb: ["push", "set", "init"] },
  ...{ config: [{}, { optimizer: "adam", learningRate: 1 }], runs: [[], [{}]] },
  ...{ entries: [0, 1, 2, 4097], elements: [1, 2, 3, 6], norms: [true, 1] },
  note: [{}, { mark: "x", loss: -0.5 }, { deep: {} }, { "": 1 }, { text: "\ud7ff", big: 2 ** 60 }],
};

/** Another likely value for an entry of a record, or of one of the runs of a batch. */
interface LikelyChange {
  readonly name: string;
  readonly value: unknown;
  readonly run: number;
}
const likelyChange: fc.Arbitrary<LikelyChange> = fc
  .constantFrom(
    ...Object.keys(LIKELY),
    ...["dtype", "encoding", "part"].flatMap((name) => [name, name, name]),
  )
  .chain((name) =>
    fc.record({
      name: fc.constant(name),
      value: fc.constantFrom<unknown>(...(LIKELY[name] ?? [])),
      run: fc.nat(3),
    }),
  );

function withLikely(fields: Fields, { name, value, run }: LikelyChange): Fields {
  const { runs } = fields;
  if (!Array.isArray(runs) || run >= runs.length) return { ...fields, [name]: value };
  return {
    ...fields,
    runs: runs.map((each, i) => (i === run ? { ...each, [name]: value } : each)),
  };
}

/** A change of the bytes behind the entries. */
type DataChange =
  | { readonly kind: "cut"; readonly at: number }
  | { readonly kind: "append"; readonly bytes: Uint8Array }
  | { readonly kind: "overwrite"; readonly at: number; readonly byte: number };
const dataChange: fc.Arbitrary<DataChange> = fc.oneof(
  fc.record({ kind: fc.constant("cut"), at: fc.nat(80) }),
  fc.record({ kind: fc.constant("append"), bytes: fc.uint8Array({ maxLength: 16 }) }),
  fc.record({ kind: fc.constant("overwrite"), at: fc.nat(80), byte: fc.nat(255) }),
);
/** A value with another one at the end of the way. */
function changed(value: unknown, { way, how, value: other }: EntryChange): unknown {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return other;
  const entries = Object.entries(value);
  const [choice = 0, ...rest] = way;
  const entry = entries[choice % Math.max(1, entries.length)];
  if (entry === undefined || (rest.length === 0 && how === "add")) entries.push(["rows", other]);
  else if (rest.length > 0) entry[1] = changed(entry[1], { way: rest, how, value: other });
  else if (how === "remove") entries.splice(entries.indexOf(entry), 1);
  else entry[1] = other;
  return Array.isArray(value) ? entries.map(([, each]) => each) : Object.fromEntries(entries);
}

function changedBytes(data: Uint8Array, change: DataChange): Uint8Array {
  if (change.kind === "cut") return data.slice(0, change.at);
  if (change.kind === "append") return Buffer.concat([data, change.bytes]);
  const bytes = data.slice();
  if (bytes.length > 0) bytes[change.at % bytes.length] = change.byte;
  return bytes;
}

/** As many entries as a message takes beside its version, checksum and tensor bytes. */
const ENTRIES_MAX = 12;

/** Often nothing: one change more may hide what another one leads to. */
function atTimes<Change>(change: fc.Arbitrary<Change>): fc.Arbitrary<Change[]> {
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant<Change[]>([]) },
    { weight: 1, arbitrary: fc.array(change, { minLength: 1, maxLength: 2 }) },
  );
}

/** A record that comes of sound ones. */
export const mutant = (sound: readonly Sample[]): fc.Arbitrary<Sample> =>
  fc
    .record({
      sample: fc.constantFrom(...sound),
      subject: fc.option(fc.constantFrom(...sound), { freq: 5 }),
      // Most others would have the number of one that was folded before, and so would not be checked.
      n: fc.integer({ min: 1, max: 1000 }),
      likely: fc.array(likelyChange, { maxLength: 2 }),
      entries: atTimes(entryChange),
      data: atTimes(dataChange),
    })
    .map(({ sample, subject, n, likely, entries, data }) => {
      const message = decodeMessage(sample.payload);
      const { fields: sound } = message;
      const numbered = sound["n"] === undefined ? sound : { ...sound, n };
      const nearly = likely.reduce(withLikely, numbered);
      const all = Object.entries(entries.reduce<unknown>(changed, nearly) as Fields);
      const fields: Fields = Object.fromEntries(all.slice(-ENTRIES_MAX));
      const bytes = data.reduce(changedBytes, message.data);
      const payload = encodeMessage(fields, message.data.length > 0 ? bytes : undefined);
      return { subject: (subject ?? sample).subject, payload };
    });
