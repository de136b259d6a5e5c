import type { Block } from "../../src/actors/fold/block-actor.ts";
import type { Manifest, PieceRef, StoredManifest } from "../../src/actors/journal/manifest.ts";
import {
  type BlockPieces,
  blockKey,
  type SnapshotState,
} from "../../src/actors/journal/snapshot-store.ts";
import type { SnapshotCut } from "../../src/actors/journal/snapshots/snapshotter.ts";
import { packValue, unpackValue } from "../../src/protocol/codec.ts";
import { promise } from "./violation.ts";

/** A whole snapshot: the state packed, and the values of its blocks. */
export interface Snapshot {
  readonly seq: number;
  readonly state: Uint8Array;
  readonly values: ReadonlyMap<string, Uint8Array>;
}

/** The values of a block in a snapshot. */
export function readValues({ values }: Snapshot, block: Pick<Block, "parameter" | "index">) {
  return values.get(blockKey(block.parameter, block.index)) ?? new Uint8Array(0);
}

/** The snapshot stream of the shard: messages, and manifests that are written by compare-and-swap. */
export class SnapshotStream {
  readonly #messages: Map<number, Uint8Array> = new Map();
  readonly #manifests: Map<number, Manifest> = new Map();
  #last = 0;

  /** All manifests, oldest first. */
  get manifests(): StoredManifest[] {
    return [...this.#manifests].map(([seq, manifest]) => ({ seq, manifest }));
  }

  /** The sequences of all messages and manifests. */
  get sequences(): number[] {
    return [...this.#messages.keys(), ...this.#manifests.keys()];
  }

  publish(bytes: Uint8Array): PieceRef {
    this.#last += 1;
    this.#messages.set(this.#last, bytes.slice());
    return { seq: this.#last, crc: 0 };
  }

  /** Writes a manifest after another; undefined if that is not the newest. */
  commit(manifest: Manifest, previousSeq: number): StoredManifest | undefined {
    if ((this.manifests.at(-1)?.seq ?? 0) !== previousSeq) return undefined;
    this.#last += 1;
    this.#manifests.set(this.#last, manifest);
    return { seq: this.#last, manifest };
  }

  /** Commits what a cut holds, whose blocks are all stored. */
  commitCut(
    cut: SnapshotCut,
    head: Pick<Manifest, "term" | "owner">,
    previousSeq: number,
  ): StoredManifest | undefined {
    const { fold, seq, recordCrc, checksum, pieces } = cut;
    const state: SnapshotState = { fold, pieces };
    const manifest: Manifest = {
      ...{ ...head, host: "h", generation: 1, created: "now", fallbacks: [] },
      ...{ seq, recordCrc, checksum },
      state: [this.publish(packValue(state))],
      pieces: pieces.flatMap(({ slots }) => slots.map((slot) => slot.seq)),
    };
    return this.commit(manifest, previousSeq);
  }

  remove(sequences: Iterable<number>): void {
    for (const seq of sequences) {
      this.#messages.delete(seq);
      this.#manifests.delete(seq);
    }
  }

  /** The snapshot that a manifest names, and its pieces by block. */
  read({ manifest }: StoredManifest): {
    readonly snapshot: Snapshot;
    readonly stored: ReadonlyMap<string, BlockPieces>;
  } {
    const [ref] = manifest.state;
    const { fold, pieces } = unpackValue(this.#message(ref?.seq ?? 0).slice()) as SnapshotState;
    const entries = pieces.map((entry) => [blockKey(entry.parameter, entry.index), entry] as const);
    const values = entries.map(([key, { slots }]) => {
      return [key, this.#message(slots[0]?.seq ?? 0)] as const;
    });
    const snapshot = { seq: manifest.seq, state: packValue(fold), values: new Map(values) };
    return { snapshot, stored: new Map(entries) };
  }

  #message(seq: number): Uint8Array {
    const bytes = this.#messages.get(seq);
    promise(bytes !== undefined, () => `message ${seq} of a kept snapshot is gone`);
    return bytes;
  }
}
