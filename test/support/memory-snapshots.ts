import type { Manifest, PieceRef, StoredManifest } from "../../src/actors/journal/manifest.ts";
import type { SnapshotStore, StoredBytes } from "../../src/actors/journal/snapshot-store.ts";
import { PserverError, readCrc } from "../../src/protocol/index.ts";

/** The snapshots of one shard in memory: as {@link SnapshotStore}, without a broker. */
export class MemorySnapshots {
  /** By sequence: the bytes of a piece, or a manifest. */
  readonly messages: Map<number, Uint8Array | Manifest> = new Map();
  #seq = 0;

  /** To be given to whoever wants a {@link SnapshotStore}. */
  get store(): SnapshotStore {
    return this as unknown as SnapshotStore;
  }

  publish(_subject: string, bytes: Uint8Array): Promise<PieceRef> {
    return Promise.resolve({ seq: this.#put(Uint8Array.from(bytes)), crc: readCrc(bytes) });
  }

  read({ seq, crc }: PieceRef): Promise<Uint8Array> {
    const found = this.messages.get(seq);
    if (found instanceof Uint8Array && readCrc(found) === crc) return Promise.resolve(found);
    return Promise.reject(new PserverError("SNAPSHOT_DAMAGED", `message ${seq} is lost`, { seq }));
  }

  manifests(): Promise<StoredManifest[]> {
    const found: StoredManifest[] = [];
    for (const [seq, manifest] of this.messages) {
      if (!(manifest instanceof Uint8Array)) found.push({ seq, manifest });
    }
    return Promise.resolve(found);
  }

  async lastManifest(): Promise<StoredManifest | undefined> {
    return (await this.manifests()).at(-1);
  }

  async commit(manifest: Manifest, previousSeq: number): Promise<number> {
    if (((await this.lastManifest())?.seq ?? 0) === previousSeq) return this.#put(manifest);
    throw new PserverError("NOT_OWNER", "another owner has committed since");
  }

  async fence(): Promise<StoredManifest | undefined> {
    const newest = await this.lastManifest();
    return newest && { ...newest, seq: this.#put(newest.manifest) };
  }

  list(): Promise<StoredBytes> {
    return Promise.resolve(
      new Map(
        [...this.messages].map(([seq, message]) => [
          seq,
          message instanceof Uint8Array ? message.length : 0,
        ]),
      ),
    );
  }

  requireRoom(): Promise<void> {
    return Promise.resolve();
  }

  remove(sequences: Iterable<number>): Promise<void> {
    for (const seq of sequences) this.messages.delete(seq);
    return Promise.resolve();
  }

  #put(message: Uint8Array | Manifest): number {
    this.#seq += 1;
    this.messages.set(this.#seq, message);
    return this.#seq;
  }
}
