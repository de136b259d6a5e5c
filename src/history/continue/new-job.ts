import { randomUUID } from "node:crypto";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { mapConcurrently } from "../../actors/concurrent.ts";
import {
  type ForkOrigin,
  forkOriginOf,
  hasRemovalFlag,
  LEASES_IN_KV,
  newSettings,
  parseSettings,
  SETTINGS_KEY,
  type StoredSettings,
  settingsChanged,
  withForkOrigin,
} from "../../actors/job/job-settings.ts";
import { openStoredJob } from "../../actors/job/open-job.ts";
import { JobRemoval } from "../../actors/job/remove-job.ts";
import { ensureSnapshots } from "../../actors/job/settings-copy.ts";
import {
  findJournalBytes,
  JobSpace,
  openEntries,
  tapeBytesBeside,
} from "../../actors/job/storage-plan.ts";
import { BucketChain, type ChainedEntry } from "../../actors/journal/bucket-chain.ts";
import { type KvBucket, type KvEntry, replaceEntry } from "../../actors/journal/kv-bucket.ts";
import { JOB_KEY, PARAMETER_KEYS, parameterKey } from "../../actors/lifecycle/lock.ts";
import { type Lifecycle, toLifecycleEntry } from "../../actors/lifecycle/machine.ts";
import { type Parameter, toParameterEntry } from "../../actors/lifecycle/parameter.ts";
import { ensureError, type JobSubjects, PserverError } from "../../protocol/index.ts";
import type { JobFacts } from "../source.ts";

/** Settings of the other job that a fork takes over, if they are known. */
export type KnownSettings = Partial<
  Omit<StoredSettings, "format" | "rules" | "leases" | "shards" | "synchronization">
>;

/**
 * Returns the settings of a job: those that its history has, else those of the job that the broker holds; none if it
 * holds no such job.
 * @throws DENIED, TIMEOUT, ….
 */
export async function knownSettings(
  connection: NatsConnection,
  { job, settings }: Pick<JobFacts, "job" | "settings">,
): Promise<KnownSettings> {
  try {
    const stored = settings ?? (await openStoredJob(connection, job)).settings;
    const { format: _format, rules: _rules, leases: _leases, ...rest } = stored;
    const { shards: _shards, synchronization: _synchronization, ...known } = rest;
    return known;
  } catch (error) {
    // A history may be all that is left of a job.
    if (ensureError(error).code === "BAD_NAME") return {};
    throw error;
  }
}

/** Dependencies of {@link NewJob.begin}. */
interface NewJobDeps {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly subjects: JobSubjects;
}

/** Time limit for one request of the removal of a job. */
const REMOVE_MS = 10_000;

/** How often the settings are written again while the broker's answer is lost. */
const TRIES_MAX = 3;

/** The job is initialized: nobody is selected to do that again. */
const INITIALIZED: Lifecycle = {
  state: "ready",
  context: { epoch: 1, trainer: "", session: 0, at: [], sealed: 0, revised: 0 },
};

/** What identifies the entries of a job that is being made, and the run that makes it. */
export interface NewJobParts {
  readonly job: string;
  readonly settings: StoredSettings;
  readonly bucket: KvBucket;
  /** The origin, with the token of the run. */
  readonly origin: ForkOrigin;
  /** Reserves the broker's space for the job's state. */
  readonly space: Pick<JobSpace, "reserve">;
}

/**
 * A job that is being made. From the first write to the last its settings say so, so that no host joins it before it
 * is complete. They hold a token of the run that makes it; a later run takes the job over with a token of its own.
 * Whatever the earlier run still writes into the bucket is refused from then on.
 */
export class NewJob {
  readonly settings: StoredSettings;
  /** Reserves the broker's space for the job's state, before that is written. */
  readonly space: Pick<JobSpace, "reserve">;
  readonly #job: string;
  readonly #bucket: KvBucket;
  readonly #origin: ForkOrigin;

  constructor({ job, settings, bucket, origin, space }: NewJobParts) {
    this.settings = settings;
    this.space = space;
    this.#job = job;
    this.#bucket = bucket;
    this.#origin = origin;
  }

  /** Token of this run. */
  get token(): string {
    return this.#origin.pending ?? "";
  }

  /**
   * Begins to make the job, or takes it over from a run that was interrupted.
   * @throws JOB_EXISTS if there is a job of this name, unless it is an incomplete fork of the same job;
   * NO_SPACE if the broker has no space for its journals; BUSY if another run begins at the same time.
   */
  static async begin(
    deps: NewJobDeps,
    of: Pick<JobFacts, "job" | "shards" | "synchronization">,
    at: Pick<ForkOrigin, "at" | "madeMs">,
    known: KnownSettings,
  ): Promise<NewJob> {
    const { connection, manager, subjects } = deps;
    const { job } = subjects;
    const bucket = await openEntries(connection, subjects, known.replicas);
    const stored = await bucket.read(SETTINGS_KEY);
    if (stored !== undefined) checkOwnFork(job, stored, of);
    const { shards, synchronization } = of;
    const wanted = { ...known, shards, synchronization, leases: LEASES_IN_KV };
    const { journal = "file" } = known;
    const bytesMax = await findJournalBytes(manager, subjects, journal, shards);
    const journalBytesMax = Math.min(known.journalBytesMax ?? bytesMax, bytesMax);
    const tapeLimit = tapeBytesBeside({ journalBytesMax: bytesMax, shards });
    const tapeBytesMax = Math.min(known.tapeBytesMax ?? tapeLimit, tapeLimit);
    const limits = { journalBytesMax, tapeBytesMax };
    const settings = await newSettings({ ...wanted, ...limits }, async () => bytesMax);
    const origin = { of: of.job, ...at, pending: randomUUID() };
    const value = withForkOrigin(settings, origin);
    const revision = await replaceEntry(bucket, SETTINGS_KEY, value, stored?.revision);
    if (revision === undefined) throw settingsChanged(job);
    const { pending: _pending, ...made } = origin;
    await ensureSnapshots(manager, subjects, settings, made);
    const space = new JobSpace({ manager, subjects, limits: settings });
    return new NewJob({ job, settings, bucket, origin, space });
  }

  /** Checks that no other run has taken the job over. @throws BUSY */
  async check(): Promise<void> {
    const stored = await this.#bucket.read(SETTINGS_KEY);
    if (!this.#isOwn(stored?.value)) throw this.#overtaken();
  }

  /**
   * Writes the entries of the parameters and of a job that is initialized, in place of any there are, and at last lets
   * hosts join the job. Each write is made directly after the one before. `onParameters` is called before the last.
   * @throws BUSY if another run has taken the job over: then nothing that this one may still write is stored.
   */
  async complete(
    parameters: readonly Parameter[],
    onParameters: () => void = () => undefined,
  ): Promise<void> {
    const revision = await this.#renew();
    await this.#removeStale(parameters, revision);
    const chain = new BucketChain(this.#bucket, this.token, () => this.#overtaken());
    const entries = parameters.map((parameter): ChainedEntry => {
      return [parameterKey(parameter.declaration.name), toParameterEntry(parameter)];
    });
    await chain.write([...entries, [JOB_KEY, toLifecycleEntry(INITIALIZED)]]);
    onParameters();
    const { pending: _pending, ...origin } = this.#origin;
    await chain.write([[SETTINGS_KEY, withForkOrigin(this.settings, origin)]]);
  }

  /**
   * Removes what there is of the job.
   * @throws BUSY, before anything is removed, if another run has taken the job over, or it is complete; the errors of
   * {@link JobRemoval.run}.
   */
  async remove(connection: NatsConnection): Promise<void> {
    const isOwn = (settings: unknown): boolean => this.#isOwn(settings);
    const options = { connection, job: this.#job, etcd: undefined, timeoutMs: REMOVE_MS, isOwn };
    await new JobRemoval(options).run(() => undefined);
  }

  /**
   * Writes the settings again: the first link of the chain, and the proof that the job is still this run's.
   * @returns their revision.
   */
  async #renew(): Promise<number> {
    for (let tries = 1; ; tries++) {
      const stored = await this.#bucket.read(SETTINGS_KEY);
      if (stored === undefined || !this.#isOwn(stored.value)) throw this.#overtaken();
      try {
        const { value, revision: before } = stored;
        const id = BucketChain.firstId(this.token);
        const revision = await this.#bucket.update(SETTINGS_KEY, value, before, id);
        if (revision !== undefined) return revision;
      } catch (error) {
        // Whether it was written or not: the entry is read again.
        if (ensureError(error).code !== "TIMEOUT" || tries === TRIES_MAX) throw error;
      }
    }
  }

  /**
   * Removes parameters that an interrupted run has left and this one does not have. Only those that are older than
   * this run's settings: a later run writes or removes each of them, too, so that nothing of it can be lost.
   */
  async #removeStale(parameters: readonly Parameter[], revision: number): Promise<void> {
    const wanted = new Set(parameters.map(({ declaration }) => parameterKey(declaration.name)));
    const stale = (await this.#bucket.keys(PARAMETER_KEYS)).filter((key) => !wanted.has(key));
    await mapConcurrently(stale, async (key) => {
      const stored = await this.#bucket.read(key);
      if (stored === undefined || stored.revision > revision) return;
      await this.#bucket.remove(key, stored.revision);
    });
  }

  /**
   * Whether settings hold the token of this run, which no other run writes, and the job is neither complete nor being
   * removed.
   */
  #isOwn(settings: unknown): boolean {
    if (settings === undefined || hasRemovalFlag(settings)) return false;
    return forkOriginOf(settings)?.pending === this.token;
  }

  #overtaken(): PserverError {
    return settingsChanged(this.#job);
  }
}

/**
 * Checks that these are the settings of an incomplete fork of a job, with as many shards: those of more shards would
 * be left behind.
 * @throws JOB_EXISTS if they are not.
 */
function checkOwnFork(
  job: string,
  { value }: KvEntry,
  { job: of, shards }: Pick<JobFacts, "job" | "shards">,
): void {
  const origin = forkOriginOf(value);
  const isPending = !hasRemovalFlag(value) && origin?.pending !== undefined;
  const present = isPending ? parseSettings(value).shards : 0;
  if (isPending && origin.of === of && present === shards) return;
  const state = hasRemovalFlag(value)
    ? "is being removed"
    : origin?.pending === undefined
      ? "exists"
      : `is an incomplete fork of job ${origin.of} with ${present} shards`;
  throw new PserverError("JOB_EXISTS", `job ${job} ${state}: choose another name with --as`, {
    job,
  });
}
