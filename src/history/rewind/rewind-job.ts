import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { mapConcurrently } from "../../actors/concurrent.ts";
import type { Shard } from "../../actors/fold/shard.ts";
import { storageQueries } from "../../actors/jetstream/storage-queries.ts";
import { openStoredJob, type StoredJob } from "../../actors/job/stored-job.ts";
import { jobRecord } from "../../actors/lifecycle/lifecycle-record.ts";
import { parameterRecord, readAllParameters } from "../../actors/lifecycle/parameter-record.ts";
import { takeOverMs } from "../../actors/recovery/await-owner.ts";
import { OwnersClient } from "../../actors/requests/owners-client.ts";
import { ensureError, type Fallback, type Position, PserverError } from "../../protocol/index.ts";
import { StreamPublisher } from "../../transport/stream-publisher.ts";
import { FoundParameters } from "../fork/found-parameters.ts";
import type { Rebuild } from "../fork/rebuild.ts";
import { endRewind, type RewindPlan, rewindRecord } from "./rewind-record.ts";
import { ShardRewind } from "./rewind-shard.ts";
import { rewoundRecords } from "./rewound-records.ts";

/** Completed stage of a rewind; before `begun`, the job is unchanged. */
export type RewindStage = "rebuilt" | "begun" | `shard ${number}` | "parameters" | "complete";

/** Options of {@link rewindJob}. */
export interface RewindOptions {
  /** As a host of the job has one. */
  readonly connection: NatsConnection;
  /** The id of the connection's inbox. */
  readonly host: string;
  readonly job: string;
  /** The position of each shard to go on from. */
  readonly at: readonly Position[];
  /** Makes a shard as it was at a position. */
  readonly rebuild: Rebuild;
  readonly signal: AbortSignal;
  /** Called after each stage. */
  readonly onStage?: (stage: RewindStage) => void;
}

/** A shard that goes on from an earlier state. */
export interface RewoundShard extends Position {
  readonly shard: number;
  /** What it gave up; empty for a shard that an interrupted rewind had completed. */
  readonly fallbacks: readonly Fallback[];
  /** Whether a host serves it by now. */
  readonly served: boolean;
}

/** A job that goes on from an earlier state. */
export interface RewoundJob {
  readonly job: string;
  /** The positions that its shards go on from. */
  readonly at: readonly Position[];
  /** Whether a rewind that had been interrupted was completed, and not the one that was asked for. */
  readonly completed: boolean;
  readonly shards: readonly RewoundShard[];
  /** Names of parameters that are ready, and of those to be initialized anew. */
  readonly ready: readonly string[];
  readonly gone: readonly string[];
}

/** The rewind of a job that was interrupted; undefined if there is none. @throws BAD_NAME, TIMEOUT, …. */
export async function interruptedRewind(
  connection: NatsConnection,
  job: string,
): Promise<RewindPlan | undefined> {
  const { records } = await openStoredJob(connection, job);
  return await rewindRecord.read({ bucket: records });
}

/**
 * Lets a job go on from an earlier state, in place, while hosts serve it. All shards are rebuilt in memory before
 * anything is written. Then the plan is noted in the job's bucket, and one shard after the other is put under
 * the next generation, by one write each. If that is interrupted, some shards have gone back and others have
 * not; the next rewind, whatever its point, completes this one.
 * @throws BAD_NAME if there is no such job; BUSY if another rewind has begun meanwhile; NOT_OWNER if an owner
 * made snapshots faster than the state could be stored; NO_SPACE; the errors of `rebuild`; ABORTED.
 */
export async function rewindJob(options: RewindOptions): Promise<RewoundJob> {
  const { connection, host, signal } = options;
  const job = await openStoredJob(connection, options.job);
  return await new JobRewind(
    options,
    job,
    StreamPublisher.open(connection, job.subjects.hostInbox(host)),
  ).run(signal);
}

/** A rewind of one job. */
class JobRewind {
  readonly #options: RewindOptions;
  readonly #job: StoredJob;
  readonly #publisher: StreamPublisher;
  readonly #found: FoundParameters;

  constructor(options: RewindOptions, job: StoredJob, publisher: StreamPublisher) {
    this.#options = options;
    this.#job = job;
    this.#publisher = publisher;
    this.#found = new FoundParameters(job.settings.shards);
  }

  async run(signal: AbortSignal): Promise<RewoundJob> {
    const { job, onStage } = this.#options;
    const deps = { bucket: this.#job.records, pause: delay };
    const interrupted = await rewindRecord.read(deps);
    const at = interrupted?.at ?? this.#options.at;
    const shards = await this.#rebuild(at, signal);
    onStage?.("rebuilt");
    const plan = interrupted ?? (await this.#begin(at));
    onStage?.("begun");
    const rewound = await this.#commit(plan, shards, signal);
    const { ready, gone } = await this.#writeRecords(at);
    onStage?.("parameters");
    await endRewind(this.#job.records, plan.id);
    onStage?.("complete");
    const served = await this.#awaitOwners(rewound);
    const completed = interrupted !== undefined;
    return { job, at, completed, shards: served, ready, gone };
  }

  async #rebuild(at: readonly Position[], signal: AbortSignal): Promise<Shard[]> {
    const shards: Shard[] = [];
    for (const [number, position] of at.entries()) {
      signal.throwIfAborted();
      const shard = await this.#options.rebuild(number, position);
      this.#found.add(number, shard.saveState());
      shards.push(shard);
    }
    return shards;
  }

  /** Notes the plan. @throws BUSY if there is another one by now. */
  async #begin(at: readonly Position[]): Promise<RewindPlan> {
    const { job } = this.#options;
    const id = randomUUID();
    const from = await mapConcurrently([...at.keys()], (shard) => this.#of(shard, id).generation());
    const plan = { id, begunMs: Date.now(), at, from };
    await rewindRecord.change({ bucket: this.#job.records, pause: delay }, (other) => {
      if (other === undefined) return plan;
      if (other.id === id) return other;
      throw new PserverError("BUSY", `job ${job}: another rewind has begun`, { job });
    });
    return plan;
  }

  /** Puts the shards that have not gone back yet under the next generation. */
  async #commit(
    { id, at, from }: RewindPlan,
    shards: readonly Shard[],
    signal: AbortSignal,
  ): Promise<Omit<RewoundShard, "served">[]> {
    const rewound: Omit<RewoundShard, "served">[] = [];
    for (const [shard, state] of shards.entries()) {
      const rewind = this.#of(shard, id);
      const position = at[shard] as Position;
      const generation = await rewind.generation();
      const isDone = generation > (from[shard] ?? 0);
      const next = isDone
        ? { generation, fallbacks: [] }
        : await rewind.commit(state, position, signal);
      rewound.push({ shard, seq: 0, ...next });
      this.#options.onStage?.(`shard ${shard}`);
    }
    return rewound;
  }

  async #writeRecords(at: readonly Position[]): Promise<{ ready: string[]; gone: string[] }> {
    const deps = { bucket: this.#job.records, pause: delay };
    const records = {
      job: await jobRecord.read(deps),
      parameters: await readAllParameters(this.#job.records),
    };
    const { job, parameters } = rewoundRecords(records, this.#found.parameters(), at);
    await mapConcurrently(parameters, (parameter) =>
      parameterRecord(parameter.declaration.name).change(deps, () => parameter),
    );
    // Last: hosts read the parameters again when this record has changed.
    await jobRecord.change(deps, () => job);
    const names = (state: string): string[] =>
      parameters
        .filter(({ lifecycle }) => lifecycle.state === state)
        .map(({ declaration }) => declaration.name)
        .sort();
    return { ready: names("ready"), gone: names("uninitialized") };
  }

  /**
   * Asks each owner for a snapshot of the new generation: one that still folds the old journal learns by that
   * that it is deposed, and takes the shard over again.
   */
  async #awaitOwners(shards: readonly Omit<RewoundShard, "served">[]): Promise<RewoundShard[]> {
    const { connection, host } = this.#options;
    const { manager, subjects, settings, journalOf } = this.#job;
    const storage = storageQueries(manager, subjects);
    const owners = new OwnersClient({ connection, storage, subjects, host, journalOf });
    const graceMs = takeOverMs(settings.leaseMs);
    return await mapConcurrently(shards, async (rewound) => {
      const { shard, generation } = rewound;
      try {
        await owners.ask(shard, "snapshot", { generation, seq: 0 }, graceMs);
        return { ...rewound, served: true };
      } catch (error) {
        // Where no host runs, the next one to start finds the shard as it is now.
        if (ensureError(error).code !== "NO_OWNER") throw error;
        return { ...rewound, served: false };
      }
    });
  }

  #of(shard: number, owner: string): ShardRewind {
    const { connection, host } = this.#options;
    const [job, publisher] = [this.#job, this.#publisher];
    return new ShardRewind({ connection, publisher, host, job, owner, shard });
  }
}
