import type {
  HostRecord,
  Position,
  RememberedTrainers,
  Synchronization,
} from "../../protocol/index.ts";
import type { Records } from "../jetstream/kv-bucket.ts";
import type { Quotas } from "../job/quotas.ts";
import type { LeaseView } from "../leases/lease-view.ts";
import type { Leases } from "../leases/leases.ts";
import type { DeclaredLedger } from "./declared-ledger.ts";
import type { MembersAnnouncer } from "./members-announcer.ts";
import type { SessionCounter } from "./session-counter.ts";

/** What is fixed for the life of a job. */
export interface JobSettings {
  readonly job: string;
  readonly shards: number;
  readonly journal: "file" | "memory";
  readonly leaseMs: number;
  readonly synchronization: Synchronization;
  /** Version of the rules that the journals begin with. */
  readonly rules: number;
  readonly quotas: Quotas;
}

/** A block by parameter, index and the epoch it must have. */
export type WantedBlock = readonly [parameter: string, index: number, epoch: number];

/** What the lifecycle needs of the shards' owners; the host asks them. */
export interface Owners {
  /**
   * Which of the blocks are missing once the shard's owner has folded up to `at`, and where its
   * journal then stands.
   */
  check(
    shard: number,
    want: { readonly blocks: readonly WantedBlock[]; readonly at?: Position },
  ): Promise<{
    readonly position: Position;
    readonly missing: readonly (readonly [parameter: string, index: number])[];
  }>;
  /** The trainers that a shard remembers, with their sessions. */
  trainers(shard: number): Promise<RememberedTrainers>;
  /** Appends a host's record to a shard's journal. */
  append(shard: number, record: HostRecord): Promise<Position>;
  /** @throws NO_MEMORY unless the owners' hosts can hold so many more bytes of values, by shard. */
  checkMemory(valueBytes: readonly number[]): Promise<void>;
  /** @throws NO_SPACE unless the broker can hold all journals and this state. */
  checkSpace(stateBytes: number): Promise<void>;
}

/** What the verbs of the lifecycle work with. */
export interface Surroundings {
  readonly job: JobSettings;
  readonly hostId: string;
  readonly maxPayloadBytes: number;
  readonly records: Records;
  readonly leases: Leases;
  /** Of the trainers' leases. */
  readonly view: LeaseView;
  readonly owners: Owners;
  readonly counter: SessionCounter;
  readonly announcer: MembersAnnouncer;
  readonly ledger: DeclaredLedger;
  readonly pause: (delayMs: number) => Promise<void>;
}
