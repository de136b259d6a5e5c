import { type Encoding, encodedBytes } from "../../protocol/dtypes.ts";
import { blockPlace, shardOfBlock } from "../../protocol/layout.ts";
import { BATCH_BYTES, BATCH_ENTRIES_MAX, BATCH_ENTRY_BYTES_MAX } from "../../protocol/limits.ts";
import type { WantedEntries } from "../../protocol/messages/batch-reads.ts";
import { joinNumbers, type PartColumns } from "../../protocol/messages/columns.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import type { PartIndex } from "../../protocol/messages/parts.ts";
import type { ReceivedValues } from "./received-values.ts";

/** The state of a block that was read. */
export interface BlockState {
  /** Version of the block under the parameter's epoch. */
  readonly version: number;
  /** Generation of the shard's journal: another one may give the same version to other values. */
  readonly generation: number;
}

/** Blocks of one parameter, or parts of them, to read under one epoch; each is an entry. */
export interface ParameterRead {
  readonly info: ParameterInfo;
  /** Number of entries. */
  readonly entries: number;
  /** Returns the index of an entry's block in the parameter. */
  blockOf(entry: number): number;
  /** Returns the elements wanted of an entry's block; undefined for all. */
  partOf(entry: number): PartIndex | undefined;
  /** Returns the number of elements of an entry in the reply. */
  elementsOf(entry: number): number;
  /** Returns the state whose values the caller has, if any: the answer may be that it has not changed. */
  knownOf(entry: number): BlockState | undefined;
  /**
   * Receives the elements of an entry, which begin at a byte of the values, and the block's state. The values are
   * undefined if the block still has the known state; they are valid during the call only.
   */
  take(entry: number, values: ReceivedValues | undefined, at: number, state: BlockState): void;
}

/** The reads of a call. */
export class PendingReads {
  readonly reads: readonly ParameterRead[];
  readonly encoding: Encoding | undefined;
  /** New descriptions of parameters that were initialized again meanwhile: what was read of the old ones is of no use. */
  readonly replacedBy: (ParameterInfo | undefined)[];

  constructor(reads: readonly ParameterRead[], encoding: Encoding | undefined) {
    this.reads = reads;
    this.encoding = encoding;
    this.replacedBy = new Array<ParameterInfo | undefined>(reads.length).fill(undefined);
  }

  /** Returns the bytes of an entry's values in a reply. */
  bytesOf(place: number, entry: number): number {
    const read = this.reads[place] as ParameterRead;
    return encodedBytes(read.info.dtype, this.encoding, read.elementsOf(entry));
  }
}

/** A request for one entry of a read, by the subject of its block. */
export interface SingleRequest {
  readonly kind: "single";
  /** Place of the read in the call. */
  readonly place: number;
  readonly entry: number;
  readonly bytes: number;
  isDone: boolean;
}

/** A request for many entries of one shard, in columns. */
export class BatchRequest {
  readonly kind = "batch";
  readonly shard: number;
  /** Places of the reads in the call, and which entries of them. */
  readonly places: number[] = [];
  readonly entries: number[] = [];
  /** Numbers of the blocks. */
  readonly numbers: number[] = [];
  /** Bytes of the values of each entry. */
  readonly sizes: number[] = [];
  readonly #done: boolean[] = [];
  /** Bytes of the reply, if every block has changed. */
  bytes = 0;
  /** Expected bytes of the reply. */
  expectedBytes = 0;
  /** Numbers in the lists of parts. */
  listed = 0;

  constructor(shard: number) {
    this.shard = shard;
  }

  /** Number of entries. */
  get length(): number {
    return this.numbers.length;
  }

  add(pending: PendingReads, place: number, entry: number, bytes: number): void {
    const read = pending.reads[place] as ParameterRead;
    const part = read.partOf(entry);
    this.places.push(place);
    this.entries.push(entry);
    this.numbers.push(read.info.firstNumber + read.blockOf(entry));
    this.sizes.push(bytes);
    this.#done.push(false);
    this.bytes += bytes;
    this.expectedBytes += read.knownOf(entry) === undefined ? bytes : bytes * KNOWN_SHARE;
    this.listed += listedOf(part);
  }

  isDone(i: number): boolean {
    return this.#done[i] === true;
  }

  done(i: number): void {
    this.#done[i] = true;
  }

  /** Returns a request for what is still wanted; undefined if nothing is. */
  rest(pending: PendingReads): BatchRequest | undefined {
    const rest = new BatchRequest(this.shard);
    for (let i = 0; i < this.length; i++) {
      const place = this.places[i] as number;
      if (this.isDone(i) || pending.replacedBy[place] !== undefined) continue;
      rest.add(pending, place, this.entries[i] as number, this.sizes[i] as number);
    }
    return rest.length === 0 ? undefined : rest;
  }

  /** Returns the columns of the request, whose position is of this generation. */
  wanted({ reads }: PendingReads, generation: number): WantedEntries {
    const numbers = Uint32Array.from(this.numbers);
    let have: Float64Array | undefined;
    for (let i = 0; i < this.length; i++) {
      const read = reads[this.places[i] as number] as ParameterRead;
      const known = read.knownOf(this.entries[i] as number);
      if (known?.generation !== generation) continue;
      have ??= new Float64Array(this.length);
      have[i] = known.version;
    }
    return { numbers, parts: this.listed === 0 ? undefined : this.#parts(reads), have };
  }

  #parts(reads: readonly ParameterRead[]): PartColumns {
    const rows = new Uint32Array(this.length);
    const inner = new Uint32Array(this.length);
    const rowLists: Uint32Array[] = [];
    const innerLists: Uint32Array[] = [];
    for (let i = 0; i < this.length; i++) {
      const part = (reads[this.places[i] as number] as ParameterRead).partOf(
        this.entries[i] as number,
      );
      if (part === undefined) continue;
      rows[i] = part.rows.length;
      rowLists.push(part.rows);
      if (part.inner === undefined) continue;
      inner[i] = part.inner.length;
      innerLists.push(part.inner);
    }
    const rowList = joinNumbers(rowLists);
    if (innerLists.length === 0) return { rows, rowList, inner: undefined, innerList: undefined };
    return { rows, rowList, inner, innerList: joinNumbers(innerLists) };
  }
}

function listedOf(part: PartIndex | undefined): number {
  return part === undefined ? 0 : part.rows.length + (part.inner?.length ?? 0);
}

/** A request for one entry by the subject of its block, or for several entries of a shard. */
export type PlannedRequest = SingleRequest | BatchRequest;

/**
 * Share of its bytes that a block counts if the reader has a version of it, because most such blocks have not
 * changed.
 */
const KNOWN_SHARE = 0.25;
/** Most bytes of an entry in the columns of a request, besides its lists: four numbers and a version. */
const COLUMN_BYTES = 24;
const NUMBER_BYTES = 4;
/** Bytes of a request besides its columns. */
const HEAD_BYTES = 1024;

/**
 * Divides entries among requests, in their order. One request asks for as many small blocks of a shard as one chunk of
 * a reply takes. A large block has a request of its own, so that large and small ones do not wait for each other.
 * @param payloadBytesMax the largest message that the broker takes.
 */
export function planRequests(pending: PendingReads, payloadBytesMax: number): PlannedRequest[] {
  const requests: PlannedRequest[] = [];
  const open: (BatchRequest | undefined)[] = [];
  const { reads } = pending;
  for (let place = 0; place < reads.length; place++) {
    const read = reads[place] as ParameterRead;
    const { layout } = read.info;
    for (let entry = 0; entry < read.entries; entry++) {
      const bytes = pending.bytesOf(place, entry);
      const known = read.knownOf(entry);
      if (bytes >= BATCH_ENTRY_BYTES_MAX && known === undefined) {
        requests.push({ kind: "single", place, entry, bytes, isDone: false });
        continue;
      }
      const shard = shardOfBlock(layout, read.blockOf(entry));
      const listed = listedOf(read.partOf(entry));
      const expected = known === undefined ? bytes : bytes * KNOWN_SHARE;
      let batch = open[shard];
      if (batch === undefined || !admits(batch, expected, listed, payloadBytesMax)) {
        batch = new BatchRequest(shard);
        open[shard] = batch;
        requests.push(batch);
      }
      batch.add(pending, place, entry, bytes);
    }
  }
  return requests.map((request) => {
    if (request.kind === "single" || request.length > 1) return request;
    const [place, entry] = [request.places[0] as number, request.entries[0] as number];
    const isKnown = reads[place]?.knownOf(entry) !== undefined;
    const { bytes } = request;
    return isKnown ? request : { kind: "single", place, entry, bytes, isDone: false };
  });
}

/** Whether a request that has entries takes another one. */
function admits(
  batch: BatchRequest,
  expectedBytes: number,
  listed: number,
  payloadBytesMax: number,
): boolean {
  if (batch.length >= BATCH_ENTRIES_MAX) return false;
  if (batch.expectedBytes + expectedBytes > BATCH_BYTES) return false;
  const columnBytes = (batch.length + 1) * COLUMN_BYTES + (batch.listed + listed) * NUMBER_BYTES;
  return HEAD_BYTES + columnBytes <= payloadBytesMax;
}

/** Names the block of an entry, for messages and subjects. */
export function blockOfEntry(
  { reads }: PendingReads,
  { place, entry }: Pick<SingleRequest, "place" | "entry">,
): { readonly read: ParameterRead; readonly index: number; readonly shard: number } {
  const read = reads[place] as ParameterRead;
  const { index, shard } = blockPlace(read.info.layout, read.blockOf(entry));
  return { read, index, shard };
}
