import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { mapConcurrently } from "../actors/concurrent.ts";
import type { FoldState } from "../actors/fold/fold-state.ts";
import type { Shard } from "../actors/fold/shard.ts";
import {
  type ForkOrigin,
  forkOriginOf,
  hasRemovalFlag,
  isPendingFork,
  journalSettings,
  LEASES_IN_KV,
  newSettings,
  SETTINGS_KEY,
  type StoredSettings,
  settingsChanged,
  withForkOrigin,
} from "../actors/job/job-settings.ts";
import { findJournalBytes, openStoredJob } from "../actors/job/open-job.ts";
import { JobRemoval } from "../actors/job/remove-job.ts";
import { Journal } from "../actors/journal/journal.ts";
import {
  type KvBucket,
  type KvEntry,
  openBucket,
  replaceEntry,
} from "../actors/journal/kv-bucket.ts";
import { continueShard } from "../actors/journal/next-generation.ts";
import { ensureSnapshotStream, SnapshotStore } from "../actors/journal/snapshot-store.ts";
import { PARAMETER_KEYS, parameterKey } from "../actors/lifecycle/lock.ts";
import { jobEntry, type Lifecycle } from "../actors/lifecycle/machine.ts";
import { changeParameter, type Parameter } from "../actors/lifecycle/parameter.ts";
import {
  type Declaration,
  type DeclaredParameter,
  ensureError,
  JobSubjects,
  type Layout,
  type Position,
  PserverError,
} from "../protocol/index.ts";
import { dataBytesMaxOf } from "../transport/bulk-transport.ts";
import { openJetStream, StreamPublisher } from "../transport/jetstream.ts";
import { replayShard } from "./replay/replay-shard.ts";
import type { HistorySource, JobFacts } from "./source.ts";

/** A parameter under the highest epoch that any shard knows. */
interface NewestDeclaration {
  readonly epoch: number;
  readonly declaration: Declaration;
  readonly layout: Layout;
  /** The trainer to which it was granted. */
  readonly trainer: string;
  readonly blocksMax: number;
  /** Number of its blocks that exist under this epoch. */
  present: number;
}

/**
 * The parameters of a job as the states of its shards show them. The job's own entries say how it is now, not how it
 * was at a point; the states do. A parameter is ready if all of its blocks exist under the epoch that was granted
 * last. The initialization of any other has not been finished: the parameter keeps its epoch, so that the next
 * initialization has a higher one.
 */
export class FoundParameters {
  readonly #found: Map<string, NewestDeclaration> = new Map();

  /** Adds the parameters that one shard knows. To be called once for each shard. */
  add({ blocks, declared = [] }: Pick<FoldState, "blocks" | "declared">): void {
    for (const each of declared) this.#take(each);
    for (const { parameter, epoch } of blocks) {
      const found = this.#found.get(parameter);
      if (found?.epoch === epoch) found.present += 1;
    }
  }

  /** Returns the parameters as entries of a job whose shards have begun with these states, in no order. */
  parameters(): Parameter[] {
    return [...this.#found.values()].map(({ declaration, layout, blocksMax, ...found }) => {
      const { epoch, trainer, present } = found;
      const lifecycle: Lifecycle = {
        state: present === layout.blocks ? "ready" : "uninitialized",
        context: { epoch, trainer, session: 0, at: [], sealed: 0, revised: 0 },
      };
      return { declaration, layout, blocksMax, jobEpoch: 0, lifecycle, revision: 0 };
    });
  }

  /** Keeps the declaration of the higher epoch, and the most blocks that any of them had. */
  #take({ name, dtype, shape, config, epoch, layout, trainer }: DeclaredParameter): void {
    const known = this.#found.get(name);
    const blocksMax = Math.max(known?.blocksMax ?? 0, layout.blocks);
    if (known !== undefined && known.epoch >= epoch) {
      this.#found.set(name, { ...known, blocksMax });
      return;
    }
    const declaration = { name, dtype, shape, config };
    this.#found.set(name, { epoch, declaration, layout, trainer, blocksMax, present: 0 });
  }
}

/** Dependencies of {@link NewJob}. */
interface NewJobDeps {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly subjects: JobSubjects;
}

/**
 * A job that is being made. From the first write to the last its settings say so, so that no host joins it before it
 * is complete. They hold a token of the run that makes it; a later run takes the job over with a token of its own.
 */
class NewJob {
  readonly settings: StoredSettings;
  readonly bucket: KvBucket;
  readonly #subjects: JobSubjects;
  readonly #origin: ForkOrigin;
  /** Revision of the settings, as this run has written them. */
  readonly revision: number;

  private constructor(options: {
    readonly settings: StoredSettings;
    readonly bucket: KvBucket;
    readonly subjects: JobSubjects;
    readonly origin: ForkOrigin;
    readonly revision: number;
  }) {
    this.settings = options.settings;
    this.bucket = options.bucket;
    this.#subjects = options.subjects;
    this.#origin = options.origin;
    this.revision = options.revision;
  }

  /** Token of this run. */
  get token(): string {
    return this.#origin.pending ?? "";
  }

  /**
   * Begins to make the job, or takes it over from a run that was interrupted.
   * @throws JOB_EXISTS if there is a job of this name, unless it is an incomplete fork of the same job;
   * NO_SPACE if the broker has no space for its journals.
   */
  static async begin(
    deps: NewJobDeps,
    of: JobFacts,
    origin: Pick<ForkOrigin, "at" | "madeMs">,
    known: KnownSettings,
  ): Promise<NewJob> {
    const { connection, manager, subjects } = deps;
    const replicas = known.replicas === undefined ? {} : { replicas: known.replicas };
    const name = subjects.bucket();
    const bucket = await openBucket({ connection, bucket: name, storage: "file", ...replicas });
    const stored = await bucket.read(SETTINGS_KEY);
    if (stored !== undefined) checkOwnFork(subjects.job, stored, of.job);
    const { shards, synchronization } = of;
    const wanted = { ...known, shards, synchronization, leases: LEASES_IN_KV };
    const { journal = "file" } = known;
    const bytesMax = await findJournalBytes(manager, subjects, journal, shards);
    const journalBytesMax = Math.min(known.journalBytesMax ?? bytesMax, bytesMax);
    const settings = await newSettings({ ...wanted, journalBytesMax }, async () => bytesMax);
    const pending = { of: of.job, ...origin, pending: randomUUID() };
    const value = withForkOrigin(settings, pending);
    const revision = await replaceEntry(bucket, SETTINGS_KEY, value, stored?.revision);
    if (revision === undefined) throw settingsChanged(subjects.job);
    await ensureSnapshotStream(manager, subjects, settings.replicas);
    return new NewJob({ settings, bucket, subjects, origin: pending, revision });
  }

  /** Checks that no other run has taken the job over. @throws BUSY */
  async check(): Promise<void> {
    const stored = await this.bucket.read(SETTINGS_KEY);
    if (stored?.revision !== this.revision) throw settingsChanged(this.#subjects.job);
  }

  /** Lets hosts join the job. @throws BUSY if another run has taken it over. */
  async complete(): Promise<void> {
    const { pending: _pending, ...origin } = this.#origin;
    const value = withForkOrigin(this.settings, origin);
    if ((await this.bucket.update(SETTINGS_KEY, value, this.revision)) !== undefined) return;
    // The answer to an earlier try may have been lost.
    const stored = await this.bucket.read(SETTINGS_KEY);
    if (stored === undefined || isPendingFork(stored.value))
      throw settingsChanged(this.#subjects.job);
  }
}

/** Checks that these are the settings of an incomplete fork of job `of`. @throws JOB_EXISTS if they are not. */
function checkOwnFork(job: string, { value }: KvEntry, of: string): void {
  const origin = forkOriginOf(value);
  if (!hasRemovalFlag(value) && origin?.pending !== undefined && origin.of === of) return;
  const state = hasRemovalFlag(value)
    ? "is being removed"
    : origin?.pending === undefined
      ? "exists"
      : `is an incomplete fork of job ${origin.of}`;
  throw new PserverError("JOB_EXISTS", `job ${job} ${state}: choose another name with --as`, {
    job,
  });
}

/** Writes the entries of the parameters and of a job that is initialized, in place of any there are. */
export async function writeEntries(
  bucket: KvBucket,
  parameters: readonly Parameter[],
): Promise<void> {
  const names = parameters.map(({ declaration }) => parameterKey(declaration.name));
  const wanted = new Set(names);
  const stale = (await bucket.keys(PARAMETER_KEYS)).filter((key) => !wanted.has(key));
  await mapConcurrently(stale, async (key) => {
    const stored = await bucket.read(key);
    if (stored !== undefined) await bucket.remove(key, stored.revision);
  });
  const deps = { bucket, pause: delay };
  // An interrupted run may have left an entry. An entry that is not known to be there is created first.
  await mapConcurrently(parameters, (parameter) =>
    changeParameter(deps, parameter.declaration.name, () => parameter, { known: undefined }),
  );
  await jobEntry.change(deps, () => INITIALIZED);
}

/** The job is initialized: nobody is selected to do that again. */
const INITIALIZED: Lifecycle = {
  state: "ready",
  context: { epoch: 1, trainer: "", session: 0, at: [], sealed: 0, revised: 0 },
};

/** Completed stage of a fork; before `complete`, no host joins the job. */
type ForkStage = "begun" | `shard ${number}` | "parameters" | "complete";

/** Options of {@link forkJob}. */
export interface ForkOptions {
  /** Connection to the broker that is to hold the new job, with the inbox of a host of that job. */
  readonly connection: NatsConnection;
  /** Id of the connection's inbox. */
  readonly host: string;
  /** Name of the new job. */
  readonly job: string;
  /** The job from which it is made. */
  readonly of: JobFacts;
  /** Settings of that job, from `knownSettings`; defaults hold for those that are not known. */
  readonly known: KnownSettings;
  /** Position of each shard with which the new job begins. */
  readonly at: readonly Position[];
  /** Makes a shard as it was at its position; called for one shard after the other. */
  readonly rebuild: Rebuild;
  readonly signal: AbortSignal;
  /** Called after each stage. */
  readonly onStage?: (stage: ForkStage) => void;
}

/** Time limit for one request of the removal of a job. */
const REMOVE_MS = 10_000;

/** A job made by a fork. */
export interface ForkedJob {
  readonly job: string;
  /** Number of ready parameters. */
  readonly parameters: number;
  /** Bytes of all values and optimizer slots. */
  readonly bytes: number;
  /** Names of parameters whose initialization had not been finished, ascending. */
  readonly unfinished: readonly string[];
  /** Number of blocks with gradients of a step that had not closed, which are discarded. */
  readonly openBlocks: number;
}

/**
 * Makes a job that begins with the state of another one. No host joins it before it is complete. If it fails,
 * what there is of the job is removed. If the process ends, or the broker cannot be reached, repeating the fork
 * completes the job, and removing the job removes what there is.
 * @throws JOB_EXISTS if there is a job of this name, unless it is an incomplete fork of the same job; EMPTY if
 * there is no parameter at that point; BUSY, NOT_OWNER if the same fork runs elsewhere; NO_SPACE; the errors of
 * `rebuild`; ABORTED.
 */
export async function forkJob(options: ForkOptions): Promise<ForkedJob> {
  const { connection, job, of, at, known, rebuild } = options;
  const subjects = new JobSubjects(job);
  const manager = await openJetStream(connection).jetstreamManager(false);
  // Rebuilt before anything is made: if the history does not reach back so far, no job is left behind.
  const first = await rebuild(0, at[0] as Position);
  const origin = { at, madeMs: Date.now() };
  const fork = await NewJob.begin({ connection, manager, subjects }, of, origin, known);
  try {
    return await writeJob(options, fork, first);
  } catch (error) {
    await removeQuietly(connection, job, fork.revision);
    throw error;
  }
}

/** Writes all of the job but its settings, which hosts wait for, and completes it. */
async function writeJob(options: ForkOptions, fork: NewJob, first: Shard): Promise<ForkedJob> {
  const { connection, host, job, of, at, rebuild, signal, onStage } = options;
  onStage?.("begun");
  const found = new FoundParameters();
  const publisher = StreamPublisher.open(connection, new JobSubjects(job).hostInbox(host));
  const sum = { bytes: 0, openBlocks: 0 };
  let shard: Shard | undefined = first;
  for (let number = 0; number < of.shards; number++) {
    signal.throwIfAborted();
    shard ??= await rebuild(number, at[number] as Position);
    sum.openBlocks += shard.detach();
    sum.bytes += shard.valueBytes;
    found.add(shard.saveState());
    await writeShard(options, fork, { publisher, number, shard });
    onStage?.(`shard ${number}`);
    // Its memory is freed before the next one is rebuilt.
    shard = undefined;
  }
  await fork.check();
  const parameters = found.parameters();
  const ready = parameters.filter(isReady);
  if (ready.length === 0) throw nothingThere(of.job);
  await writeEntries(fork.bucket, parameters);
  onStage?.("parameters");
  await fork.complete();
  onStage?.("complete");
  const unfinished = parameters.filter((parameter) => !isReady(parameter));
  const names = unfinished.map(({ declaration }) => declaration.name).sort();
  return { job, parameters: ready.length, ...sum, unfinished: names };
}

/**
 * Stores a state with which one shard of the new job begins, in place of whatever an interrupted run has left of it.
 */
async function writeShard(
  { connection, host, job }: ForkOptions,
  fork: NewJob,
  { publisher, number, shard }: { publisher: StreamPublisher; number: number; shard: Shard },
): Promise<void> {
  const client = openJetStream(connection);
  const manager = await client.jetstreamManager(false);
  const place = { manager, client, subjects: new JobSubjects(job), shard: number };
  const store = new SnapshotStore({ ...place, publisher });
  const left = await store.lastManifest();
  // Whoever takes the job over after this check replaces these writes, or makes them fail.
  await fork.check();
  const { journal: storage } = fork.settings;
  const journal = new Journal({ ...place, settings: journalSettings(fork.settings) });
  await continueShard(
    { ...place, store, journal, storage, partBytesMax: dataBytesMaxOf(connection) },
    {
      ...{ shard, stored: new Map(), host, owner: fork.token },
      replaced: { seq: left?.seq ?? 0, term: left?.manifest.term ?? 0 },
      ...{ generation: 0, fallbacks: [], keepsPast: false },
    },
  );
}

/**
 * Removes what there is of the job, as far as the broker can be reached. Removes nothing if the settings are no
 * longer of this revision: then another run has taken the job over, or the job is complete.
 */
async function removeQuietly(
  connection: NatsConnection,
  job: string,
  revision: number,
): Promise<void> {
  const options = { connection, job, etcd: undefined, timeoutMs: REMOVE_MS, revision };
  const removal = new JobRemoval(options);
  // The error that ended the fork says more; "pserver remove" removes what stays.
  await removal.run(() => undefined).catch(() => undefined);
}

function isReady({ lifecycle }: Parameter): boolean {
  return lifecycle.state === "ready";
}

function nothingThere(job: string): PserverError {
  const message = `job ${job}: no parameter was initialized at that point`;
  return new PserverError("EMPTY", message, { job });
}

/** Settings of the other job that a fork takes over, if they are known. */
export type KnownSettings = Partial<
  Omit<StoredSettings, "format" | "rules" | "leases" | "shards" | "synchronization">
>;

/** Reads the settings of a job that the broker holds; none if it holds no such job. @throws DENIED, TIMEOUT, …. */
export async function knownSettings(
  connection: NatsConnection,
  job: string,
): Promise<KnownSettings> {
  try {
    const { settings } = await openStoredJob(connection, job);
    const { format: _format, rules: _rules, leases: _leases, ...rest } = settings;
    const { shards: _shards, synchronization: _synchronization, ...known } = rest;
    return known;
  } catch (error) {
    // A history may be all that is left of a job.
    if (ensureError(error).code === "BAD_NAME") return {};
    throw error;
  }
}

/** Makes a shard as it was at a position of its history. @throws the errors of `replayShard`. */
export type Rebuild = (shard: number, at: Position) => Promise<Shard>;

/**
 * Returns a function that rebuilds the shards of a source. `onProgress` is called now and then with a shard, and with
 * the number of records folded of those to fold.
 */
export function rebuildFrom(
  source: HistorySource,
  signal: AbortSignal,
  onProgress: (shard: number, doneRecords: number, totalRecords: number) => void = () => undefined,
): Rebuild {
  const subjects = new JobSubjects(source.job);
  return (shard, at) =>
    replayShard(source.shard(shard), at, {
      ...{ subjects, signal },
      onProgress: (done, total) => onProgress(shard, done, total),
    });
}
