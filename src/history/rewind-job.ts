import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { mapConcurrently } from "../actors/concurrent.ts";
import type { Shard } from "../actors/fold/shard.ts";
import { openStoredJob, type StoredJob } from "../actors/job/open-job.ts";
import { OwnersClient } from "../actors/job/owners-client.ts";
import {
  ENTRY_FORMAT,
  type KvBucket,
  type KvEntry,
  readEntry,
} from "../actors/journal/kv-bucket.ts";
import type { StoredManifest } from "../actors/journal/manifest.ts";
import {
  type ContinuedShard,
  continueShard,
  journalLosses,
} from "../actors/journal/next-generation.ts";
import { SnapshotStore } from "../actors/journal/snapshot-store.ts";
import { BucketEntry } from "../actors/lifecycle/lock.ts";
import { jobEntry, type Lifecycle } from "../actors/lifecycle/machine.ts";
import {
  type Parameter,
  parameterEntry,
  readAllParameters,
} from "../actors/lifecycle/parameter.ts";
import { takeOverMs } from "../actors/recovery/recovery.ts";
import {
  asMap,
  comparePositions,
  ensureError,
  type Fallback,
  integerField,
  listField,
  type Position,
  PserverError,
  parsePosition,
  SHARDS_MAX,
  textField,
  withFallbacks,
} from "../protocol/index.ts";
import { dataBytesMaxOf } from "../transport/bulk-transport.ts";
import { StreamPublisher } from "../transport/jetstream.ts";
import { FoundParameters, type Rebuild } from "./fork-job.ts";

/** A rewind under way, or one that was interrupted. */
export interface RewindPlan {
  /** Token of the rewind. */
  readonly id: string;
  /** When it was begun, in milliseconds since 1970. */
  readonly begunMs: number;
  /** Position of each shard to which it goes back. */
  readonly at: readonly Position[];
  /** Generation of each shard when it was begun; a shard of a later generation has been rewound. */
  readonly from: readonly number[];
}

const REWIND_KEY = "rewind";

/** The entry of a rewind in the bucket of its job; there is none when the rewind is complete. */
const rewindEntry = new BucketEntry<RewindPlan | undefined, RewindPlan>(
  REWIND_KEY,
  parsePlan,
  (plan) => ({ format: ENTRY_FORMAT, ...plan }),
);

/** Removes the entry of a rewind that is complete, unless it is gone already. */
async function endRewind(bucket: KvBucket, id: string): Promise<void> {
  const stored = await bucket.read(REWIND_KEY);
  if (stored === undefined || parsePlan(stored)?.id !== id) return;
  await bucket.remove(REWIND_KEY, stored.revision);
}

/** Reads the plan from its entry. @throws BAD_VERSION for an entry of another format, JOB_DAMAGED for a damaged one. */
function parsePlan(stored: KvEntry | undefined): RewindPlan | undefined {
  if (stored === undefined) return undefined;
  return readEntry(stored.value, REWIND_KEY, (fields) => ({
    id: textField(fields, "id"),
    begunMs: integerField(fields, "begunMs"),
    at: listField(fields, "at", SHARDS_MAX).map((at) => parsePosition(asMap(at, "at"))),
    from: listField(fields, "from", SHARDS_MAX).map((from) => integerField({ from }, "from", 1)),
  }));
}

/** Attempts to write a state while the owner makes snapshots. */
const TRIES_MAX = 8;

/** Pause between two attempts. */
const RETRY_MS = 100;

/**
 * Reads the newest manifest.
 * @throws SNAPSHOT_DAMAGED if no host has served the shard, or if all manifests are lost.
 */
async function newestManifest(store: SnapshotStore, shard: number): Promise<StoredManifest> {
  const newest = await store.lastManifest();
  if (newest !== undefined) return newest;
  throw new PserverError("SNAPSHOT_DAMAGED", `shard ${shard}: no snapshot is left`, { shard });
}

/** Lifecycles of a job and its parameters, as their entries hold them. */
export interface LifecycleEntries {
  readonly job: Lifecycle;
  readonly parameters: readonly Parameter[];
}

/**
 * Returns the entries of a job whose shards go on from a cut. A parameter that was ready there is ready, under the
 * epoch that it had; any other is to be initialized again, under a higher epoch than it ever had. The job is
 * initialized if it was initialized at the cut.
 * @param found the parameters as the shards show them at the cut.
 */
export function rewoundEntries(
  { job, parameters: known }: LifecycleEntries,
  found: readonly Parameter[],
  cut: readonly Position[],
): LifecycleEntries {
  const knownByName = new Map(known.map((each) => [each.declaration.name, each]));
  const isReady = wasReady(job, knownByName, found, cut);
  const parameters = new Map(
    known.map((each) => [each.declaration.name, withoutInitialization(each)]),
  );
  for (const each of found) {
    const { name } = each.declaration;
    const before = knownByName.get(name);
    const isOfUnfinished = !isReady && before !== undefined && before.jobEpoch !== 0;
    const hasBlocks = each.lifecycle.state === "ready" && !isOfUnfinished;
    const blocksMax = Math.max(each.blocksMax, before?.blocksMax ?? 0);
    const epoch = Math.max(each.lifecycle.context.epoch, before?.lifecycle.context.epoch ?? 0);
    const revision = before?.revision ?? 0;
    const after = { ...each, blocksMax, revision };
    parameters.set(name, hasBlocks ? after : withoutInitialization(after, epoch));
  }
  const { context } = job;
  // Has hosts read those parameters again that they know as ready.
  const revised = context.revised + 1;
  const state = isReady ? "ready" : "uninitialized";
  const epoch = isReady ? Math.max(1, context.epoch) : context.epoch;
  return {
    job: { state, context: { ...context, epoch, at: [], revised } },
    parameters: [...parameters.values()],
  };
}

/** Whether the job was initialized at the cut. */
function wasReady(
  job: Lifecycle,
  known: ReadonlyMap<string, Parameter>,
  found: readonly Parameter[],
  cut: readonly Position[],
): boolean {
  if (job.state === "ready") {
    return job.context.at.every((ended) => {
      const at = cut[ended.shard];
      return at !== undefined && comparePositions(at, ended) >= 0;
    });
  }
  // A rewind to before the job's initialization is undone: the entries do not tell of it any more.
  return found.some(
    ({ declaration, lifecycle }) =>
      lifecycle.state === "ready" && known.get(declaration.name)?.lifecycle.state !== "ready",
  );
}

/** Returns the parameter with no initialization under way or finished. */
function withoutInitialization(
  parameter: Parameter,
  epoch: number = parameter.lifecycle.context.epoch,
): Parameter {
  const context = { ...parameter.lifecycle.context, epoch, at: [], sealed: 0 };
  return { ...parameter, jobEpoch: 0, lifecycle: { state: "uninitialized", context } };
}

/** Completed stage of a rewind; before `begun`, the job is unchanged. */
type RewindStage = "rebuilt" | "begun" | `shard ${number}` | "parameters" | "complete";

/** Options of {@link rewindJob}. */
export interface RewindOptions {
  /** A connection like that of a host of the job. */
  readonly connection: NatsConnection;
  /** Id of the connection's inbox. */
  readonly host: string;
  readonly job: string;
  /** Position of each shard to which the job goes back. */
  readonly at: readonly Position[];
  /** Makes a shard as it was at a position. */
  readonly rebuild: Rebuild;
  readonly signal: AbortSignal;
  /** Called after each stage. */
  readonly onStage?: (stage: RewindStage) => void;
}

/** A shard that goes on from an earlier state. */
interface RewoundShard extends Position {
  readonly shard: number;
  /** Records that it gave up; none for a shard that an interrupted rewind had completed. */
  readonly fallbacks: readonly Fallback[];
  /** Whether a host serves it again. */
  readonly served: boolean;
}

/** A job that goes on from an earlier state. */
export interface RewoundJob {
  readonly job: string;
  /** Positions from which its shards go on. */
  readonly at: readonly Position[];
  /** Whether an interrupted rewind was completed instead of the one that was asked for. */
  readonly completed: boolean;
  readonly shards: readonly RewoundShard[];
  /** Names of parameters that are ready, and of those that are to be initialized again. */
  readonly ready: readonly string[];
  readonly gone: readonly string[];
}

/** Returns the interrupted rewind of a job; undefined if there is none. @throws BAD_NAME, TIMEOUT, …. */
export async function interruptedRewind(
  connection: NatsConnection,
  job: string,
): Promise<RewindPlan | undefined> {
  const { bucket } = await openStoredJob(connection, job);
  return await rewindEntry.read({ bucket });
}

/**
 * Lets a job go on from an earlier state, in place, while hosts serve it. All shards are rebuilt in memory before
 * anything is written. Then the plan is noted in the job's bucket, and one shard after the other is put under
 * the next generation, by one write each. If that is interrupted, some shards have gone back and others have
 * not; the next rewind, whatever its point, completes this one.
 * @throws BAD_NAME if there is no such job; BUSY if another rewind has begun since; NOT_OWNER if an owner
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
  readonly #found = new FoundParameters();
  /** Token of this run, in the manifests that it writes. */
  readonly #token = randomUUID();

  constructor(options: RewindOptions, job: StoredJob, publisher: StreamPublisher) {
    this.#options = options;
    this.#job = job;
    this.#publisher = publisher;
  }

  async run(signal: AbortSignal): Promise<RewoundJob> {
    const { job, onStage } = this.#options;
    const deps = { bucket: this.#job.bucket, pause: delay };
    const interrupted = await rewindEntry.read(deps);
    const at = interrupted?.at ?? this.#options.at;
    const shards = await this.#rebuild(at, signal);
    onStage?.("rebuilt");
    const plan = interrupted ?? (await this.#begin(at));
    onStage?.("begun");
    const rewound = await this.#commit(plan, shards, signal);
    const { ready, gone } = await this.#writeEntries(at);
    onStage?.("parameters");
    await endRewind(this.#job.bucket, plan.id);
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
      this.#found.add(shard.saveState());
      shards.push(shard);
    }
    return shards;
  }

  /** Writes the plan. @throws BUSY if there is another one. */
  async #begin(at: readonly Position[]): Promise<RewindPlan> {
    const { job } = this.#options;
    const id = randomUUID();
    const from = await mapConcurrently([...at.keys()], async (shard) => {
      const { manifest } = await newestManifest(this.#store(shard), shard);
      return manifest.generation;
    });
    const plan = { id, begunMs: Date.now(), at, from };
    await rewindEntry.change({ bucket: this.#job.bucket, pause: delay }, (other) => {
      if (other === undefined) return plan;
      if (other.id === id) return other;
      throw new PserverError("BUSY", `job ${job}: another rewind has begun`, { job });
    });
    return plan;
  }

  /** Puts the shards that have not gone back yet under the next generation. */
  async #commit(
    plan: RewindPlan,
    shards: readonly Shard[],
    signal: AbortSignal,
  ): Promise<Omit<RewoundShard, "served">[]> {
    const rewound: Omit<RewoundShard, "served">[] = [];
    for (const [number, shard] of shards.entries()) {
      rewound.push({ seq: 0, ...(await this.#continue(number, shard, plan, signal)) });
      this.#options.onStage?.(`shard ${number}`);
    }
    return rewound;
  }

  /**
   * Puts a state in place of the present one of a shard, unless that was done. An owner that writes a snapshot at the
   * same time removes the stored pieces as unneeded: then they are stored again.
   * @throws NOT_OWNER if owners were faster each time; NO_SPACE.
   */
  async #continue(
    shard: number,
    state: Shard,
    plan: RewindPlan,
    signal: AbortSignal,
  ): Promise<ContinuedShard> {
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted();
      try {
        return await this.#try(shard, state, plan);
      } catch (error) {
        const { code } = ensureError(error);
        const isPassing = code === "NOT_OWNER" || code === "SNAPSHOT_DAMAGED";
        if (!isPassing || tries === TRIES_MAX) throw error;
        await delay(RETRY_MS);
      }
    }
  }

  async #try(shard: number, state: Shard, plan: RewindPlan): Promise<ContinuedShard> {
    const { connection, host } = this.#options;
    const { subjects, journalOf, settings } = this.#job;
    const [store, journal, at] = [this.#store(shard), journalOf(shard), plan.at[shard] as Position];
    const { seq, manifest } = await newestManifest(store, shard);
    const { term, generation, fallbacks } = manifest;
    if (generation > (plan.from[shard] ?? 0)) return { shard, generation, fallbacks: [] };
    const lastSeq = (await journal.lastSeq(generation)) ?? 0;
    const before = fallbacks.filter((fallback) => fallback.generation < at.generation);
    const left = journalLosses(at, manifest, { generation, lastSeq });
    return await continueShard(
      {
        ...{ shard, subjects, store, journal, storage: settings.journal },
        partBytesMax: dataBytesMaxOf(connection),
      },
      {
        ...{ shard: state, stored: new Map(), host, owner: this.#token, keepsPast: true },
        ...{ replaced: { seq, term }, generation, fallbacks: withFallbacks(before, left) },
      },
    );
  }

  #store(shard: number): SnapshotStore {
    const { manager, client, subjects } = this.#job;
    return new SnapshotStore({ manager, client, publisher: this.#publisher, subjects, shard });
  }

  async #writeEntries(at: readonly Position[]): Promise<{ ready: string[]; gone: string[] }> {
    const deps = { bucket: this.#job.bucket, pause: delay };
    const entries = {
      job: await jobEntry.read(deps),
      parameters: await readAllParameters(this.#job.bucket),
    };
    const { job, parameters } = rewoundEntries(entries, this.#found.parameters(), at);
    await mapConcurrently(parameters, (parameter) =>
      parameterEntry(parameter.declaration.name).change(deps, () => parameter),
    );
    // Written last: hosts read the parameters again when this entry has changed.
    await jobEntry.change(deps, () => job);
    const names = (state: string): string[] =>
      parameters
        .filter(({ lifecycle }) => lifecycle.state === state)
        .map(({ declaration }) => declaration.name)
        .sort();
    return { ready: names("ready"), gone: names("uninitialized") };
  }

  /**
   * Asks each owner for a snapshot of the new generation. An owner that still folds the old journal finds out by that
   * that it is deposed, and takes the shard over again.
   */
  async #awaitOwners(shards: readonly Omit<RewoundShard, "served">[]): Promise<RewoundShard[]> {
    const { connection, host } = this.#options;
    const owners = new OwnersClient({ ...this.#job, connection, host });
    const graceMs = takeOverMs(this.#job.settings.leaseMs);
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
}
