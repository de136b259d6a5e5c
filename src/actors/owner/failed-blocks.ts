import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import type { JobSubjects } from "../../protocol/index.ts";
import type { ParameterPlaces } from "./parameter-places.ts";

/** Answers a pull of a block of one shard with the error of the shard. */
type Refuse = (message: Msg) => void;

/**
 * Receives the pulls of all blocks of the job while a shard of this worker has failed. Such a shard may
 * not know its blocks, because it has not folded their `init`; yet their askers are to get the error
 * instead of waiting for an owner. One subscription serves all failed shards.
 */
export class FailedBlocks {
  readonly #connection: NatsConnection;
  readonly #subjects: JobSubjects;
  readonly #places: Pick<ParameterPlaces, "shardOf">;
  readonly #shards: number;
  readonly #refusals: Map<number, Refuse> = new Map();
  #subscription: Subscription | undefined;

  /** `shards`: number of shards of the job. */
  constructor(
    connection: NatsConnection,
    subjects: JobSubjects,
    places: Pick<ParameterPlaces, "shardOf">,
    shards: number,
  ) {
    this.#connection = connection;
    this.#subjects = subjects;
    this.#places = places;
    this.#shards = shards;
  }

  /** Passes the pulls of the shard's blocks to `refuse`; the returned function ends that. */
  add(shard: number, refuse: Refuse): () => void {
    this.#refusals.set(shard, refuse);
    this.#subscription ??= this.#connection.subscribe(this.#subjects.allPulls(), {
      callback: (error, message) => {
        if (error === null) void this.#handOn(message);
      },
    });
    return () => this.#remove(shard, refuse);
  }

  #remove(shard: number, refuse: Refuse): void {
    // A later owner of the same shard may have failed, too.
    if (this.#refusals.get(shard) === refuse) this.#refusals.delete(shard);
    if (this.#refusals.size > 0) return;
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
  }

  async #handOn(message: Msg): Promise<void> {
    const block = this.#subjects.parsePull(message.subject);
    if (block === undefined) return;
    const shard = await this.#places.shardOf(block.parameter, block.index, this.#shards);
    if (shard !== undefined) this.#refusals.get(shard)?.(message);
  }
}
