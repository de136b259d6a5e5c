import type { Fields, HostRecord, Position, RememberedTrainers } from "../../protocol/index.ts";
import type { StoredSettings } from "../job/job-settings.ts";
import type { Quotas } from "../job/quotas.ts";

/** What is fixed for the life of a job. */
export interface JobSettings
  extends Pick<StoredSettings, "shards" | "journal" | "leaseMs" | "synchronization" | "rules"> {
  readonly job: string;
  readonly quotas: Quotas;
}

/** A block by parameter, index and the epoch it must have. */
export type WantedBlock = readonly [parameter: string, index: number, epoch: number];

/** Reply of a shard's owner to a check. */
export interface CheckedBlocks {
  /** The end of the shard's journal as it was folded for the check. */
  readonly position: Position;
  readonly missing: readonly (readonly [parameter: string, index: number])[];
}

/** Requests to the owners of shards, the broker's space and the hosts' memory. */
export interface Owners {
  /** Tells which of the blocks are missing once the shard's owner has folded up to `at`. */
  check(
    shard: number,
    want: { readonly blocks: readonly WantedBlock[]; readonly at?: Position },
  ): Promise<CheckedBlocks>;
  /** The trainers that a shard remembers, with their sessions. */
  trainers(shard: number): Promise<RememberedTrainers>;
  /** Appends a host's record to a shard's journal. */
  append(shard: number, record: HostRecord): Promise<Position>;
  /** Has a shard's owner store a snapshot of this position or later, unless there is one; returns its position. */
  snapshot(shard: number, at: Position): Promise<Fields>;
  /** @throws NO_MEMORY unless the owners' hosts can hold so many more bytes of values, by shard. */
  checkMemory(valueBytes: readonly number[]): Promise<void>;
  /** @throws NO_SPACE unless the broker can hold all journals and this state. */
  checkSpace(stateBytes: number): Promise<void>;
}
