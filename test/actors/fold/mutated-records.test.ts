// Proves that no record of a trainer can damage a shard, whatever it contains: sound records of every kind,
// with entries changed, added and left out, and bytes cut, added and overwritten, under a checksum that is
// right, are applied or rejected or ignored. A record that is not applied changes no block; the shard
// continues, and can be restored from its saved state.
import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeMessage, encodeMessage, type Fields } from "../../../src/protocol/codec.ts";
import type { SynchronizationInput } from "../../../src/protocol/config/index.ts";
import type { BatchUpdate } from "./batch-payload.ts";
import { Folded } from "./folded.ts";

/** How many records are changed: MUTATIONS, or as many as usual. */
const MUTATIONS = Number(process.env["MUTATIONS"] ?? 1500);

/** A record as it stands in the journal. */
interface Sample {
  readonly subject: string;
  readonly payload: Uint8Array;
}

const ROWS = Float32Array.from({ length: 12 }, (_, i) => i);
const PART = { rows: Uint32Array.of(0, 2), inner: Uint32Array.of(1) };

/** A shard with blocks of several kinds. */
function folded(synchronization?: SynchronizationInput): Folded {
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

/** Sound records of every kind of "bob", none of them folded. */
function samples(): Sample[] {
  const { journal } = folded();
  const sender = { trainer: "bob" };
  const first = journal.records.length;
  journal.push(Float32Array.of(1, 1, 1), { op: "grad" }, sender);
  journal.push(Float32Array.of(1, 1, 1), { op: "grad", seen: 1 }, { ...sender, norm: null });
  journal.push(Float32Array.of(1, 1, 1), { op: "grad" }, { ...sender, encoding: "bfloat16" });
  journal.push(
    Float64Array.of(1, 1),
    { op: "mix", alpha: 0.5, beta: 2 },
    { ...sender, parameter: "m" },
  );
  const part = { ...sender, parameter: "rows", part: PART };
  journal.push(Float32Array.of(1, 2), { op: "mix", alpha: 1, beta: 1 }, part);
  const rows = { ...part, part: { rows: Uint32Array.of(1, 3) } };
  journal.push(new Float32Array(6).fill(1), { op: "grad" }, rows);
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
        part: { index: { rows: Uint32Array.of(0, 3) }, shape: [4, 3] },
      },
    },
    {
      parameter: "w",
      data: Float32Array.of(1, 1, 1),
      change: { kind: "push", operation: { op: "grad", seen: 1 }, encoding: "float16" },
    },
  ];
  journal.batch(batch, sender);
  const init = { kind: "init", config: { learningRate: 0.5 } } as const;
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

/** A record that comes of sound ones. */
const mutant = (sound: readonly Sample[]): fc.Arbitrary<Sample> =>
  fc
    .record({
      sample: fc.constantFrom(...sound),
      subject: fc.option(fc.constantFrom(...sound), { freq: 5 }),
      entries: fc.array(entryChange, { maxLength: 3 }),
      data: fc.array(dataChange, { maxLength: 2 }),
    })
    .map(({ sample, subject, entries, data }) => {
      const message = decodeMessage(sample.payload);
      const fields = entries.reduce<unknown>(changed, message.fields) as Fields;
      const bytes = data.reduce(changedBytes, message.data);
      const payload = encodeMessage(fields, message.data.length > 0 ? bytes : undefined);
      return { subject: (subject ?? sample).subject, payload };
    });

test.each<[string, SynchronizationInput | undefined]>([
  ["async", undefined],
  ["sync", { mode: "sync", trainers: 2 }],
])("no mutated record hurts a shard of an %s job", (_mode, synchronization) => {
  const records = fc.array(mutant(samples()), { minLength: 1, maxLength: 8 });
  const seen = new Set<string>();
  fc.assert(
    fc.property(records, (mutants) => {
      const target = folded(synchronization);
      for (const { subject, payload } of mutants) {
        const before = target.content();
        target.journal.append(subject, payload);
        const [outcome] = target.run();
        const what = outcome === undefined ? "ignored" : (outcome.code ?? "applied");
        seen.add(what);
        if (what !== "applied") expect(target.content()).toBe(before);
      }
      expect(target.restored().digest()).toBe(target.shard.digest());
      // It goes on: that of a trainer whose numbers nobody has touched is applied.
      target.journal.set(BigInt64Array.of(1n, 1n), { trainer: "carol", parameter: "count" });
      expect(target.run()).toMatchObject([{ version: expect.any(Number) }]);
      expect(target.run().filter(({ code }) => code !== undefined)).toEqual([]);
    }),
    { numRuns: Math.ceil(MUTATIONS / 5) },
  );
  // The changes lead to sound records as well as to faults of many kinds.
  expect([...seen].sort()).toEqual(
    expect.arrayContaining(["BAD_LENGTH", "BAD_MESSAGE", "applied", "ignored"]),
  );
});
