import { sealMessage } from "../../src/protocol/codec.ts";
import { toConfig } from "../../src/protocol/config/index.ts";
import {
  type BatchItem,
  draftBatch,
  paddedBytes,
} from "../../src/protocol/messages/batch-records.ts";
import {
  type BlockRows,
  type PartIndex,
  packedIndexBytes,
  partCounts,
  writePackedIndex,
} from "../../src/protocol/messages/parts.ts";
import type { PushOperation, RecordHeader } from "../../src/protocol/messages/records.ts";

/** A batch as the shared vectors have it. */
export interface BatchCase {
  readonly what: string;
  readonly bytes: Uint8Array;
}

/** An entry with its bytes. */
type Entry = Omit<BatchItem, "dataBytes"> & { readonly data: Uint8Array };

const CONFIG = toConfig();
const GRAD: PushOperation = { op: "grad" };
const WIDE: BlockRows = { rows: 70_000, rowElements: 2 };
const NARROW: BlockRows = { rows: 65_536, rowElements: 2 };

/** Batches with everything that an entry can be. */
export function batchCases(header: RecordHeader): BatchCase[] {
  const common = { ...header, epoch: 2, dtype: "float32" } as const;
  const [encoding, norm, part] = [undefined, undefined, undefined];
  const push = { verb: "push", ...common, encoding, norm, operation: GRAD, part } as const;
  const whole = { parameter: "w", index: 0, data: floats(1, -2.5) };
  const rows = Uint32Array.of(0, 3, 40_000);
  const partOf = (index: PartIndex, block: BlockRows, operation: PushOperation) => ({
    parameter: "emb:sparse-0",
    record: { ...push, epoch: 3, norm: 2.5, operation, part: partCounts(index) },
    data: partData(index, block, floats(...new Array<number>(elementsOf(index, block)).fill(1))),
  });
  const inner = Uint32Array.of(1);
  return [
    {
      what: "batch of gradients of a step: a whole block, rows of a small one and rows of a large one",
      bytes: written(header, [
        { ...whole, record: { ...push, operation: { op: "grad", step: 5 } } },
        { ...partOf({ rows }, NARROW, { op: "grad", step: 5 }), index: 1 },
        { ...partOf({ rows }, WIDE, { op: "grad", step: 5 }), index: 17 },
      ]),
    },
    {
      what: "batch with a learning rate, versions, an encoding, a mix of parts, a set and an init",
      bytes: written(header, [
        { ...whole, record: { ...push, operation: { op: "grad", lr: 0.5, seen: 7 } } },
        { ...whole, index: 16, record: { ...push, operation: { op: "grad", lr: 0.5 } } },
        {
          ...{ parameter: "b", index: 0, data: Uint8Array.of(0x80, 0x3f) },
          record: { ...push, encoding: "bfloat16" },
        },
        { ...partOf({ rows, inner }, NARROW, { op: "mix", alpha: 0.5, beta: -1 }), index: 1 },
        { ...whole, parameter: "s", record: { verb: "set", ...common } },
        {
          ...{ parameter: "i", index: 0, data: floats(7) },
          record: { verb: "init", ...common, shape: [1], start: 0, count: 1, config: CONFIG },
        },
      ]),
    },
  ];
}

function written(header: RecordHeader, entries: readonly Entry[]): Uint8Array {
  const items = entries.map(({ data, ...entry }) => ({ ...entry, dataBytes: data.length }));
  const draft = draftBatch(header, items);
  let at = 0;
  for (const { data } of entries) {
    draft.data.set(data, at);
    at += paddedBytes(data.length);
  }
  return sealMessage(draft);
}

function partData(index: PartIndex, block: BlockRows, elements: Uint8Array): Uint8Array {
  const bytes = packedIndexBytes(partCounts(index), block);
  const data = new Uint8Array(bytes + elements.length);
  writePackedIndex(data, index, block);
  data.set(elements, bytes);
  return data;
}

function elementsOf({ rows, inner }: PartIndex, { rowElements }: BlockRows): number {
  return rows.length * (inner?.length ?? rowElements);
}

function floats(...values: number[]): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer);
}
