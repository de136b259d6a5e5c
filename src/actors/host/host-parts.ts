import type { NatsConnection } from "@nats-io/transport-node";
import type { JobSubjects } from "../../protocol/index.ts";
import type { ControlService } from "../control/control-service.ts";
import type { EtcdSpace } from "../etcd/etcd-space.ts";
import type { Publication } from "../etcd/publication.ts";
import type { OpenedJob } from "../job/open-job.ts";
import type { LeaseClock } from "../leases/lease-clock.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import type { HostMemory } from "../memory/host-memory.ts";
import type { Refusals } from "../requests/refusals.ts";
import type { HostEvent, HostOptions } from "./host-options.ts";
import type { JobWatch } from "./job-watch.ts";
import type { LossesWatch } from "./losses-watch.ts";
import type { MembersWatch } from "./members-watch.ts";
import type { SessionsWatch } from "./sessions-watch.ts";
import type { ShardClaims } from "./shard-claims.ts";
import type { StartRetries } from "./start-retries.ts";
import type { WorkerPool } from "./worker-pool.ts";

/** What a host is opened with. */
export interface HostOpening {
  readonly options: HostOptions;
  readonly subjects: JobSubjects;
  readonly id: string;
  readonly connection: NatsConnection;
  /** Where requests of trainers arrive and are answered. */
  readonly answers: NatsConnection;
  /** Refusals sent through `answers`. */
  readonly refusals: Refusals;
  readonly etcd: EtcdSpace | undefined;
  readonly retries: StartRetries;
}

/** Parts of a host that has opened its job. */
export interface HostParts {
  readonly opening: HostOpening;
  readonly job: OpenedJob;
  readonly emit: (event: HostEvent) => void;
  readonly clock: LeaseClock;
  readonly memory: HostMemory;
  readonly pool: WorkerPool;
  readonly claims: ShardClaims;
  /** Of the host's own lease. */
  readonly keeper: LeaseKeeper;
  readonly lifecycle: LifecycleService;
  readonly control: ControlService;
  /** In etcd, if the job's leases are there. */
  readonly publication: Publication | undefined;
  readonly members: MembersWatch;
  readonly presence: JobWatch;
  /** Works only for a job with journals in memory. */
  readonly losses: LossesWatch;
  readonly sessions: SessionsWatch;
}
