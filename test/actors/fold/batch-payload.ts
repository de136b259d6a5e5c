import { sealMessage } from "../../../src/protocol/codec.ts";
import {
  bytesOf,
  type Dtype,
  dtypeOf,
  type Encoding,
  encodedBytes,
  isGrouped,
  type TensorData,
} from "../../../src/protocol/dtypes.ts";
import { encodeElements } from "../../../src/protocol/encoding/encoding.ts";
import { type GroupedBytes, splitGroups } from "../../../src/protocol/encoding/grouped.ts";
import { toNumbers } from "../../../src/protocol/encoding/half-floats.ts";
import { type BatchRun, draftBatch } from "../../../src/protocol/messages/batch-records.ts";
import type { PartColumns } from "../../../src/protocol/messages/columns.ts";
import type { PartIndex } from "../../../src/protocol/messages/parts.ts";
import type { PushOperation, RecordHeader } from "../../../src/protocol/messages/records.ts";
import { l2Norm } from "../../../src/protocol/tensor.ts";
import { encodedNorm } from "./encoded-norm.ts";

/** An update of one block in a batch. */
export interface BatchUpdate {
  readonly parameter: string;
  readonly index?: number;
  readonly epoch?: number;
  readonly data: TensorData;
  /** That of the data; without it, that of its bare array. */
  readonly dtype?: Dtype;
  readonly change:
    | { readonly kind: "set" | "init" }
    | {
        readonly kind: "push";
        readonly operation: PushOperation;
        readonly encoding?: Encoding;
        readonly part?: PartIndex;
      };
}

/** Returns the number of a block. */
export type NumberOf = (parameter: string, epoch: number, index: number) => number;

/** The bytes of float32 elements in an encoding. */
export function encoded(encoding: Encoding, data: TensorData): Uint8Array {
  const bytes = new Uint8Array(encodedBytes("float32", encoding, data.length));
  encodeElements(encoding, Float32Array.from(data as Float32Array), bytes);
  return bytes;
}

/** A batch as a message: neighbours that ask for the same are a run. */
export function batchPayload(
  head: RecordHeader,
  updates: readonly BatchUpdate[],
  numberOf: NumberOf,
): Uint8Array {
  const runs: BatchUpdate[][] = [];
  let last = "";
  for (const update of updates) {
    const key = runKey(update);
    if (key === last) runs.at(-1)?.push(update);
    else runs.push([update]);
    last = key;
  }
  const { draft, values, scales } = draftBatch(
    head,
    runs.map((run) => runOf(run, numberOf)),
  );
  for (const [i, run] of runs.entries()) {
    const parts = run.map(partsOfUpdate);
    scales[i]?.set(Buffer.concat(parts.map((part) => part.scales)));
    values[i]?.set(Buffer.concat(parts.map((part) => part.codes)));
  }
  return sealMessage(draft);
}

function runKey({ data, dtype = dtypeOf(data), change }: BatchUpdate): string {
  if (change.kind !== "push") return JSON.stringify([change.kind, dtype]);
  const { operation, encoding, part } = change;
  const named = operation.op === "grad" ? { ...operation, seen: undefined } : operation;
  const kind = part && (part.inner === undefined ? "rows" : "elements");
  return JSON.stringify([dtype, named, encoding, kind]);
}

function runOf(updates: readonly BatchUpdate[], numberOf: NumberOf): BatchRun {
  const [first] = updates as readonly [BatchUpdate];
  const { change, dtype = dtypeOf(first.data) } = first;
  const columns = {
    dtype,
    numbers: Uint32Array.from(updates, ({ parameter, epoch = 1, index = 0 }) =>
      numberOf(parameter, epoch, index),
    ),
    counts: Uint32Array.from(updates, ({ data }) => data.length),
  };
  const none = { encoding: undefined, operation: undefined, parts: undefined };
  if (change.kind !== "push") {
    return { verb: change.kind, ...columns, ...none, norms: undefined, seen: undefined };
  }
  const { operation, encoding } = change;
  const seen = updates.map((update) => seenOf(update));
  return {
    ...{ verb: "push", ...columns, encoding, operation },
    parts: partsOf(updates),
    norms: Float64Array.from(updates, ({ data }) =>
      encoding
        ? encodedNorm(encoding, encoded(encoding, data), data.length)
        : l2Norm(toNumbers(dtype, data)),
    ),
    seen: seen.some((version) => version > 0) ? Float64Array.from(seen) : undefined,
  };
}

function seenOf({ change }: BatchUpdate): number {
  if (change.kind !== "push" || change.operation.op !== "grad") return 0;
  return change.operation.seen ?? 0;
}

function partsOf(updates: readonly BatchUpdate[]): PartColumns | undefined {
  const parts = updates.flatMap(({ change }) =>
    change.kind === "push" && change.part !== undefined ? [change.part] : [],
  );
  if (parts.length === 0) return undefined;
  const inner = parts.flatMap((part) => (part.inner === undefined ? [] : [part.inner]));
  return {
    rows: Uint32Array.from(parts, ({ rows }) => rows.length),
    rowList: Uint32Array.from(parts.flatMap(({ rows }) => [...rows])),
    inner: inner.length === 0 ? undefined : Uint32Array.from(inner, (list) => list.length),
    innerList:
      inner.length === 0 ? undefined : Uint32Array.from(inner.flatMap((list) => [...list])),
  };
}

/** The scales of an update, none unless its encoding is grouped, and its values. */
function partsOfUpdate({ data, change }: BatchUpdate): GroupedBytes {
  const encoding = change.kind === "push" ? change.encoding : undefined;
  if (isGrouped(encoding)) return splitGroups(data.length, encoded(encoding, data));
  const codes = encoding === undefined ? bytesOf(data) : encoded(encoding, data);
  return { scales: new Uint8Array(0), codes };
}
