import { sealMessage } from "../../src/protocol/codec.ts";
import { codeBytes, type GroupedEncoding, groupCount } from "../../src/protocol/dtypes.ts";
import { encodeGroups } from "../../src/protocol/encoding/grouped.ts";
import { type BatchRun, draftBatch } from "../../src/protocol/messages/batch-records.ts";
import type { RecordHeader } from "../../src/protocol/messages/records.ts";

/** A batch as the shared vectors have it. */
export interface BatchCase {
  readonly what: string;
  readonly bytes: Uint8Array;
}

/** A run with the values of its entries, and in a grouped encoding their scales. */
export interface FilledRun extends BatchRun {
  readonly values: Uint8Array;
  readonly scales?: Uint8Array;
}

/** The elements of entries in a grouped encoding, as a run has them. */
function groupedValues(
  encoding: GroupedEncoding,
  counts: Uint32Array,
  elements: Float32Array,
): { readonly scales: Uint8Array; readonly values: Uint8Array } {
  const sum = (of: (count: number) => number): number =>
    counts.reduce((total, count) => total + of(count), 0);
  const scales = new Uint8Array(4 * sum(groupCount));
  const values = new Uint8Array(sum((count) => codeBytes(encoding, count)));
  encodeGroups(encoding, counts, elements, { scales, codes: values });
  return { scales, values };
}

/** A run of whole blocks, to be spread and changed. */
export const WHOLE: Omit<BatchRun, "numbers" | "counts"> = {
  verb: "push",
  dtype: "float32",
  encoding: undefined,
  operation: { op: "grad" },
  parts: undefined,
  norms: undefined,
  seen: undefined,
};

/** Writes a batch with its values. */
export function writtenBatch(header: RecordHeader, runs: readonly FilledRun[]): Uint8Array {
  const { draft, values, scales } = draftBatch(header, runs);
  for (const [i, run] of runs.entries()) {
    values[i]?.set(run.values);
    if (run.scales !== undefined) scales[i]?.set(run.scales);
  }
  return sealMessage(draft);
}

const LONG = Float32Array.from({ length: 303 }, (_, i) => (i % 17) - 8 + i / 512);
const SHORT = Float32Array.of(1, -0.5, 0.25, -3);

/** Batches with everything that a run can be. */
export function batchCases(header: RecordHeader): BatchCase[] {
  const [long, short] = [Uint32Array.of(300, 3), Uint32Array.of(3, 1)];
  const step = { op: "grad", lr: undefined, step: 5 } as const;
  return [
    {
      what: "batch of gradients of a step: two whole blocks, and rows of two blocks whose gradients have norms",
      bytes: writtenBatch(header, [
        {
          ...WHOLE,
          ...{ operation: step, numbers: Uint32Array.of(7, 4), counts: Uint32Array.of(2, 1) },
          values: floats(1, -2.5, 3),
        },
        {
          ...WHOLE,
          ...{ operation: step, numbers: Uint32Array.of(70_001, 8), counts: Uint32Array.of(4, 2) },
          parts: {
            rows: Uint32Array.of(2, 1),
            rowList: Uint32Array.of(0, 69_999, 3),
            ...{ inner: undefined, innerList: undefined },
          },
          norms: Float64Array.of(2.5, Number.POSITIVE_INFINITY),
          values: floats(1, 2, 3, 4, 5, 6),
        },
      ]),
    },
    {
      what: "batch with a learning rate and versions, an encoding, a mix of parts, a set and an init",
      bytes: writtenBatch(header, [
        {
          ...{ ...WHOLE, operation: { op: "grad", lr: 0.5 } },
          ...{ numbers: Uint32Array.of(1, 2), counts: Uint32Array.of(1, 2) },
          seen: Float64Array.of(7, 0),
          values: floats(1, -2.5, 3),
        },
        {
          ...{ ...WHOLE, encoding: "bfloat16", values: Uint8Array.of(0x80, 0x3f) },
          ...{ numbers: Uint32Array.of(3), counts: Uint32Array.of(1) },
        },
        {
          ...{ ...WHOLE, operation: { op: "mix", alpha: 0.5, beta: -1 } },
          ...{ numbers: Uint32Array.of(9), counts: Uint32Array.of(6) },
          parts: {
            ...{ rows: Uint32Array.of(3), rowList: Uint32Array.of(0, 3, 40_000) },
            ...{ inner: Uint32Array.of(2), innerList: Uint32Array.of(0, 5) },
          },
          values: floats(1, 2, 3, 4, 5, 6),
        },
        {
          ...{ ...WHOLE, verb: "set", dtype: "float64", operation: undefined },
          ...{ numbers: Uint32Array.of(5), counts: Uint32Array.of(1) },
          values: new Uint8Array(Float64Array.of(-0.5).buffer),
        },
        {
          ...{ ...WHOLE, verb: "init", operation: undefined, values: floats(7) },
          ...{ numbers: Uint32Array.of(2 ** 32 - 1), counts: Uint32Array.of(1) },
        },
      ]),
    },
    {
      what: "batch in encodings with scales: a block of two groups and a short one in int8, rows of two blocks in e3m0",
      bytes: writtenBatch(header, [
        {
          ...{ ...WHOLE, encoding: "int8", norms: Float64Array.of(2.5, 0.5) },
          ...{ numbers: Uint32Array.of(7, 4), counts: long, ...groupedValues("int8", long, LONG) },
        },
        {
          ...{ ...WHOLE, encoding: "e3m0", operation: { op: "mix", alpha: 1, beta: -1 } },
          ...{ numbers: Uint32Array.of(8, 9), counts: short },
          parts: {
            ...{ rows: Uint32Array.of(3, 1), rowList: Uint32Array.of(0, 2, 5, 1) },
            ...{ inner: undefined, innerList: undefined },
          },
          ...groupedValues("e3m0", short, SHORT),
        },
      ]),
    },
  ];
}

function floats(...values: number[]): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer);
}
