import { Shard } from "../../../../src/actors/fold/shard.ts";
import type { Manifest } from "../../../../src/actors/journal/manifest.ts";
import { type BlockPieces, blockKey } from "../../../../src/actors/journal/snapshot-store.ts";
import {
  asMap,
  decodeMessage,
  listField,
  PserverError,
  readCrc,
  unpackValue,
} from "../../../../src/protocol/index.ts";
import { SHARD, SUBJECTS } from "../../fold/journal-writer.ts";

/** Stores messages; while it is held, publishes wait. */
export class HeldStore {
  readonly messages: Map<number, Uint8Array> = new Map();
  readonly subjects: Map<number, string> = new Map();
  readonly manifests: Manifest[] = [];
  failing = false;
  room = Number.POSITIVE_INFINITY;
  /** Awaited before a manifest's commit is answered; it may fail. */
  afterCommit: () => Promise<void> = () => Promise.resolve();
  #seq = 0;
  #waiting: (() => void)[] | undefined;

  hold(): void {
    this.#waiting = [];
  }

  release(): void {
    for (const go of this.#waiting?.splice(0) ?? []) go();
    this.#waiting = undefined;
  }

  /** Lets one publish through, which fails. */
  async failOne(): Promise<void> {
    this.failing = true;
    this.#waiting?.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
    this.failing = false;
  }

  get waiting(): number {
    return this.#waiting?.length ?? 0;
  }

  async publish(subject: string, bytes: Uint8Array): Promise<{ seq: number; crc: number }> {
    const held = this.#waiting;
    if (held !== undefined) await new Promise<void>((resolve) => held.push(resolve));
    if (this.failing) throw new PserverError("TIMEOUT", "the broker did not answer");
    const seq = ++this.#seq;
    this.messages.set(seq, bytes);
    this.subjects.set(seq, subject);
    return { seq, crc: readCrc(bytes) };
  }

  async commit(manifest: Manifest): Promise<number> {
    this.manifests.push(manifest);
    const seq = ++this.#seq;
    await this.afterCommit();
    return seq;
  }

  requireRoom(bytes: number): Promise<void> {
    return bytes <= this.room
      ? Promise.resolve()
      : Promise.reject(new PserverError("JOURNAL_FULL", `${bytes} bytes of ${this.room}`));
  }

  remove(sequences: Iterable<number>): Promise<void> {
    for (const seq of sequences) this.messages.delete(seq);
    return Promise.resolve();
  }

  /** The shard that the newest manifest names. */
  restore(): Shard {
    const manifest = this.manifests.at(-1);
    const parts = manifest?.state.map(({ seq }) => this.data(seq)) ?? [];
    const state = asMap(unpackValue(Buffer.concat(parts)), "state");
    const pieces = listField(state, "pieces", 1_000) as readonly BlockPieces[];
    const byBlock = new Map(pieces.map((entry) => [blockKey(entry.parameter, entry.index), entry]));
    return Shard.restore({ subjects: SUBJECTS, shard: SHARD }, state["fold"], (block, slot) =>
      this.data(byBlock.get(blockKey(block.parameter, block.index))?.slots[slot]?.seq ?? 0),
    );
  }

  data(seq: number): Uint8Array {
    return decodeMessage(this.messages.get(seq) ?? new Uint8Array(0)).data;
  }
}
