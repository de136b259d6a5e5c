import { sealMessage } from "../../../src/protocol/codec.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";
import {
  bytesOf,
  dtypeOf,
  ENCODINGS,
  type Encoding,
  type TensorData,
} from "../../../src/protocol/dtypes.ts";
import { encodeElements } from "../../../src/protocol/encoding/encoding.ts";
import {
  type BatchItem,
  draftBatch,
  paddedBytes,
} from "../../../src/protocol/messages/batch-records.ts";

import {
  blockRows,
  type PartIndex,
  packedIndexBytes,
  partCounts,
  writePackedIndex,
} from "../../../src/protocol/messages/parts.ts";
import type {
  PushOperation,
  RecordHeader,
  TrainerRecord,
} from "../../../src/protocol/messages/records.ts";
import { l2Norm } from "../../../src/protocol/tensor.ts";
import { encodedNorm } from "./encoded-norm.ts";

/** An update of one block in a batch. */
export interface BatchUpdate {
  readonly parameter: string;
  readonly index?: number;
  readonly epoch?: number;
  readonly data: TensorData;
  readonly change:
    | { readonly kind: "set" }
    | {
        readonly kind: "init";
        readonly shape?: readonly number[];
        readonly start?: number;
        readonly config?: unknown;
      }
    | {
        readonly kind: "push";
        readonly operation: PushOperation;
        readonly encoding?: Encoding;
        /** With the shape of the block, which decides how its index is packed. */
        readonly part?: { readonly index: PartIndex; readonly shape: readonly number[] };
      };
}

/** The bytes of float32 elements in an encoding. */
export function encoded(encoding: Encoding, data: TensorData): Uint8Array {
  const bytes = new Uint8Array(data.length * ENCODINGS[encoding].bytes);
  encodeElements(encoding, Float32Array.from(data as Float32Array), bytes);
  return bytes;
}

/** A batch as a message. */
export function batchPayload(head: RecordHeader, updates: readonly BatchUpdate[]): Uint8Array {
  const pieces = updates.map(bytesOfUpdate);
  const items = updates.map(
    (update, i): BatchItem => ({
      parameter: update.parameter,
      index: update.index ?? 0,
      record: recordOf(head, update),
      dataBytes: pieces[i]?.length ?? 0,
    }),
  );
  const draft = draftBatch(head, items);
  let at = 0;
  for (const piece of pieces) {
    draft.data.set(piece, at);
    at += paddedBytes(piece.length);
  }
  return sealMessage(draft);
}

function recordOf(head: RecordHeader, { data, change, epoch = 1 }: BatchUpdate): TrainerRecord {
  const common = { ...head, epoch, dtype: dtypeOf(data) };
  if (change.kind === "set") return { verb: "set", ...common };
  if (change.kind === "init") {
    const { shape = [data.length], start = 0, config } = change;
    return { verb: "init", ...common, shape, start, count: data.length, config: toConfig(config) };
  }
  const { operation, encoding, part } = change;
  const norm = encoding ? encodedNorm(encoding, encoded(encoding, data)) : l2Norm(data);
  const counts = part && partCounts(part.index);
  return { verb: "push", ...common, encoding, norm, operation, part: counts };
}

function bytesOfUpdate({ data, change }: BatchUpdate): Uint8Array {
  const encoding = change.kind === "push" ? change.encoding : undefined;
  const elements = encoding === undefined ? bytesOf(data) : encoded(encoding, data);
  if (change.kind !== "push" || change.part === undefined) return elements;
  const { index, shape } = change.part;
  const rows = blockRows({ shape, start: 0, count: shape.reduce((a, b) => a * b, 1) });
  const indexBytes = packedIndexBytes(partCounts(index), rows);
  const bytes = new Uint8Array(indexBytes + elements.length);
  writePackedIndex(bytes, index, rows);
  bytes.set(elements, indexBytes);
  return bytes;
}
