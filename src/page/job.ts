/** A shard as its owner reports it. */
export interface ShardEntry {
  readonly shard: number;
  readonly state: string;
  readonly generation?: number;
  readonly seq?: number;
  readonly endSeq?: number;
  readonly snapshotSeq?: number;
  readonly blocks?: number;
  readonly valueBytes?: number;
  readonly journalBytes?: number;
  readonly journalBytesMax?: number;
  readonly updates?: { readonly applied: number; readonly rejected: number };
  readonly error?: { readonly code: string; readonly message: string };
}

/** What `pserver status --json` prints, as far as the page shows it. */
export interface JobStatus {
  readonly job: string;
  readonly state: string;
  readonly by: string;
  readonly parameters: { readonly count: number; readonly ready: number; readonly bytes: number };
  readonly hosts: readonly { readonly id: string; readonly shards: readonly number[] }[];
  readonly trainers: readonly string[];
  readonly shards: readonly ShardEntry[];
  readonly synchronization: { readonly mode: string };
  readonly tape?: { readonly bytes: number; readonly bytesMax: number };
  readonly rewind?: RewindEntry;
}

/** A rewind that is not complete. */
export interface RewindEntry {
  readonly id: string;
  readonly begunMs: number;
  readonly at: readonly unknown[];
  readonly goneBack: readonly number[];
}

/** What the page is told of the server that serves it. */
export interface ServerFacts {
  readonly version: string;
  /** The job with which it was started. */
  readonly job: string;
  /** Whether it forks and rewinds for the page. */
  readonly canChange: boolean;
}

/** An update as the log has it; see `pserver log --json`. */
export interface UpdateEntry {
  readonly time: string;
  readonly shard: number;
  readonly generation: number;
  readonly seq: number;
  readonly entry: number;
  readonly trainer?: string;
  readonly session?: number;
  readonly number?: number;
  readonly verb: string;
  readonly step?: number;
  readonly parameter?: string;
  readonly block?: number;
  readonly elements?: number;
  readonly bytes?: number;
  readonly norm?: number | string;
  readonly behind?: number;
  readonly outcome: string;
  readonly code?: string;
  readonly message?: string;
  /** What a guard has done about it, and the norm that it may have at most. */
  readonly guard?: string;
  readonly limit?: number;
  readonly note?: Readonly<Record<string, unknown>>;
}

/** What is known of a job at the moment, and lately. */
export interface JobView {
  readonly name: string;
  readonly status: JobStatus | undefined;
  /** The newest updates, the newest last. */
  readonly updates: readonly UpdateEntry[];
  /** Whether there were lately more updates than these: a busy job has more than anybody could read. */
  readonly isPartial: boolean;
  /** Records and block updates a second, lately; undefined while that is not known. */
  readonly rate: Rate | undefined;
  /** Why only the job's status can be seen, if that is so. */
  readonly limited: string | undefined;
  readonly server: ServerFacts;
}

/** How much a job does a second. */
export interface Rate {
  readonly records: number;
  readonly updates: number;
}
