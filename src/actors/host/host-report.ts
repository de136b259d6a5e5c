import {
  asMap,
  ensureError,
  type Fields,
  integerField,
  type PserverError,
} from "../../protocol/index.ts";
import type { Clock } from "../concurrent.ts";
import type { OpenedJob } from "../job/open-job.ts";
import { type ArchivedShard, readArchivers } from "../journal/archivers.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import type { OwnerCounts } from "../owner/owner-counters.ts";
import { Watch } from "./watches.ts";

/** A shard of a host, as its owner has last told. */
export interface ShardReport {
  readonly shard: number;
  /** `serving`, `taking-over`, `catching-up`, `no-memory` or `failed`. */
  readonly state: string;
  /** Generation of its journal; 0 before the shard is taken over, like all sequences. */
  readonly generation: number;
  /** The last record that the journal is known to hold. */
  readonly endSeq: number;
  readonly foldedSeq: number;
  /** The last record that the newest snapshot covers. */
  readonly snapshotSeq: number;
  readonly journalBytes: number;
  /** Bytes beyond which the broker refuses records; 0 if that is not known yet. */
  readonly journalBytesMax: number;
  /** The last step that has closed; undefined in a job whose trainers do not keep step. */
  readonly closedStep: number | undefined;
}

/** What a host knows of its whole job, as it last looked. */
export interface JobReport {
  /** Bytes of the tape in the broker; undefined without one, and if the broker does not say. */
  readonly tapeBytes: number | undefined;
  /** Trainers that keep step; undefined in a job whose trainers do not. */
  readonly members: number | undefined;
  /** For each archiver that is alive, how far it has copied each shard. */
  readonly archived: readonly (readonly ArchivedShard[])[];
}

/** What a host reports of itself to whoever watches it; plain data. */
export interface HostReport {
  readonly host: string;
  readonly job: string;
  /** The shards that it owns. */
  readonly shards: readonly ShardReport[];
  /** Numbers of the shards that fall to it, owned or not. */
  readonly share: readonly number[];
  /** What it has counted since it was started. */
  readonly counts: OwnerCounts;
  /** Leases that it has lost while it used them. */
  readonly leasesLost: number;
  /** Trainers that hold a lease. */
  readonly liveTrainers: number;
  /** Undefined before the host has looked. */
  readonly whole: JobReport | undefined;
  /** For how long the worker thread that is silent for longest has told nothing; each tells twice a second. */
  readonly silentMs: number;
}

/** Reads the report of a shard from the status that its owner has told. */
export function shardReport(status: Fields): ShardReport {
  const { steps } = status;
  return {
    shard: integerField(status, "shard"),
    state: String(status["state"]),
    generation: integerField(status, "generation"),
    endSeq: integerField(status, "endSeq"),
    foldedSeq: integerField(status, "seq"),
    snapshotSeq: integerField(status, "snapshotSeq"),
    journalBytes: integerField(status, "journalBytes"),
    journalBytesMax: integerField(status, "journalBytesMax"),
    closedStep: steps === undefined ? undefined : integerField(asMap(steps, "steps"), "closed"),
  };
}

/** How often a host looks at its whole job. */
const LOOK_MS = 10_000;

/** Dependencies of {@link JobReportWatch}. */
interface JobReportWatchDeps {
  readonly job: Pick<OpenedJob, "bucket" | "settings" | "tapeStorage">;
  readonly service: Pick<LifecycleService, "members">;
  /** Called after each look that failed; what was known before stays. */
  readonly onError: (error: PserverError) => void;
  readonly clock?: Clock;
}

/** Looks, every few seconds, at what a host's report says of the whole job: whoever reads the report need not wait. */
export class JobReportWatch extends Watch {
  readonly #deps: JobReportWatchDeps;
  #report: JobReport | undefined;
  #hasFailed = false;

  constructor(deps: JobReportWatchDeps) {
    super(deps.clock);
    this.#deps = deps;
  }

  /** What was seen last; undefined before the first look. */
  get report(): JobReport | undefined {
    return this.#report;
  }

  protected override async check(): Promise<number> {
    const { job, service, onError } = this.#deps;
    const isAsync = job.settings.synchronization.mode === "async";
    try {
      const [tape, archivers, members] = await Promise.all([
        job.tapeStorage(),
        readArchivers(job.bucket),
        isAsync ? undefined : service.members(),
      ]);
      this.#report = {
        tapeBytes: tape?.bytes,
        members: members?.members.length,
        archived: archivers.flatMap(({ entry }) => (entry === undefined ? [] : [entry.shards])),
      };
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) onError(ensureError(error));
      this.#hasFailed = true;
    }
    return LOOK_MS;
  }
}
