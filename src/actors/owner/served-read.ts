import {
  type Allocate,
  BATCH_BYTES,
  type BatchRead,
  type BlockRows,
  blockRows,
  draftReadPiece,
  encodedBytes,
  ensureError,
  entryLabel,
  HEADER_BYTES_MAX,
  type PartIndex,
  type Position,
  PserverError,
  paddedBytes,
  partElements,
  READ_BYTES_MAX,
  type ReadEntry,
  readPackedIndex,
  sealMessage,
} from "../../protocol/index.ts";
import { type Block, blockLabel } from "../fold/block.ts";
import { ElementReader } from "../fold/read-elements.ts";
import type { Shard } from "../fold/shard.ts";
import type { Piece } from "./responder.ts";

/** Dependencies of ServedRead. */
export interface ServedReadDeps {
  readonly shard: Pick<Shard, "block" | "memory">;
  /** Position of the fold. */
  readonly position: () => Position;
  /** The largest message that the broker takes. */
  readonly payloadBytesMax: () => number;
}

/** What a piece has of an entry; `reader` is undefined if the asker has this version. */
interface PieceEntry {
  readonly version: number;
  readonly reader: ElementReader | undefined;
}

/**
 * Answers one batched read, piece by piece. Each piece is made of the fold's state at that moment; all entries
 * are checked before the first.
 */
export class ServedRead {
  readonly #deps: ServedReadDeps;
  readonly #request: BatchRead;
  /** By entry: the index of a part, once all are checked. */
  #indices: readonly (PartIndex | undefined)[] | undefined;
  #next: number;

  /** `request` and its data must stay as they are until the last piece. */
  constructor(deps: ServedReadDeps, request: BatchRead) {
    this.#deps = deps;
    this.#request = request;
    this.#next = request.from;
  }

  /**
   * The next piece: as many entries as take about 1 MiB, at least one.
   * @throws STALE_EPOCH, BAD_LENGTH, BAD_INDEX, UNSUPPORTED naming the entry; TOO_LARGE for more than 16 MiB.
   */
  next(allocate: Allocate): Piece {
    this.#indices ??= this.#checkAll();
    const from = this.#next;
    const { entries, dataBytes } = this.#gather(this.#indices);
    this.#next += entries.length;
    const more = this.#next < this.#request.entries.length;
    const versions = entries.map(({ version, reader }) => (reader === undefined ? 0 : version));
    const head = { from, more, ...this.#deps.position(), versions };
    const draft = draftReadPiece(head, dataBytes, allocate);
    let at = 0;
    for (const { reader } of entries) {
      if (reader === undefined) continue;
      const end = at + reader.bytes;
      // A copy: the block may change before the broker has taken the message.
      reader.read(draft.data.subarray(at, end));
      at += paddedBytes(reader.bytes);
      draft.data.fill(0, end, at);
    }
    return { bytes: sealMessage(draft), more };
  }

  /** The entries of the next piece, and the bytes that they take. */
  #gather(indices: readonly (PartIndex | undefined)[]): {
    entries: PieceEntry[];
    dataBytes: number;
  } {
    const { entries: all } = this.#request;
    const bytesMax = Math.min(BATCH_BYTES, this.#deps.payloadBytesMax() - HEADER_BYTES_MAX);
    const entries: PieceEntry[] = [];
    let dataBytes = 0;
    for (let i = this.#next; i < all.length; i++) {
      const entry = this.#read(all[i] as ReadEntry, indices[i]);
      const bytes = entry.reader === undefined ? 0 : paddedBytes(entry.reader.bytes);
      if (entries.length > 0 && dataBytes + bytes > bytesMax) break;
      entries.push(entry);
      dataBytes += bytes;
    }
    return { entries, dataBytes };
  }

  #read(entry: ReadEntry, part: PartIndex | undefined): PieceEntry {
    const { encoding, generation } = this.#request;
    // The block may have been initialized anew since the entries were checked.
    const block = this.#block(entry);
    const { version } = block;
    // Another generation may have given the same version to other values.
    const isKnown = version === entry.have && generation === this.#deps.position().generation;
    if (isKnown) return { version, reader: undefined };
    return {
      version,
      reader: new ElementReader(this.#deps.shard.memory, block, { part, encoding }),
    };
  }

  /** Checks every entry; returns the indices of those that are parts. */
  #checkAll(): (PartIndex | undefined)[] {
    const { entries } = this.#request;
    let { data } = this.#request;
    let total = 0;
    const indices = entries.map((entry) => {
      const block = this.#block(entry);
      try {
        const rows = blockRows(block);
        total += this.#bytesOf(entry, block, rows);
        if (entry.part === undefined) return undefined;
        const { elements: rest, ...index } = readPackedIndex(entry.part, data, rows);
        data = rest;
        return index;
      } catch (error) {
        throw named(entry, ensureError(error));
      }
    });
    if (data.length > 0) throw tooMuchData(data.length);
    if (entries.length > 1 && total > READ_BYTES_MAX) throw tooLarge(total);
    return indices;
  }

  #bytesOf({ part }: ReadEntry, block: Block, rows: BlockRows): number {
    const elements = part === undefined ? block.count : partElements(part, rows);
    return encodedBytes(block.dtype, this.#request.encoding, elements);
  }

  #block(entry: ReadEntry): Block {
    const { parameter, block: index, epoch } = entry;
    const block = this.#deps.shard.block(parameter, index);
    if (block?.epoch === epoch) return block;
    const text = `expected epoch ${block?.epoch ?? "none"}; received ${epoch}`;
    const details = { expected: block?.epoch, received: epoch };
    throw named(entry, new PserverError("STALE_EPOCH", text, details));
  }
}

/** An error that names the entry that it is about. */
function named(entry: ReadEntry, { code, message, details }: PserverError): PserverError {
  const { parameter, block, group, place } = entry;
  return new PserverError(
    code,
    `${entryLabel(entry)}, ${blockLabel(parameter, block)}: ${message}`,
    { ...details, parameter, block, group, place },
  );
}

function tooMuchData(received: number): PserverError {
  return new PserverError(
    "BAD_LENGTH",
    `a batched read: expected no bytes after the index of the last part; received ${received}`,
    { expected: 0, received },
  );
}

function tooLarge(received: number): PserverError {
  return new PserverError(
    "TOO_LARGE",
    `a batched read: expected at most ${READ_BYTES_MAX} bytes of values; received entries of ${received}`,
    { expected: READ_BYTES_MAX, received },
  );
}
