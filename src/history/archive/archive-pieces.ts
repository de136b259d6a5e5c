import type { PieceRef } from "../../actors/snapshot/manifest.ts";
import { PserverError, readCrc } from "../../protocol/index.ts";
import type { ArchiveFacts } from "./archive-facts.ts";
import { listSnapshots, type SnapshotFile, snapshotDirectory } from "./archive-layout.ts";
import { placesOfPieces, readPieceAt, readSnapshotHead } from "./snapshot-file.ts";

/** Files whose tables of pieces are kept in memory. */
const TABLES_MAX = 64;

/** Finds the pieces of a shard's snapshots in the files of an archive. */
export class ArchivePieces {
  readonly #directory: string;
  readonly #facts: ArchiveFacts;
  readonly #shard: number;
  /** Offsets of pieces by sequence, by file; the file used last is at the end. */
  readonly #tables: Map<string, Promise<ReadonlyMap<number, number>>> = new Map();
  #files: readonly SnapshotFile[] = [];

  constructor(directory: string, facts: ArchiveFacts, shard: number) {
    this.#directory = directory;
    this.#facts = facts;
    this.#shard = shard;
  }

  /**
   * A piece.
   * @throws SNAPSHOT_DAMAGED if no file has it, or another of its sequence; BAD_ARCHIVE if its file is
   * damaged; BAD_VERSION, IO.
   */
  async read(ref: PieceRef): Promise<Uint8Array> {
    const found = await this.#find(ref);
    if (found === undefined) throw this.#damaged(ref, "is not in the archive");
    const bytes = await readPieceAt(found.path, found.offset, ref.seq);
    if (readCrc(bytes) !== ref.crc) throw this.#damaged(ref, "has another checksum");
    return bytes;
  }

  /** The first file that has a piece: one of the snapshots that were committed after it was stored. */
  async #find(ref: PieceRef): Promise<{ path: string; offset: number } | undefined> {
    for (const isListedAnew of [false, true]) {
      if (isListedAnew) this.#files = await listSnapshots(this.#path);
      for (const file of this.#files) {
        if (file.storedSeq < ref.seq) continue;
        const offset = (await this.#table(file)).get(ref.seq);
        if (offset !== undefined) return { path: file.path, offset };
      }
    }
    return undefined;
  }

  async #table(file: SnapshotFile): Promise<ReadonlyMap<number, number>> {
    const known = this.#tables.get(file.path);
    if (known !== undefined) {
      this.#tables.delete(file.path);
      this.#tables.set(file.path, known);
      return await known;
    }
    const head = readSnapshotHead(file, this.#shard, this.#facts);
    const table = head.then((found) => placesOfPieces(file, found));
    this.#tables.set(file.path, table);
    table.catch(() => this.#tables.delete(file.path));
    const [oldest] = this.#tables.keys();
    if (this.#tables.size > TABLES_MAX && oldest !== undefined) this.#tables.delete(oldest);
    return await table;
  }

  get #path(): string {
    return snapshotDirectory(this.#directory, this.#shard);
  }

  #damaged({ seq }: PieceRef, what: string): PserverError {
    return new PserverError(
      "SNAPSHOT_DAMAGED",
      `shard ${this.#shard}: snapshot message ${seq} ${what}`,
      { shard: this.#shard, seq, path: this.#path },
    );
  }
}
