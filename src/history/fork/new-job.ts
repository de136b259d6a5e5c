import { randomUUID } from "node:crypto";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { CURRENT_RULES, UPGRADABLE_RULES_MIN } from "../../actors/fold/rules.ts";
import {
  type KvBucket,
  type KvEntry,
  openBucket,
  replaceEntry,
} from "../../actors/jetstream/kv-bucket.ts";
import {
  type ForkMark,
  forkMarkOf,
  isPendingFork,
  withForkMark,
} from "../../actors/job/fork-mark.ts";
import {
  hasRemovalMark,
  LEASES_IN_KV,
  newSettings,
  SETTINGS_KEY,
  type StoredSettings,
  settingsChanged,
} from "../../actors/job/job-settings.ts";
import { findJournalBytes } from "../../actors/job/open-job.ts";
import { ensureSnapshotStream } from "../../actors/snapshot/store.ts";
import { type JobSubjects, PserverError } from "../../protocol/index.ts";
import type { JobFacts } from "../source.ts";
import type { KnownSettings } from "./known-settings.ts";

/** Dependencies of {@link NewJob}. */
export interface NewJobDeps {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly subjects: JobSubjects;
}

/**
 * A job in the making. Its settings bear a mark from the first write to the last, so that no host joins it
 * before it is complete. Whoever makes it writes the mark with a token; a later run takes it over with its
 * own.
 */
export class NewJob {
  readonly settings: StoredSettings;
  readonly bucket: KvBucket;
  readonly #subjects: JobSubjects;
  readonly #mark: ForkMark;
  readonly #revision: number;

  private constructor(options: {
    readonly settings: StoredSettings;
    readonly bucket: KvBucket;
    readonly subjects: JobSubjects;
    readonly mark: ForkMark;
    readonly revision: number;
  }) {
    this.settings = options.settings;
    this.bucket = options.bucket;
    this.#subjects = options.subjects;
    this.#mark = options.mark;
    this.#revision = options.revision;
  }

  /** Token of this run. */
  get token(): string {
    return this.#mark.pending ?? "";
  }

  /**
   * Begins to make the job, or takes it over from a run that was interrupted. `rules`: the lowest version
   * that a shard of the other job has; its shards go on under the present rules unless they are too old.
   * @throws JOB_EXISTS if there is a job of this name, unless it is an incomplete fork of the same job;
   * NO_SPACE if the broker has no space for its journals.
   */
  static async begin(
    deps: NewJobDeps,
    of: JobFacts,
    mark: Pick<ForkMark, "at" | "madeMs">,
    { known, rules }: { readonly known: KnownSettings; readonly rules: number },
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
    const fresh = await newSettings({ ...wanted, journalBytesMax }, async () => bytesMax);
    const settings = { ...fresh, rules: rules < UPGRADABLE_RULES_MIN ? rules : CURRENT_RULES };
    const pending = { of: of.job, ...mark, pending: randomUUID() };
    const value = withForkMark(settings, pending);
    const revision = await replaceEntry(bucket, SETTINGS_KEY, value, stored?.revision);
    if (revision === undefined) throw settingsChanged(subjects.job);
    await ensureSnapshotStream(manager, subjects, settings.replicas);
    return new NewJob({ settings, bucket, subjects, mark: pending, revision });
  }

  /** Checks that no other run has taken it over. @throws BUSY */
  async check(): Promise<void> {
    const stored = await this.bucket.read(SETTINGS_KEY);
    if (stored?.revision !== this.#revision) throw settingsChanged(this.#subjects.job);
  }

  /** Lets hosts join the job. @throws BUSY if another run has taken it over. */
  async complete(): Promise<void> {
    const { pending: _pending, ...mark } = this.#mark;
    const value = withForkMark(this.settings, mark);
    if ((await this.bucket.update(SETTINGS_KEY, value, this.#revision)) !== undefined) return;
    // The answer to an earlier try may have been lost.
    const stored = await this.bucket.read(SETTINGS_KEY);
    if (stored === undefined || isPendingFork(stored.value))
      throw settingsChanged(this.#subjects.job);
  }
}

/** @throws JOB_EXISTS unless these are the settings of an incomplete fork of job `of`. */
function checkOwnFork(job: string, { value }: KvEntry, of: string): void {
  const mark = forkMarkOf(value);
  if (!hasRemovalMark(value) && mark?.pending !== undefined && mark.of === of) return;
  const state = hasRemovalMark(value)
    ? "is being removed"
    : mark?.pending === undefined
      ? "exists"
      : `is an incomplete fork of job ${mark.of}`;
  throw new PserverError("JOB_EXISTS", `job ${job} ${state}: choose another name with --as`, {
    job,
  });
}
