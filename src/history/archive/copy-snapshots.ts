import type { Manifest, PieceRef } from "../../actors/snapshot/manifest.ts";
import { readSnapshotState } from "../../actors/snapshot/state.ts";
import { ensureError, type Position, type PserverError } from "../../protocol/index.ts";
import type { KeptSnapshot, ShardHistory } from "../source.ts";
import type { ArchiveFacts } from "./archive-facts.ts";
import { listSnapshots, snapshotDirectory } from "./archive-layout.ts";
import { otherLife } from "./same-history.ts";
import { type PieceToCopy, readSnapshotHead, writeSnapshot } from "./snapshot-file.ts";

/** Dependencies of {@link SnapshotCopier}. */
export interface SnapshotCopierDeps {
  readonly source: ShardHistory;
  readonly directory: string;
  readonly facts: ArchiveFacts;
  /** Called for a snapshot that is damaged where it is kept; it is left out. */
  readonly onDamaged: (error: PserverError) => void;
}

/** Copies the snapshots of one shard into an archive, in the order in which they were stored. */
export class SnapshotCopier {
  readonly #deps: SnapshotCopierDeps;
  /** The manifest that was copied last: its pieces are in the archive. */
  #copied: Manifest | undefined;
  /** Sequence of the manifest copied, or left out, last. */
  #lastSeq = 0;
  #newest: Position | undefined;
  #bytes = 0;

  private constructor(deps: SnapshotCopierDeps) {
    this.#deps = deps;
  }

  /** Goes on after the last snapshot in the archive. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
  static async open(deps: SnapshotCopierDeps): Promise<SnapshotCopier> {
    const copier = new SnapshotCopier(deps);
    const { directory, facts, source } = deps;
    const last = (await listSnapshots(snapshotDirectory(directory, source.shard))).at(-1);
    if (last === undefined) return copier;
    const { snapshot } = await readSnapshotHead(last, source.shard, facts);
    copier.#copied = snapshot.manifest;
    copier.#note(snapshot);
    return copier;
  }

  /** The newest record that a snapshot was copied of; undefined before the first. */
  get newest(): Position | undefined {
    return this.#newest;
  }

  /** Bytes of the files written. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Copies the snapshots that came after the last one. Those that are removed meanwhile are left out.
   * @throws DISK_FULL, IO; what the source throws, for example NO_BROKER; the reason of `signal`.
   */
  async copy(signal: AbortSignal): Promise<void> {
    const found = [...(await this.#deps.source.snapshots())].sort((a, b) => a.seq - b.seq);
    for (const snapshot of found) {
      signal.throwIfAborted();
      this.#checkJournal(snapshot.manifest);
      if (snapshot.seq <= this.#lastSeq) continue;
      // A take-over commits the newest snapshot again.
      if (!isSameCut(snapshot.manifest, this.#copied)) await this.#copyOne(snapshot, signal);
      this.#note(snapshot);
    }
  }

  /** @throws BAD_ARCHIVE if a snapshot is of another journal of its generation than the last one copied. */
  #checkJournal({ generation, created }: Manifest): void {
    const copied = this.#copied;
    // A snapshot that was made before its journal does not know when that was created.
    const isOther = created !== "" && copied?.created !== "" && created !== copied?.created;
    if (copied?.generation !== generation || !isOther) return;
    const { directory, source } = this.#deps;
    const journal = `the journal of shard ${source.shard}, generation ${generation}`;
    throw otherLife(directory, `${journal}, was created at ${copied.created}; now at ${created}`);
  }

  #note({ seq: storedSeq, manifest: { generation, seq } }: KeptSnapshot): void {
    this.#lastSeq = storedSeq;
    this.#newest = { generation, seq };
  }

  async #copyOne(snapshot: KeptSnapshot, signal: AbortSignal): Promise<void> {
    const { directory, facts, source, onDamaged } = this.#deps;
    try {
      const pieces = await this.#newPieces(snapshot.manifest, signal);
      this.#bytes += await writeSnapshot(directory, facts, source.shard, snapshot, pieces);
      this.#copied = snapshot.manifest;
    } catch (error) {
      const found = ensureError(error);
      if (found.code !== "SNAPSHOT_DAMAGED") throw found;
      const isKept = (await source.snapshots()).some(({ seq }) => seq === snapshot.seq);
      if (isKept) onDamaged(found);
    }
  }

  /** The pieces of a snapshot that the one before does not name: no file of the archive has them. */
  async #newPieces(manifest: Manifest, signal: AbortSignal): Promise<PieceToCopy[]> {
    const { source } = this.#deps;
    const store = { read: (ref: PieceRef) => source.piece(ref) };
    const { pieces } = await readSnapshotState(store, manifest);
    const before = this.#copied;
    const known = new Set([
      ...(before?.pieces ?? []),
      ...(before?.state ?? []).map(({ seq }) => seq),
    ]);
    const refs = [...manifest.state, ...pieces.flatMap(({ slots }) => slots)];
    return refs.flatMap((ref) => {
      if (known.has(ref.seq)) return [];
      known.add(ref.seq);
      const read = async (): Promise<Uint8Array> => {
        signal.throwIfAborted();
        return await source.piece(ref);
      };
      return [{ seq: ref.seq, read }];
    });
  }
}

/** Whether two manifests name the same state of the same journal. */
function isSameCut(a: Manifest, b: Manifest | undefined): boolean {
  const key = ({ generation, created, seq, state }: Manifest): string =>
    JSON.stringify([generation, created, seq, state.map((ref) => [ref.seq, ref.crc])]);
  return b !== undefined && key(a) === key(b);
}
