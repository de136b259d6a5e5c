import { comparePositions } from "../../protocol/index.ts";
import type { ArchivedShard } from "../archivers/archiver-record.ts";
import type { JournalInfo } from "../journal/journal.ts";
import type { StoredManifest } from "./manifest.ts";

/** Snapshots that are kept in any case: the newest may turn out to be damaged. */
const SNAPSHOTS_MIN = 2;

/** Share of a journal's limit from which on it gives up its history. */
const HISTORY_SHARE = 0.75;

/** How often the bytes to retain may be kept while an archiver has not copied what would be dropped. */
const HELD_FACTOR = 2;

/** Size of a journal. */
type JournalBytes = Pick<JournalInfo, "bytes" | "bytesMax">;

/**
 * The snapshots of a shard that are kept: the newest, and older ones while the journal back to them
 * fits into the bytes to retain; besides, all of an abandoned journal that is kept as history. Does no I/O.
 */
export class KeptSnapshots {
  readonly #retainBytes: number;
  /** Oldest first; all of one generation after {@link dropEarlierGenerations}. */
  #kept: StoredManifest[];
  /** Those of the abandoned journal that is kept. */
  #past: StoredManifest[] = [];

  /** `kept`: all manifests in the store, oldest first. */
  constructor(retainBytes: number, kept: readonly StoredManifest[]) {
    this.#retainBytes = retainBytes;
    this.#kept = [...kept];
  }

  /** Generation of the newest snapshot; undefined without one. */
  get generation(): number | undefined {
    return this.#kept.at(-1)?.manifest.generation;
  }

  /** Oldest position from which on the shard can be rebuilt; 0 without a snapshot. */
  get oldestSeq(): number {
    return this.#kept[0]?.manifest.seq ?? 0;
  }

  /**
   * Adds the newest snapshot. Those of an earlier generation go, as no records follow them any more, unless it
   * says that their journal is kept.
   */
  add(snapshot: StoredManifest): void {
    this.#kept.push(snapshot);
    this.dropEarlierGenerations();
  }

  /** Puts another manifest of the newest snapshot in place of the one that it had. */
  renew(newest: StoredManifest): void {
    this.#kept.splice(-1, 1, newest);
  }

  /** Keeps a single snapshot of the journal, made behind a gap that no replay leads across. */
  restartAt(snapshot: StoredManifest): void {
    this.#kept = [snapshot];
  }

  /** Drops the snapshots of journals that were replaced and are not kept. */
  dropEarlierGenerations(): void {
    const { generation, past } = this.#kept.at(-1)?.manifest ?? {};
    const all = [...this.#past, ...this.#kept];
    this.#past = all.filter(({ manifest }) => manifest.generation === past);
    this.#kept = this.#kept.filter(({ manifest }) => manifest.generation === generation);
  }

  /**
   * Drops the oldest snapshot if the journal back to it is too large; whether it did. What one of the
   * archivers has not copied yet is kept, up to a journal of twice the bytes to retain.
   */
  dropOldest(journal: JournalBytes, archived: readonly ArchivedShard[]): boolean {
    const crowded = isCrowded(journal);
    const isTooMuch = crowded || journal.bytes > this.#retainBytes;
    if (!isTooMuch || this.#kept.length <= (crowded ? 1 : SNAPSHOTS_MIN)) return false;
    if (this.#mayWait(journal) && archived.some((copied) => this.#lacksOldest(copied)))
      return false;
    this.#kept.shift();
    return true;
  }

  /**
   * Whether the records before the oldest snapshot stay, as one of the archivers has not copied them, up to a
   * journal of the same bound.
   */
  holdsBefore(journal: JournalBytes, archived: readonly ArchivedShard[]): boolean {
    const oldest = this.#kept[0]?.manifest;
    if (oldest === undefined || !this.#mayWait(journal)) return false;
    return archived.some(({ record }) => comparePositions(record, oldest) < 0);
  }

  /** Whether a journal is small enough to wait for archivers. */
  #mayWait(journal: JournalBytes): boolean {
    return !isCrowded(journal) && journal.bytes <= HELD_FACTOR * this.#retainBytes;
  }

  /** Whether an archiver lacks something that goes with the oldest snapshot. */
  #lacksOldest({ record, snapshot }: ArchivedShard): boolean {
    const [oldest, next] = this.#kept;
    if (oldest === undefined || next === undefined) return false;
    const { generation, seq } = next.manifest;
    // The record of the snapshot that is the oldest then stays.
    return (
      comparePositions(snapshot, oldest.manifest) < 0 ||
      comparePositions(record, { generation, seq: seq - 1 }) < 0
    );
  }

  /** Those of the shard's messages in the store, older than the newest snapshot, that none needs. */
  unneeded(stored: readonly number[]): number[] {
    const needed = new Set<number>();
    for (const { seq, manifest } of [...this.#past, ...this.#kept]) {
      needed.add(seq);
      for (const piece of manifest.state) needed.add(piece.seq);
      for (const piece of manifest.pieces) needed.add(piece);
    }
    const newest = this.#kept.at(-1)?.seq ?? 0;
    return stored.filter((seq) => seq < newest && !needed.has(seq));
  }
}

function isCrowded({ bytes, bytesMax }: JournalBytes): boolean {
  return bytesMax > 0 && bytes > HISTORY_SHARE * bytesMax;
}
