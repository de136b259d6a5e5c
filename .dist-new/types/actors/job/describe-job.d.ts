import type { NatsConnection } from "@nats-io/transport-node";
import { JobSubjects, type LifecycleState } from "../../protocol/index.ts";
import type { JobStreams } from "./open-job.ts";
import { type ReplicaReport } from "./replica-report.ts";
/** A job as its streams and entries describe it, whether hosts serve it or not. */
export interface JobDescription {
    readonly job: string;
    /**
     * State of its lifecycle; `removing` if its removal was begun; `damaged` if its settings or its lifecycle cannot be
     * read, or are lost; `incomplete` if its creation was interrupted, or if it is a fork that is not complete.
     */
    readonly state: LifecycleState | "removing" | "incomplete" | "damaged";
    readonly shards: number;
    readonly journal: "file" | "memory" | undefined;
    /** Hosts that are alive; undefined if their leases are in etcd. */
    readonly hosts: readonly string[] | undefined;
    /** `kv`, or the identity of the etcd that holds the leases. */
    readonly leases: string;
    /** Bytes of all its streams, in the broker's memory and files. */
    readonly bytes: number;
    readonly streams: number;
    /** Copies of its streams; absent if it asks for one of each. */
    readonly replicas?: ReplicaReport;
}
/** Describes a job; @throws TIMEOUT, DENIED, … if the broker does not answer. */
export declare function describeJob(connection: NatsConnection, { job, streams }: JobStreams): Promise<JobDescription>;
/** Whether settings say more than that a job is being removed whose settings were damaged. */
export declare function isDescribed(stored: unknown): boolean;
/** Returns the ids of a job's hosts that are alive; undefined if its leases are not in the broker. */
export declare function aliveHosts(connection: NatsConnection, subjects: JobSubjects, leases: string, streams: ReadonlySet<string>): Promise<string[] | undefined>;
//# sourceMappingURL=describe-job.d.ts.map