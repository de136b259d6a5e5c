// Proves batch records: what is written comes back column by column, whatever the address of the message; columns that
// lie are refused before one is read that is not there, naming the run or the entry; and a change of any byte is refused,
// or gives columns that fit each other.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  decodeMessage,
  encodeMessage,
  type Fields,
  sealMessage,
} from "../../src/protocol/codec.ts";
import {
  DTYPES,
  type Dtype,
  ENCODINGS,
  type Encoding,
  encodedBytes,
  groupCount,
  isGrouped,
} from "../../src/protocol/dtypes.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { BATCH_ENTRIES_MAX, BATCH_RUNS_MAX } from "../../src/protocol/limits.ts";
import {
  type Batch,
  claimedEntries,
  parseBatch,
} from "../../src/protocol/messages/batch-records.ts";
import type { PushOperation } from "../../src/protocol/messages/records.ts";
import { counter, finiteNumber } from "./arbitraries.ts";
import { type FilledRun, WHOLE, writtenBatch } from "./batch-cases.ts";
import { refusalOf } from "./refusal.ts";

const HEAD = { session: 1, n: 2, done: 1, reply: "" };

const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const dtypes = fc.constantFrom(...(Object.keys(DTYPES) as Dtype[]));
const operations: fc.Arbitrary<PushOperation> = fc.oneof(
  fc.record({ op: fc.constant("mix" as const), alpha: finiteNumber, beta: finiteNumber }),
  fc.record({
    ...{ op: fc.constant("grad" as const), lr: fc.option(finiteNumber, { nil: undefined }) },
    ...{ step: fc.constant(undefined), seen: fc.constant(undefined) },
  }),
);

function numbersOf(count: number, min = 1): fc.Arbitrary<Uint32Array> {
  return fc
    .array(fc.integer({ min, max: 4 }), { minLength: count, maxLength: count })
    .map((list) => Uint32Array.from(list));
}

const ALL_ENCODINGS = Object.keys(ENCODINGS) as Encoding[];

const sum = (numbers: Uint32Array): number => numbers.reduce((total, each) => total + each, 0);

function run(entries: number): fc.Arbitrary<FilledRun> {
  const length = { minLength: entries, maxLength: entries };
  const floats = fc.option(
    fc.array(fc.double(), length).map((list) => Float64Array.from(list)),
    { nil: undefined },
  );
  const versions = fc.option(
    fc.array(counter, length).map((list) => Float64Array.from(list)),
    { nil: undefined },
  );
  return fc
    .record({
      verb: fc.constantFrom("init" as const, "push" as const, "set" as const),
      ...{
        dtype: dtypes,
        encoding: fc.constantFrom<Encoding | undefined>(undefined, ...ALL_ENCODINGS),
      },
      ...{ operation: operations, norms: floats, seen: versions },
      numbers: fc.array(uint32, length).map((list) => Uint32Array.from(list)),
      ...{ counts: numbersOf(entries), rows: numbersOf(entries), inner: numbersOf(entries) },
      form: fc.constantFrom("whole", "rows", "elements"),
    })
    .map((given): FilledRun => {
      const { verb, dtype, operation, numbers, counts, rows, inner, form } = given;
      const isPush = verb === "push";
      const encoding = isPush && dtype === "float32" ? given.encoding : undefined;
      const list = (lengths: Uint32Array): Uint32Array =>
        Uint32Array.from({ length: sum(lengths) }, (_, i) => i * 3);
      return {
        ...{ verb, dtype, encoding, operation: isPush ? operation : undefined, numbers, counts },
        parts:
          !isPush || form === "whole"
            ? undefined
            : {
                ...{ rows, rowList: list(rows) },
                inner: form === "rows" ? undefined : inner,
                innerList: form === "rows" ? undefined : list(inner),
              },
        norms: isPush ? given.norms : undefined,
        seen: isPush && operation.op === "grad" ? given.seen : undefined,
        ...valuesOf(dtype, encoding, counts),
      };
    });
}

/** Bytes in the place of values and scales, as many as entries of these lengths have. */
function valuesOf(dtype: Dtype, encoding: Encoding | undefined, counts: Uint32Array) {
  const numbered = (bytes: number): Uint8Array => new Uint8Array(bytes).map((_, i) => i);
  const groups = isGrouped(encoding) ? sum(counts.map(groupCount)) : 0;
  const all = counts.reduce((bytes, count) => bytes + encodedBytes(dtype, encoding, count), 0);
  return { scales: numbered(4 * groups), values: numbered(all - 4 * groups) };
}

const runs = fc.array(
  fc.integer({ min: 1, max: 6 }).chain((entries) => run(entries)),
  { minLength: 1, maxLength: 4 },
);

/** A batch, in a Buffer at an address that is no multiple of anything. */
function parse(bytes: Uint8Array, offset = 3): Batch {
  const moved = Buffer.concat([new Uint8Array(offset), bytes]).subarray(offset);
  return parseBatch(decodeMessage(moved), BATCH_ENTRIES_MAX);
}

test("runs come back as they were written, at any address", () => {
  fc.assert(
    fc.property(runs, fc.nat(7), (given, offset) => {
      const batch = parse(writtenBatch(HEAD, given), offset);
      expect(batch.entries).toBe(given.reduce((all, { numbers }) => all + numbers.length, 0));
      let first = 0;
      batch.runs.forEach(({ values, scales, elements, first: own, ...columns }, i) => {
        const { values: sent, scales: sentScales = [], ...written } = given[i] as FilledRun;
        expect(columns).toEqual(written);
        expect([...values]).toEqual([...sent]);
        expect([...scales]).toEqual([...sentScales]);
        expect([own, elements]).toEqual([first, sum(written.counts)]);
        first += written.numbers.length;
      });
    }),
  );
});

test("the step of a batch is that of its gradients", () => {
  const values = new Uint8Array(4);
  const columns = { numbers: Uint32Array.of(1), counts: Uint32Array.of(1), values };
  const operation = { op: "grad", lr: undefined, step: 7, seen: undefined } as const;
  const batch = parse(writtenBatch(HEAD, [{ ...WHOLE, operation, ...columns }]));
  expect([batch.step, batch.runs[0]?.operation]).toEqual([7, operation]);
});

test("whatever is changed in its bytes, it is refused, or its columns fit each other", () => {
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(runs, changes, (given, changed) => {
      const bytes = writtenBatch(HEAD, given);
      for (const [at, value] of changed) bytes[10 + (at % (bytes.length - 10))] = value;
      try {
        const batch = parse(sealMessage({ bytes, data: bytes }));
        for (const { counts, elements, dtype, encoding, parts, ...bytes } of batch.runs) {
          expect(sum(counts)).toBe(elements);
          const expected = valuesOf(dtype, encoding, counts);
          expect(bytes.values.length).toBe(expected.values.length);
          expect(bytes.scales.length).toBe(expected.scales.length);
          if (parts !== undefined) expect(sum(parts.rows)).toBe(parts.rowList.length);
        }
      } catch (error) {
        expect(error).toBeInstanceOf(PserverError);
      }
    }),
    { numRuns: 500 },
  );
});

describe("a batch is refused", () => {
  const RUN = { verb: "push", dtype: "float32", entries: 2, elements: 3, op: "grad" };
  const columns = (...words: number[]): Uint8Array =>
    new Uint8Array(Uint32Array.from(words).buffer);
  /** Numbers, counts and values of two entries of three elements. */
  const DATA = columns(7, 8, 1, 2, 0, 0, 0, 0);
  const refused = (fields: Fields, data: Uint8Array = DATA): PserverError =>
    refusalOf(() => parse(encodeMessage({ ...HEAD, ...fields }, data)));

  test.each<[string, Fields, string, RegExp]>([
    ["without runs", { runs: [] }, "BAD_MESSAGE", /at least one/],
    ["with runs that are no list", { runs: 7 }, "BAD_MESSAGE", /^runs: /],
    ["with too many runs", { runs: Array(BATCH_RUNS_MAX + 1).fill(RUN) }, "BAD_MESSAGE", /^runs: /],
    ["with a run that is no map", { runs: [RUN, 7] }, "BAD_MESSAGE", /^runs\[1\]: run: /],
    ["of an unknown verb", { runs: [{ ...RUN, verb: "add" }] }, "BAD_MESSAGE", /^runs\[0\]: verb/],
    ["of an unknown type", { runs: [{ ...RUN, dtype: "half" }] }, "BAD_DTYPE", /^runs\[0\]: dtype/],
    [
      "of an encoding that the type does not have",
      { runs: [{ ...RUN, dtype: "int32", encoding: "float16" }] },
      "UNSUPPORTED",
      /^runs\[0\]: encoding/,
    ],
    ["without an operation", { runs: [{ ...RUN, op: undefined }] }, "BAD_MESSAGE", /op/],
    ["with a run without entries", { runs: [{ ...RUN, entries: 0 }] }, "BAD_MESSAGE", /entries/],
    ["with a run without elements", { runs: [{ ...RUN, elements: 0 }] }, "BAD_MESSAGE", /elements/],
    ["of a step that is none", { step: 0, runs: [RUN] }, "BAD_MESSAGE", /step/],
    [
      "with too many entries over all runs",
      { runs: [RUN, { ...RUN, entries: BATCH_ENTRIES_MAX - 1 }] },
      "TOO_LARGE",
      /4096/,
    ],
    [
      "with more entries than bytes",
      { runs: [{ ...RUN, entries: 3 }] },
      "BAD_LENGTH",
      /tensor bytes/,
    ],
    ["with more elements than bytes", { runs: [{ ...RUN, elements: 5 }] }, "BAD_LENGTH", /tensor/],
    ["with lists that are not there", { runs: [{ ...RUN, part: [1] }] }, "BAD_LENGTH", /tensor/],
    [
      "with lists that no message holds",
      { runs: [{ ...RUN, part: [2 ** 31] }] },
      "BAD_LENGTH",
      /./,
    ],
    ["in int8 without scales", { runs: [{ ...RUN, encoding: "int8" }] }, "BAD_MESSAGE", /scales/],
    [
      "in e3m0 without the length of its codes",
      { runs: [{ ...RUN, encoding: "e3m0", scales: 2 }] },
      "BAD_MESSAGE",
      /codes/,
    ],
    [
      "in int8 with more scales than bytes",
      { runs: [{ ...RUN, encoding: "int8", scales: 2 ** 40 }] },
      "BAD_LENGTH",
      /tensor bytes/,
    ],
    [
      "in int8 with other scales than its entries have",
      { runs: [{ ...RUN, encoding: "int8", scales: 1 }] },
      "BAD_LENGTH",
      /^runs\[0\]: scales: expected 2 for the elements of the entries; received 1/,
    ],
    [
      "in e3m0 with other codes than its entries have",
      { runs: [{ ...RUN, encoding: "e3m0", scales: 2, codes: 3 }] },
      "BAD_LENGTH",
      /^runs\[0\]: codes: expected 2 for the elements of the entries; received 3/,
    ],
    ["with norms that are not there", { runs: [{ ...RUN, norms: true }] }, "BAD_LENGTH", /tensor/],
  ])("%s", (_what, fields, code, text) => {
    const error = refused(fields);
    expect(error.code).toBe(code);
    expect(error.message).toMatch(text);
  });

  test.each<[string, Fields, Uint8Array, string, RegExp]>([
    [
      "with an entry without elements",
      RUN,
      columns(7, 8, 3, 0, 0, 0, 0, 0),
      "BAD_LENGTH",
      /^entry 1: elements: expected 1 to 0/,
    ],
    [
      "with more elements than the run has",
      RUN,
      columns(7, 8, 4, 1, 0, 0, 0, 0),
      "BAD_LENGTH",
      /^entry 0: elements: expected 1 to 3; received 4/,
    ],
    [
      "with fewer elements than the run has",
      RUN,
      columns(7, 8, 1, 1, 0, 0, 0, 0),
      "BAD_LENGTH",
      /^runs\[0\]: elements: expected 3 in all; received 2/,
    ],
    [
      "with bytes that are not zero behind the values",
      RUN,
      columns(7, 8, 1, 2, 0, 0, 0, 1),
      "BAD_MESSAGE",
      /^runs\[0\]: .*zeros/,
    ],
    [
      "with a version that is none",
      { ...RUN, seen: true },
      new Uint8Array([
        ...columns(7, 8, 1, 2),
        ...new Uint8Array(Float64Array.of(0, 0.5).buffer),
        ...columns(0, 0, 0, 0),
      ]),
      "BAD_VALUE",
      /^entry 1: seen: /,
    ],
    [
      "with an entry without rows",
      { ...RUN, part: [2] },
      columns(7, 8, 1, 2, 2, 0, 1, 2, 0, 0, 0, 0),
      "BAD_LENGTH",
      /^entry 1: rows: expected 1 to 0/,
    ],
  ])("%s", (_what, given, data, code, text) => {
    const error = refused({ runs: [given] }, data);
    expect(error.code).toBe(code);
    expect(error.message).toMatch(text);
  });

  test("with an entry of a later run at fault by its number in the batch", () => {
    const data = new Uint8Array([...DATA, ...columns(7, 8, 3, 0, 0, 0, 0, 0)]);
    expect(refused({ runs: [RUN, RUN] }, data).message).toMatch(/^entry 3: elements: /);
  });
});

test("the entries that a batch claims are no more than its bytes can hold", () => {
  const claimed = (runs: unknown, bytes = 80): number =>
    claimedEntries({ fields: { runs }, data: new Uint8Array(bytes) });
  expect(claimed([{ entries: 3 }, { entries: 4 }])).toBe(7);
  expect(claimed([{ entries: 2 ** 53 }])).toBe(10);
  expect(claimed([{ entries: Number.NaN }, { entries: -3 }, null, 7, {}])).toBe(0);
  expect(claimed("none")).toBe(0);
});
