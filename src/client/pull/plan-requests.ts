import {
  BATCH_BYTES,
  BATCH_ENTRIES_MAX,
  BATCH_ENTRY_BYTES_MAX,
  BATCH_HEAD_BYTES_MAX,
} from "../../protocol/limits.ts";
import { packedIndexBytes, partCounts } from "../../protocol/parts.ts";
import type { PendingBlock } from "./block-read.ts";

/** Blocks that are asked for together: one by its own subject, or several of a shard. */
export type PlannedRequest =
  | { readonly kind: "single"; readonly block: PendingBlock }
  | {
      readonly kind: "batch";
      readonly shard: number;
      readonly blocks: readonly PendingBlock[];
      /** Bytes of the reply, if every block has changed. */
      readonly bytes: number;
    };

/** Most bytes that an entry takes in the head of a request: three numbers in a list, and a version. */
const ENTRY_BYTES = 32;
/** Most bytes that a group takes besides its name and entries. */
const GROUP_BYTES = 96;
/** Most bytes of UTF-8 for one UTF-16 code unit. */
const UTF8_BYTES = 3;
/** Most of what a reader has is still so: such a block counts a quarter of its bytes. */
const KNOWN_SHARE = 0.25;
/** Bytes of a request besides its entries. */
const REST_BYTES = 1024;

/** A batch that is being filled. */
interface OpenBatch {
  readonly kind: "batch";
  readonly shard: number;
  readonly blocks: PendingBlock[];
  bytes: number;
  /** Bytes of the reply that are to be expected. */
  expectedBytes: number;
  headBytes: number;
  dataBytes: number;
}

/**
 * Divides blocks among requests, in the order of the blocks. Small blocks of a shard are asked for together, as
 * many as one piece of a reply takes; a large one is asked for alone, so that neither waits for the other.
 * @param payloadBytesMax the largest message that the broker takes.
 */
export function planRequests(
  blocks: readonly PendingBlock[],
  payloadBytesMax: number,
): PlannedRequest[] {
  const requests: (OpenBatch | PlannedRequest)[] = [];
  const open = new Map<number, OpenBatch>();
  for (const block of blocks) {
    const { read, bytes } = block;
    if (bytes >= BATCH_ENTRY_BYTES_MAX && read.known === undefined) {
      requests.push({ kind: "single", block });
      continue;
    }
    const { shard } = read.place;
    let batch = open.get(shard);
    if (batch === undefined || !add(batch, block, payloadBytesMax)) {
      batch = { ...{ kind: "batch", shard, blocks: [] }, ...NO_BYTES };
      add(batch, block, payloadBytesMax);
      open.set(shard, batch);
      requests.push(batch);
    }
  }
  return requests.map((request) => {
    if (request.kind === "single") return request;
    const [first] = request.blocks;
    const isAlone = request.blocks.length === 1 && first?.read.known === undefined;
    return isAlone && first !== undefined ? { kind: "single", block: first } : request;
  });
}

/** A request for one block by its own subject. */
export function singleRequest(block: PendingBlock): PlannedRequest {
  return { kind: "single", block };
}

const NO_BYTES = { bytes: 0, expectedBytes: 0, headBytes: 0, dataBytes: 0 };

/** Adds a block to a batch; false if it does not fit. A batch takes its first block whatever its size. */
function add(batch: OpenBatch, block: PendingBlock, payloadBytesMax: number): boolean {
  const { read, bytes, parameter } = block;
  const last = batch.blocks.at(-1);
  const { name } = parameter.info;
  const groupBytes = last?.parameter === parameter ? 0 : GROUP_BYTES + name.length * UTF8_BYTES;
  const expectedBytes =
    batch.expectedBytes + (read.known === undefined ? bytes : bytes * KNOWN_SHARE);
  const headBytes = batch.headBytes + ENTRY_BYTES + groupBytes;
  const dataBytes = batch.dataBytes + indexBytes(block);
  if (last !== undefined) {
    if (batch.blocks.length >= BATCH_ENTRIES_MAX || expectedBytes > BATCH_BYTES) return false;
    if (headBytes + REST_BYTES > BATCH_HEAD_BYTES_MAX) return false;
    if (headBytes + REST_BYTES + dataBytes > payloadBytesMax) return false;
  }
  batch.blocks.push(block);
  batch.bytes += bytes;
  Object.assign(batch, { expectedBytes, headBytes, dataBytes });
  return true;
}

function indexBytes({ read: { index }, rows }: PendingBlock): number {
  return index === undefined ? 0 : packedIndexBytes(partCounts(index), rows);
}
