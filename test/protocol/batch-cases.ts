import { sealMessage } from "../../src/protocol/codec.ts";
import { type BatchRun, draftBatch } from "../../src/protocol/messages/batch-records.ts";
import type { RecordHeader } from "../../src/protocol/messages/records.ts";

/** A batch as the shared vectors have it. */
export interface BatchCase {
  readonly what: string;
  readonly bytes: Uint8Array;
}

/** A run with the values of its entries. */
export interface FilledRun extends BatchRun {
  readonly values: Uint8Array;
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
  const { draft, values } = draftBatch(header, runs);
  for (const [i, run] of runs.entries()) values[i]?.set(run.values);
  return sealMessage(draft);
}

/** Batches with everything that a run can be. */
export function batchCases(header: RecordHeader): BatchCase[] {
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
  ];
}

function floats(...values: number[]): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer);
}
