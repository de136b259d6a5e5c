import { DTYPES, encodedBytes } from "../../protocol/dtypes.ts";
import {
  type Allocate,
  BATCH_BYTES,
  type BatchRead,
  draftReadChunk,
  ensureError,
  entryLabel,
  HEADER_BYTES_MAX,
  type PartColumns,
  PserverError,
  paddedBytes,
  READ_BYTES_MAX,
  sealMessage,
} from "../../protocol/index.ts";
import { blockRows, checkPartIndex, type PartIndex } from "../../protocol/messages/parts.ts";
import { fitsPiece, GATHERED_BYTES_MAX, PIECES_MAX, PieceTable } from "../fold/batch/pieces.ts";
import { type Block, blockLabel } from "../fold/block-actor.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import { ElementReader } from "./element-reader.ts";
import type { AnsweredShard } from "./pending-reads.ts";
import type { Chunk, Responder } from "./responder.ts";

/** Copies the columns of a request, which may be views of a buffer that is reused. */
export function keptRead(request: BatchRead): BatchRead {
  const { numbers, parts, have } = request;
  const kept = parts && {
    rows: parts.rows.slice(),
    rowList: parts.rowList.slice(),
    inner: parts.inner?.slice(),
    innerList: parts.innerList?.slice(),
  };
  return { ...request, numbers: numbers.slice(), parts: kept, have: have?.slice() };
}

/**
 * Answers one batched read, chunk by chunk. Each chunk is made of the fold's state at that moment; all entries are
 * checked before the first.
 */
export class ServedRead {
  readonly #served: AnsweredShard;
  readonly #responder: Pick<Responder, "payloadBytesMax">;
  readonly #request: BatchRead;
  #isChecked = false;
  #next: number;
  /** Where the lists of the next entry begin. */
  readonly #lists = { row: 0, inner: 0 };

  /** The columns of the request must stay as they are until the last chunk. */
  constructor(
    served: AnsweredShard,
    responder: Pick<Responder, "payloadBytesMax">,
    request: BatchRead,
  ) {
    this.#served = served;
    this.#responder = responder;
    this.#request = request;
    this.#next = request.from;
    for (let entry = 0; entry < request.from; entry++) this.#pass(this.#lists, entry);
  }

  /**
   * Makes the next chunk: as many entries as take about 1 MiB, at least one.
   * @throws STALE_EPOCH, BAD_INDEX, UNSUPPORTED naming the entry; TOO_LARGE for more than 16 MiB.
   */
  next(allocate: Allocate): Chunk {
    if (!this.#isChecked) this.#checkAll();
    this.#isChecked = true;
    const from = this.#next;
    const { versions, blocks, valueBytes } = this.#choose(from);
    this.#next += blocks.length;
    const more = this.#next < this.#request.numbers.length;
    const head = { from, more, ...this.#served.position, versions };
    const { draft, values } = draftReadChunk(head, valueBytes, allocate);
    // A copy: a block may change before the broker has taken the message.
    this.#write(values, from, versions, blocks);
    return { bytes: sealMessage(draft), more };
  }

  /** Chooses the entries of the next chunk, and counts the bytes that they take. */
  #choose(from: number): { versions: Float64Array; blocks: Block[]; valueBytes: number } {
    const { numbers, have, generation } = this.#request;
    const bytesMax = Math.min(BATCH_BYTES, this.#responder.payloadBytesMax - HEADER_BYTES_MAX);
    const blocks: Block[] = [];
    const versions = new Float64Array(numbers.length - from);
    // Another generation may have given the same version to other values.
    const isPresent = generation === this.#served.position.generation;
    let valueBytes = 0;
    for (let entry = from; entry < numbers.length; entry++) {
      // The block may have been initialized again since the entries were checked.
      const block = this.#block(entry);
      const isKnown = isPresent && have !== undefined && have[entry] === block.version;
      const bytes = isKnown ? 0 : paddedBytes(this.#bytesOf(entry, block));
      if (blocks.length > 0 && valueBytes + bytes > bytesMax) break;
      versions[blocks.length] = isKnown ? 0 : block.version;
      blocks.push(block);
      valueBytes += bytes;
    }
    return { versions: versions.subarray(0, blocks.length), blocks, valueBytes };
  }

  /** Writes the values of a chunk: of many small blocks and short rows by one call of a kernel. */
  #write(values: Uint8Array, from: number, versions: Float64Array, blocks: readonly Block[]): void {
    const { encoding } = this.#request;
    const { memory } = this.#served.shard;
    const gathered = new GatheredValues(memory, values);
    for (let i = 0; i < blocks.length; i++) {
      const entry = from + i;
      if (versions[i] !== 0) {
        const block = blocks[i] as Block;
        if (encoding !== undefined || !this.#gather(gathered, entry, block)) {
          const reader = new ElementReader(memory, block, { part: this.#part(entry), encoding });
          reader.read(gathered.place(reader.bytes));
        }
      }
      this.#pass(this.#lists, entry);
    }
    gathered.flush();
  }

  /** Adds the values of an entry as pieces; returns false if they are not small. */
  #gather(gathered: GatheredValues, entry: number, block: Block): boolean {
    const { parts } = this.#request;
    const { pointer } = block;
    const rows = parts?.rows[entry] ?? 0;
    if (parts === undefined || rows === 0) {
      if (!fitsPiece(block.dtype, block.count)) return false;
      gathered.begin(1);
      gathered.add(pointer, block.bytes);
      gathered.end(block.bytes);
      return true;
    }
    const { rowElements } = blockRows(block);
    if ((parts.inner?.[entry] ?? 0) > 0 || !fitsPiece(block.dtype, rowElements)) return false;
    const rowBytes = rowElements * DTYPES[block.dtype].bytes;
    if (rows >= PIECES_MAX || rows * rowBytes > GATHERED_BYTES_MAX / 2) return false;
    gathered.begin(rows);
    const { row } = this.#lists;
    for (let i = row; i < row + rows; i++) {
      gathered.add(pointer + (parts.rowList[i] as number) * rowBytes, rowBytes);
    }
    gathered.end(rows * rowBytes);
    return true;
  }

  /** Checks every entry. */
  #checkAll(): void {
    const { numbers, parts } = this.#request;
    const lists = { row: 0, inner: 0 };
    let total = 0;
    for (let entry = 0; entry < numbers.length; entry++) {
      const block = this.#block(entry);
      try {
        total += this.#bytesOf(entry, block);
        const part = parts && partOf(parts, entry, lists);
        if (part !== undefined) checkPartIndex(part, blockRows(block));
      } catch (error) {
        throw withEntryName(entry, block, ensureError(error));
      }
      this.#pass(lists, entry);
    }
    if (numbers.length > 1 && total > READ_BYTES_MAX) throw tooLarge(total);
  }

  #part(entry: number): PartIndex | undefined {
    const { parts } = this.#request;
    return parts && partOf(parts, entry, this.#lists);
  }

  /** Moves the places of lists from an entry to the next one. */
  #pass(lists: { row: number; inner: number }, entry: number): void {
    const { parts } = this.#request;
    lists.row += parts?.rows[entry] ?? 0;
    lists.inner += parts?.inner?.[entry] ?? 0;
  }

  #bytesOf(entry: number, block: Block): number {
    const { parts, encoding } = this.#request;
    const rows = parts?.rows[entry] ?? 0;
    const inner = parts?.inner?.[entry] ?? 0;
    const width = rows > 0 && inner === 0 ? blockRows(block).rowElements : inner;
    return encodedBytes(block.dtype, encoding, rows === 0 ? block.count : rows * width);
  }

  #block(entry: number): Block {
    const number = this.#request.numbers[entry] as number;
    const block = this.#served.shard.blockOfNumber(number);
    if (block !== undefined) return block;
    const { number: shard } = this.#served;
    const text = `${entryLabel(entry)}, number ${number}: expected the present number of a block of shard ${shard}`;
    throw new PserverError("STALE_EPOCH", text, { entry, number, shard });
  }
}

/** Returns the elements that an entry is of; undefined for its whole block. */
function partOf(
  { rows, rowList, inner, innerList }: PartColumns,
  entry: number,
  at: { readonly row: number; readonly inner: number },
): PartIndex | undefined {
  const count = rows[entry] as number;
  const width = inner?.[entry] ?? 0;
  if (count === 0) return undefined;
  const list = rowList.subarray(at.row, at.row + count);
  if (width === 0 || innerList === undefined) return { rows: list };
  return { rows: list, inner: innerList.subarray(at.inner, at.inner + width) };
}

/** Returns the error with the name of the entry that it is about. */
function withEntryName(
  entry: number,
  { parameter, index }: Block,
  { code, message, details }: PserverError,
): PserverError {
  const label = `${entryLabel(entry)}, ${blockLabel(parameter, index)}`;
  return new PserverError(code, `${label}: ${message}`, {
    ...{ ...details, entry, parameter },
    block: index,
  });
}

function tooLarge(received: number): PserverError {
  return new PserverError(
    "TOO_LARGE",
    `a batched read: expected at most ${READ_BYTES_MAX} bytes of values; received entries of ${received}`,
    { expected: READ_BYTES_MAX, received },
  );
}

/** Writes the values of entries one after the other, each to a multiple of 8 bytes; small ones many at a time. */
class GatheredValues {
  readonly #memory: ShardMemory;
  readonly #target: Uint8Array;
  readonly #table: PieceTable;
  #at = 0;
  #bytes = 0;

  constructor(memory: ShardMemory, target: Uint8Array) {
    this.#memory = memory;
    this.#target = target;
    this.#table = new PieceTable(memory);
    this.#table.clear();
  }

  /** Makes room for an entry of so many pieces. */
  begin(pieces: number): void {
    // One more for zeros.
    if (this.#table.pieces + pieces + 1 > PIECES_MAX) this.flush();
  }

  add(address: number, bytes: number): void {
    this.#table.add(bytes);
    this.#table.at(0, address);
  }

  /** Ends an entry of so many bytes. */
  end(bytes: number): void {
    if (paddedBytes(bytes) > bytes) this.#table.addZeros(paddedBytes(bytes) - bytes);
    this.#bytes += paddedBytes(bytes);
    if (this.#bytes > GATHERED_BYTES_MAX / 2) this.flush();
  }

  /** Returns the place of an entry that is written by itself. */
  place(bytes: number): Uint8Array {
    this.flush();
    const start = this.#at;
    this.#at += paddedBytes(bytes);
    this.#target.fill(0, start + bytes, this.#at);
    return this.#target.subarray(start, start + bytes);
  }

  /** Writes what was added. */
  flush(): void {
    if (this.#table.pieces === 0) return;
    const address = this.#table.gatherAll();
    this.#target.set(this.#memory.bytes(address, this.#bytes), this.#at);
    this.#at += this.#bytes;
    this.#bytes = 0;
    this.#table.clear();
  }
}
