import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { NatsConnection } from "@nats-io/transport-node";
import { mapConcurrently } from "../../actors/concurrent.ts";
import type { Shard } from "../../actors/fold/shard.ts";
import { openStoredJob, type StoredJob } from "../../actors/job/open-job.ts";
import { OwnersClient } from "../../actors/job/owners-client.ts";
import {
  type RewindPlan,
  RewindRun,
  readRewindPlan,
  type UnfinishedRewind,
  unfinishedRewind,
} from "../../actors/job/rewind-plan.ts";
import type { StoredManifest } from "../../actors/journal/manifest.ts";
import {
  completeContinuation,
  continueShard,
  finalFallbacks,
  journalLosses,
} from "../../actors/journal/next-generation.ts";
import { SnapshotStore } from "../../actors/journal/snapshot-store.ts";
import { jobEntry, type Lifecycle } from "../../actors/lifecycle/machine.ts";
import {
  changeParameter,
  type Parameter,
  readAllParameters,
} from "../../actors/lifecycle/parameter.ts";
import { takeOverMs } from "../../actors/recovery/recovery.ts";
import {
  comparePositions,
  type ErrorCode,
  ensureError,
  type Fallback,
  type JobSubjects,
  type Position,
  PserverError,
  withFallbacks,
} from "../../protocol/index.ts";
import { showCut } from "../../protocol/messages/position.ts";
import { dataBytesMaxOf } from "../../transport/bulk-transport.ts";
import { StreamPublisher } from "../../transport/jetstream.ts";
import { formatTime } from "../points.ts";
import { FoundParameters, type Rebuild } from "./fork-job.ts";

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

/** What the entries of a job are after a rewind depends on. */
export interface RewoundEntries {
  /** Whether the job was initialized at the cut. */
  readonly initialized: boolean;
  /** The generation with which each shard has gone back. */
  readonly generations: readonly number[];
}

/**
 * Returns the entry of the job after a rewind. It is initialized if it was initialized at the cut. Hosts read those
 * parameters again that they know as ready.
 */
export function rewoundJob({ context }: Lifecycle, { initialized }: RewoundEntries): Lifecycle {
  const revised = context.revised + 1;
  const epoch = initialized ? Math.max(1, context.epoch) : context.epoch;
  const state = initialized ? "ready" : "uninitialized";
  return { state, context: { ...context, epoch, at: [], revised } };
}

/**
 * Returns the entry of a parameter after a rewind. One that was ready at the cut is ready, under the epoch that it had;
 * any other is to be initialized again, under a higher epoch than it ever had. One that was initialized after its
 * shards had gone back stays as it is.
 * @param known the parameter as its entry holds it.
 * @param found the parameter as the shards show it at the cut.
 */
export function rewoundParameter(
  known: Parameter | undefined,
  found: Parameter | undefined,
  { initialized, generations }: RewoundEntries,
): Parameter | undefined {
  if (found === undefined) {
    if (known === undefined || isNewer(known, generations)) return known;
    return withoutInitialization(known);
  }
  if (known !== undefined && isNewer(known, generations)) return known;
  const isOfUnfinished = !initialized && known !== undefined && known.jobEpoch !== 0;
  const hasBlocks = found.lifecycle.state === "ready" && !isOfUnfinished;
  const blocksMax = Math.max(found.blocksMax, known?.blocksMax ?? 0);
  const epoch = Math.max(found.lifecycle.context.epoch, known?.lifecycle.context.epoch ?? 0);
  const after = { ...found, blocksMax, revision: known?.revision ?? 0 };
  return hasBlocks ? after : withoutInitialization(after, epoch);
}

/** Whether a parameter was initialized in journals that began when its shards had gone back. */
function isNewer({ lifecycle }: Parameter, generations: readonly number[]): boolean {
  const { at } = lifecycle.context;
  if (lifecycle.state !== "ready" || at.length === 0) return false;
  return at.every(({ shard, generation }) => generation >= (generations[shard] ?? 0));
}

/** Whether a job was initialized at a cut, by its entries before a rewind to it and by what the shards show there. */
export function wasInitialized(
  { job, parameters }: LifecycleEntries,
  found: readonly Parameter[],
  cut: readonly Position[],
): boolean {
  if (job.state === "ready") {
    return job.context.at.every((ended) => {
      const at = cut[ended.shard];
      return at !== undefined && comparePositions(at, ended) >= 0;
    });
  }
  const known = new Map(parameters.map((each) => [each.declaration.name, each]));
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

/** How a command reaches a job that it rewinds. */
export interface RewindDeps {
  /** A connection like that of a host of the job. */
  readonly connection: NatsConnection;
  /** Id of the connection's inbox. */
  readonly host: string;
  readonly job: string;
}

/** Options of {@link rewindJob}. */
export interface RewindOptions extends RewindDeps {
  /** Position of each shard to which the job goes back; undefined to complete the rewind that is noted. */
  readonly at: readonly Position[] | undefined;
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

/** A shard that has gone back, before it is served again. */
interface GoneBackShard extends Omit<RewoundShard, "served"> {
  /** The generation with which it has gone back; others may have followed since. */
  readonly backWith: number;
}

/** A job that goes on from an earlier state. */
export interface RewoundJob {
  readonly job: string;
  /** Positions from which its shards go on. */
  readonly at: readonly Position[];
  /** Whether a rewind was completed that an earlier run had begun. */
  readonly completed: boolean;
  readonly shards: readonly RewoundShard[];
  /** Names of parameters that are ready, and of those that are to be initialized again. */
  readonly ready: readonly string[];
  readonly gone: readonly string[];
}

/** A plan that was dropped. */
export interface DroppedRewind {
  readonly job: string;
  readonly id: string;
  readonly at: readonly Position[];
  /** Numbers of the shards that had gone back, and stay there, and of the others, ascending. */
  readonly goneBack: readonly number[];
  readonly unchanged: readonly number[];
}

/** Returns the rewind of a job that is not complete; undefined if there is none. @throws BAD_NAME, TIMEOUT, …. */
export async function findUnfinishedRewind(
  connection: NatsConnection,
  job: string,
): Promise<UnfinishedRewind | undefined> {
  const { manager, subjects, bucket } = await openStoredJob(connection, job);
  return await unfinishedRewind(manager, subjects, bucket);
}

/**
 * Lets a job go on from an earlier state, in place, while hosts serve it. All shards are rebuilt in memory before
 * anything is written. Then the plan is noted in the job's bucket, and one shard after the other is put under
 * the next generation, by one write each. If that is interrupted, some shards have gone back and others have not; the
 * same rewind, or one without a point, completes it.
 * @throws BAD_NAME if there is no such job; UNFINISHED if the plan of a rewind to another point is noted; BAD_VALUE if
 * there is none to complete; BUSY if another run has begun since, or has gone on with this rewind; NOT_OWNER if an
 * owner made snapshots faster than the state could be stored; NO_SPACE; the errors of `rebuild`; ABORTED.
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

/**
 * Drops the rewind of a job that is not complete. Shards that have gone back stay there, and the others as they are; a
 * run that still executes it changes nothing any more.
 * @throws BAD_NAME if there is no such job; BAD_VALUE if it has no such rewind; BUSY if another run goes on with it.
 */
export async function dropRewind({ connection, host, job }: RewindDeps): Promise<DroppedRewind> {
  const stored = await openStoredJob(connection, job);
  const { subjects, bucket, manager, client, journalOf, settings } = stored;
  const noted = await readRewindPlan({ bucket });
  if (noted === undefined) throw nothingUnfinished(job);
  const run = await RewindRun.takeOver(bucket, job, noted);
  const publisher = StreamPublisher.open(connection, subjects.hostInbox(host));
  const { id, at, run: owner } = run.plan;
  const shards = await mapConcurrently([...at.keys()], async (shard) => {
    const store = new SnapshotStore({ manager, client, publisher, subjects, shard });
    const newest = await store.fence();
    const { generation = 0, rewind } = newest?.manifest ?? {};
    const isBack = rewind?.id === id;
    if (newest !== undefined && isBack) {
      const deps = { store, journal: journalOf(shard), storage: settings.journal };
      await completeContinuation(deps, newest, { host, owner }).catch(unlessTakenOver);
    }
    return { shard, generation, isBack };
  });
  await run.end();
  const goneBack = shards.filter(({ isBack }) => isBack);
  await awaitOwners(stored, { connection, host }, goneBack);
  const numbers = (some: typeof shards): number[] => some.map(({ shard }) => shard);
  const unchanged = numbers(shards.filter(({ isBack }) => !isBack));
  return { job, id, at, goneBack: numbers(goneBack), unchanged };
}

/** Passes for a shard that a host has taken over: it completes what was interrupted. */
function unlessTakenOver(error: unknown): void {
  if (ensureError(error).code !== "NOT_OWNER") throw error;
}

/** Makes the error for a job without a rewind that could be completed or dropped. */
export function nothingUnfinished(job: string): PserverError {
  const text = `job ${job} has no rewind that could be completed or dropped`;
  return new PserverError("BAD_VALUE", text, { job });
}

/** Whether two cuts are the same positions. */
export function isSameCut(one: readonly Position[], other: readonly Position[]): boolean {
  return isDeepStrictEqual(one, other);
}

/** Makes the error for a rewind while another one is noted, which says what can be done. */
export function unfinishedError(job: string, noted: UnfinishedRewind): PserverError {
  const { id, begunMs, at, goneBack } = noted;
  const which =
    goneBack.length === 0 ? "no shard has" : `of its shards ${goneBack.join(", ")} have`;
  return new PserverError(
    "UNFINISHED",
    `job ${job}: the rewind ${id} that began at ${formatTime(begunMs)}, to the cut ${showCut(at)}, is not complete: ` +
      `${which} gone back. Complete it with "pserver rewind --job ${job} --complete", or drop it with ` +
      `"pserver rewind --job ${job} --drop"`,
    { job, id, begunMs, at, goneBack },
  );
}

/** Codes which mean that a state cannot be rebuilt from what is kept. */
const LOST: ReadonlySet<ErrorCode> = new Set([
  "HISTORY_LOST",
  "JOURNAL_DAMAGED",
  "SNAPSHOT_DAMAGED",
]);

/** Adds to the error of a rewind that cannot be completed, because its history is gone, that it can be dropped. */
function orDrop(job: string, error: PserverError): PserverError {
  if (!LOST.has(error.code)) return error;
  const text = `${error.message}. The rewind cannot be completed: drop it with "pserver rewind --job ${job} --drop"`;
  return new PserverError(error.code, text, error.details, { cause: error });
}

/** Adds to the error of a state for which there is no room what takes it, and that the rewind has only begun. */
function noRoom(subjects: JobSubjects, error: PserverError): PserverError {
  const text =
    `${error.message}: beside the present states and earlier snapshots, the stream ${subjects.snapshotStream()} has no ` +
    `room for those to go back to. The rewind of job ${subjects.job} is not complete`;
  return new PserverError(error.code, text, error.details, { cause: error });
}

/**
 * Makes of a decision one that is first made on an entry that was read before the run was checked, and then, after each
 * lost race, on one that is read before the run is checked again.
 */
function checkedAgain<Before, After>(
  run: RewindRun,
  decide: (before: Before) => After,
): (before: Before) => Promise<After> {
  let isChecked = true;
  return async (before) => {
    if (!isChecked) await run.check();
    isChecked = false;
    return decide(before);
  };
}

/** A rewind of one job. */
class JobRewind {
  readonly #options: RewindOptions;
  readonly #job: StoredJob;
  readonly #publisher: StreamPublisher;
  readonly #found = new FoundParameters();

  constructor(options: RewindOptions, job: StoredJob, publisher: StreamPublisher) {
    this.#options = options;
    this.#job = job;
    this.#publisher = publisher;
  }

  async run(signal: AbortSignal): Promise<RewoundJob> {
    const { job, onStage } = this.#options;
    const noted = await this.#noted();
    const at = noted?.at ?? this.#options.at;
    if (at === undefined) throw nothingUnfinished(job);
    const shards = await this.#rebuild(noted, at, signal).catch((error: unknown) => {
      throw noted === undefined ? error : orDrop(job, ensureError(error));
    });
    onStage?.("rebuilt");
    const run = await this.#begin(noted, at);
    onStage?.("begun");
    const { rewound, ready, gone } = await this.#goBack(run, shards, signal);
    onStage?.("parameters");
    await run.end();
    onStage?.("complete");
    const served = await this.#awaitOwners(rewound);
    return { job, at, completed: noted !== undefined, shards: served, ready, gone };
  }

  /** Returns the plan that is to be completed, if one is noted. @throws UNFINISHED if it is of another point. */
  async #noted(): Promise<RewindPlan | undefined> {
    const { manager, subjects, bucket } = this.#job;
    const plan = await readRewindPlan({ bucket });
    const { job, at } = this.#options;
    if (plan === undefined || at === undefined || isSameCut(at, plan.at)) return plan;
    const noted = await unfinishedRewind(manager, subjects, bucket);
    if (noted !== undefined) throw unfinishedError(job, noted);
    return undefined;
  }

  async #rebuild(
    noted: RewindPlan | undefined,
    at: readonly Position[],
    signal: AbortSignal,
  ): Promise<Shard[]> {
    const shards: Shard[] = [];
    for (const [number, position] of at.entries()) {
      signal.throwIfAborted();
      const shard = await this.#rebuildShard(noted, number, position);
      this.#found.add(shard.saveState());
      shards.push(shard);
    }
    return shards;
  }

  /**
   * Makes a shard as it was at its position. Of a shard that has gone back already only the blocks are asked, and the
   * records up to the position may be gone, as those of a journal in memory are: then its newest snapshot tells them.
   */
  async #rebuildShard(
    noted: RewindPlan | undefined,
    number: number,
    position: Position,
  ): Promise<Shard> {
    const { rebuild } = this.#options;
    try {
      return await rebuild(number, position);
    } catch (error) {
      if (noted === undefined || !LOST.has(ensureError(error).code)) throw error;
      const { manifest } = await newestManifest(this.#store(number), number);
      if (manifest.rewind?.id !== noted.id) throw error;
      return await rebuild(number, { generation: manifest.generation, seq: manifest.seq });
    }
  }

  /** Notes the plan, or takes over the one that is noted. @throws BUSY if another run was faster. */
  async #begin(noted: RewindPlan | undefined, at: readonly Position[]): Promise<RewindRun> {
    const { bucket } = this.#job;
    const { job } = this.#options;
    if (noted !== undefined) return await RewindRun.takeOver(bucket, job, noted);
    // Each has been served before: it has a state that can be replaced.
    for (const shard of at.keys()) await newestManifest(this.#store(shard), shard);
    const entries = {
      job: await jobEntry.read({ bucket }),
      parameters: await readAllParameters(bucket),
    };
    const initialized = wasInitialized(entries, this.#found.parameters(), at);
    return await RewindRun.begin(bucket, job, { at, initialized });
  }

  /**
   * Puts all shards back, and writes the entries. A shard that is recovered meanwhile, from a state of before it went
   * back, is put back once more.
   * @throws BUSY if another run has gone on with the plan, or if shards are recovered so all the time.
   */
  async #goBack(
    run: RewindRun,
    shards: readonly Shard[],
    signal: AbortSignal,
  ): Promise<{ rewound: GoneBackShard[]; ready: string[]; gone: string[] }> {
    for (let tries = 1; ; tries++) {
      const rewound = await this.#commit(run, shards, signal);
      const entries = await this.#writeEntries(run, rewound);
      if (await this.#areBack(run)) return { rewound, ...entries };
      if (tries < TRIES_MAX) continue;
      const { job } = this.#options;
      const text = `job ${job}: its shards were recovered from states of before the rewind ${tries} times in a row`;
      throw new PserverError("BUSY", text, { job });
    }
  }

  /** Whether the newest states of all shards have gone through the rewind. */
  async #areBack({ plan: { id, at } }: RewindRun): Promise<boolean> {
    const back = await mapConcurrently([...at.keys()], async (shard) => {
      const { manifest } = await newestManifest(this.#store(shard), shard);
      return manifest.rewind?.id === id;
    });
    return back.every((each) => each);
  }

  /** Puts the shards that have not gone back yet under the next generation. */
  async #commit(
    run: RewindRun,
    shards: readonly Shard[],
    signal: AbortSignal,
  ): Promise<GoneBackShard[]> {
    const rewound: GoneBackShard[] = [];
    for (const [number, shard] of shards.entries()) {
      rewound.push(await this.#continue(number, shard, run, signal));
      this.#options.onStage?.(`shard ${number}`);
    }
    return rewound;
  }

  /**
   * Puts a state in place of the present one of a shard, unless that was done. An owner that writes a snapshot at the
   * same time removes the stored pieces as unneeded: then they are stored again.
   * @throws BUSY if another run has gone on with the plan; NOT_OWNER if owners were faster each time; JOURNAL_FULL if
   * the limit of the job's snapshots, or the broker's store, has no room for the state; NO_SPACE.
   */
  async #continue(
    shard: number,
    state: Shard,
    run: RewindRun,
    signal: AbortSignal,
  ): Promise<GoneBackShard> {
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted();
      try {
        return await this.#try(shard, state, run);
      } catch (error) {
        const found = ensureError(error);
        const isPassing = found.code === "NOT_OWNER" || found.code === "SNAPSHOT_DAMAGED";
        if (found.code === "JOURNAL_FULL") throw noRoom(this.#job.subjects, found);
        if (!isPassing || tries === TRIES_MAX) throw error;
        await delay(RETRY_MS);
      }
    }
  }

  async #try(shard: number, state: Shard, run: RewindRun): Promise<GoneBackShard> {
    const { connection, host } = this.#options;
    const { subjects, journalOf, settings } = this.#job;
    const { id, run: owner, at: cut } = run.plan;
    const [store, journal, at] = [this.#store(shard), journalOf(shard), cut[shard] as Position];
    const newest = await newestManifest(store, shard);
    const { seq, manifest } = newest;
    const { term, generation, rewind } = manifest;
    if (rewind?.id === id) {
      await run.check();
      const { journal: storage } = settings;
      await completeContinuation({ store, journal, storage }, newest, { host, owner });
      return { shard, generation, seq: 0, fallbacks: [], backWith: rewind.generation };
    }
    const lastSeq = (await journal.lastSeq(generation)) ?? 0;
    const fallbacks = await finalFallbacks(journal, manifest);
    await run.check();
    const before = fallbacks.filter((fallback) => fallback.generation < at.generation);
    const left = journalLosses(at, { generation, fallbacks }, { generation, lastSeq });
    const backWith = generation + 1;
    const continued = await continueShard(
      {
        ...{ shard, subjects, store, journal, storage: settings.journal },
        partBytesMax: dataBytesMaxOf(connection),
      },
      {
        ...{ shard: state, stored: new Map(), host, owner, keepsPast: true },
        ...{ replaced: { seq, term }, generation, fallbacks: withFallbacks(before, left) },
        rewind: { id, generation: backWith },
      },
    );
    return { ...continued, seq: 0, backWith };
  }

  #store(shard: number): SnapshotStore {
    const { manager, client, subjects } = this.#job;
    return new SnapshotStore({ manager, client, publisher: this.#publisher, subjects, shard });
  }

  /**
   * Writes the entries of the parameters and of the job. Each is written over what was read before the run was checked,
   * so that nothing is undone that hosts or another run have written since.
   * @throws BUSY if another run has gone on with the plan.
   */
  async #writeEntries(
    run: RewindRun,
    shards: readonly GoneBackShard[],
  ): Promise<{ ready: string[]; gone: string[] }> {
    const { bucket } = this.#job;
    const deps = { bucket, pause: delay };
    const to = {
      initialized: run.plan.initialized,
      generations: shards.map(({ backWith }) => backWith),
    };
    const found = new Map(this.#found.parameters().map((each) => [each.declaration.name, each]));
    const job = await jobEntry.readWithRevision(deps);
    const known = new Map(
      (await readAllParameters(bucket)).map((each) => [each.declaration.name, each]),
    );
    await run.check();
    const names = [...new Set([...known.keys(), ...found.keys()])];
    const written = await mapConcurrently(names, (name) =>
      changeParameter(
        deps,
        name,
        // Entries are never removed, so one of the two is there.
        checkedAgain(run, (before) => rewoundParameter(before, found.get(name), to) as Parameter),
        { known: known.get(name) },
      ),
    );
    // Written last: hosts read the parameters again when this entry has changed.
    await jobEntry.change(
      deps,
      checkedAgain(run, (before) => rewoundJob(before, to)),
      job,
    );
    const inState = (state: string): string[] =>
      written
        .filter(({ lifecycle }) => lifecycle.state === state)
        .map(({ declaration }) => declaration.name)
        .sort();
    return { ready: inState("ready"), gone: inState("uninitialized") };
  }

  /** Lets hosts serve the shards as they are now. */
  async #awaitOwners(shards: readonly GoneBackShard[]): Promise<RewoundShard[]> {
    const served = await awaitOwners(this.#job, this.#options, shards);
    return shards.map(({ backWith: _backWith, ...rewound }, i) => {
      return { ...rewound, served: served[i] === true };
    });
  }
}

/**
 * Asks each owner for a snapshot of the new generation. An owner that still folds the old journal finds out by that
 * that it is deposed, and takes the shard over again.
 * @returns whether a host serves each shard.
 */
async function awaitOwners(
  job: StoredJob,
  { connection, host }: Pick<RewindDeps, "connection" | "host">,
  shards: readonly { readonly shard: number; readonly generation: number }[],
): Promise<boolean[]> {
  const owners = new OwnersClient({ ...job, connection, host });
  const graceMs = takeOverMs(job.settings.leaseMs);
  return await mapConcurrently(shards, async ({ shard, generation }) => {
    try {
      await owners.ask(shard, "snapshot", { generation, seq: 0 }, graceMs);
      return true;
    } catch (error) {
      // Where no host runs, the next one to start finds the shard as it is now.
      if (ensureError(error).code !== "NO_OWNER") throw error;
      return false;
    }
  });
}
