import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Shard } from "../../actors/fold/shard.ts";
import type { StoredJob } from "../../actors/job/stored-job.ts";
import { MarkKeeper } from "../../actors/owner/mark-keeper.ts";
import {
  type Continued,
  continueShard,
  leftJournals,
} from "../../actors/recovery/continue-shard.ts";
import { SnapshotBudget } from "../../actors/snapshot/snapshot-budget.ts";
import { SnapshotStore } from "../../actors/snapshot/store.ts";
import { ensureError, type Position, PserverError } from "../../protocol/index.ts";
import { BufferPool } from "../../transport/buffer-pool.ts";
import { dataBytesMaxOf } from "../../transport/payload-limit.ts";
import type { StreamPublisher } from "../../transport/stream-publisher.ts";

/** Attempts to write a state while the owner makes snapshots. */
const TRIES_MAX = 8;

/** Pause between two attempts. */
const RETRY_MS = 100;

/** Dependencies of {@link ShardRewind}. */
export interface ShardRewindDeps {
  readonly connection: NatsConnection;
  readonly publisher: StreamPublisher;
  /** The id of the connection's inbox. */
  readonly host: string;
  readonly job: StoredJob;
  /** Token in the manifests. */
  readonly owner: string;
  readonly shard: number;
}

/** Lets one shard go on from an earlier state, in place of its present one. */
export class ShardRewind {
  readonly #deps: ShardRewindDeps;
  readonly #store: SnapshotStore;

  constructor(deps: ShardRewindDeps) {
    const { publisher, shard } = deps;
    const { manager, client, subjects } = deps.job;
    this.#deps = deps;
    this.#store = new SnapshotStore({ manager, client, publisher, subjects, shard });
  }

  /** The present generation. @throws SNAPSHOT_DAMAGED if the shard has no manifest. */
  async generation(): Promise<number> {
    const newest = await this.#store.lastManifest();
    if (newest === undefined) throw noManifest(this.#deps.shard);
    return newest.manifest.generation;
  }

  /**
   * Puts a state in place of the present one, under the next generation. The abandoned journal stays readable
   * with its snapshots. All of the state is stored before the one write that decides; an owner that writes a
   * snapshot meanwhile removes it as unneeded, so that it is stored again.
   * @throws NOT_OWNER if owners were faster each time; NO_SPACE.
   */
  async commit(shard: Shard, at: Position, signal: AbortSignal): Promise<Continued> {
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted();
      try {
        return await this.#try(shard, at);
      } catch (error) {
        const { code } = ensureError(error);
        if ((code !== "NOT_OWNER" && code !== "SNAPSHOT_DAMAGED") || tries === TRIES_MAX) {
          throw error;
        }
        await delay(RETRY_MS);
      }
    }
  }

  async #try(shard: Shard, at: Position): Promise<Continued> {
    const { job, host, owner, connection, shard: number } = this.#deps;
    const manifests = await this.#store.manifests();
    const newest = manifests.at(-1);
    if (newest === undefined) throw noManifest(number);
    const { generation, term, fallbacks } = newest.manifest;
    const journal = job.journalOf(number);
    const lastSeq = (await journal.lastSeq(generation)) ?? 0;
    return await continueShard(
      {
        ...{ shard: number, host, subjects: job.subjects, journal, store: this.#store },
        journalStorage: job.settings.journal,
        partBytesMax: dataBytesMaxOf(connection),
        snapshotBudget: new SnapshotBudget(new BufferPool()),
        marks: new MarkKeeper(job.records, number),
      },
      {
        ...{ shard, stored: new Map(), owner, generation, manifestSeq: newest.seq, term },
        fallbacks: fallbacks.filter((fallback) => fallback.generation < at.generation),
        left: leftJournals(at, newest.manifest, { generation, lastSeq }),
        past: manifests,
      },
    );
  }
}

/** The error for a shard that no host has served, or that has lost all of its snapshots. */
function noManifest(shard: number): PserverError {
  return new PserverError("SNAPSHOT_DAMAGED", `shard ${shard}: no snapshot is left`, { shard });
}
