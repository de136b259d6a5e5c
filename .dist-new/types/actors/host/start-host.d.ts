import { type Host, type HostOptions } from "./host.ts";
/**
 * Joins a job, which is made if it does not exist, and serves a share of its shards. While the broker's
 * JetStream is unavailable, as in a cluster without a leader, it retries for 60 s. Loading and folding the shards takes
 * as long as it makes progress.
 * @returns the host, once every shard that fell to it is served or has failed.
 * @throws BAD_CONFIG for an invalid synchronization; NO_BROKER, DENIED, NO_JETSTREAM,
 * JETSTREAM_UNAVAILABLE, PAYLOAD_TOO_SMALL, JOB_EXISTS, NO_SPACE, TIMEOUT; with `etcd` also BAD_VALUE and NO_ETCD.
 */
export declare function startHost(options: HostOptions): Promise<Host>;
//# sourceMappingURL=start-host.d.ts.map