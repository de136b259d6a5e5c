import type { BlockHeader } from "../../actors/fold/block.ts";
import type { Position } from "../../protocol/index.ts";
import type { ReplayThread } from "./replay-thread.ts";
import type { ReplayedShard } from "./replayed-shard.ts";
import type { KeptShard } from "./thread-messages.ts";

/** A replayed shard of another thread. */
export class RemoteReplayedShard implements ReplayedShard {
  readonly shard: number;
  readonly #thread: ReplayThread;
  readonly #replay: number;
  #kept: KeptShard;

  /** `replay`: by which the thread knows it; `kept`: what the thread told of it. */
  constructor(thread: ReplayThread, replay: number, shard: number, kept: KeptShard) {
    this.shard = shard;
    this.#thread = thread;
    this.#replay = replay;
    this.#kept = kept;
  }

  get position(): Position {
    return this.#kept.position;
  }

  get blocks(): readonly BlockHeader[] {
    return this.#kept.blocks;
  }

  async advance(to: Position): Promise<void> {
    const { generation, seq } = this.position;
    if (generation === to.generation && seq >= to.seq) return;
    const replay = this.#replay;
    this.#kept = await this.#thread.ask({ kind: "advance", replay, to }).result;
  }

  digest(): Promise<string> {
    return this.#thread.ask({ kind: "digest", replay: this.#replay }).result;
  }

  stateDigest(): Promise<string> {
    return this.#thread.ask({ kind: "state-digest", replay: this.#replay }).result;
  }

  blockDigest(parameter: string, index: number): Promise<string | undefined> {
    const replay = this.#replay;
    return this.#thread.ask({ kind: "block-digest", replay, parameter, index }).result;
  }

  slot(parameter: string, index: number, slot: number): Promise<Uint8Array<ArrayBuffer>> {
    const replay = this.#replay;
    return this.#thread.ask({ kind: "slot", replay, parameter, index, slot }).result;
  }

  async free(): Promise<void> {
    await this.#thread.ask({ kind: "free", replay: this.#replay }).result;
  }
}
