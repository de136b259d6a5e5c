import type { NatsConnection } from "@nats-io/transport-node";
import { bucketStream, JobSubjects, type LifecycleState } from "../../protocol/index.ts";
import { HOST_LEASES, hostOfKey } from "../host/shard-claims.ts";
import { openExistingBucket } from "../jetstream/kv-bucket.ts";
import { jobRecord } from "../lifecycle/lifecycle-record.ts";
import { isPendingFork } from "./fork-mark.ts";
import { hasRemovalMark, LEASES_IN_KV, parseSettings, SETTINGS_KEY } from "./job-settings.ts";
import type { JobStreams } from "./job-streams.ts";

/** A job as its streams and records describe it, whether hosts serve it or not. */
export interface JobDescription {
  readonly job: string;
  /**
   * State of its lifecycle; `removing` if its removal was begun, `incomplete` if it has no settings
   * because its creation or its removal was interrupted, or if it is a fork that is not complete.
   */
  readonly state: LifecycleState | "removing" | "incomplete";
  readonly shards: number;
  readonly journal: "file" | "memory" | undefined;
  /** Hosts that are alive; undefined if their leases are in etcd. */
  readonly hosts: readonly string[] | undefined;
  /** `kv`, or the identity of the etcd that holds the leases. */
  readonly leases: string;
  /** Bytes of all its streams, in the broker's memory and files. */
  readonly bytes: number;
  readonly streams: number;
}

/** Describes a job; @throws TIMEOUT, DENIED, … if the broker does not answer. */
export async function describeJob(
  connection: NatsConnection,
  { job, streams }: JobStreams,
): Promise<JobDescription> {
  const subjects = new JobSubjects(job);
  const names = new Set(streams.map(({ config }) => config.name));
  const bytes = streams.reduce((sum, { state }) => sum + state.bytes, 0);
  const rest = { job, bytes, streams: streams.length };
  const empty = { ...rest, shards: 0, journal: undefined, hosts: [], leases: LEASES_IN_KV };
  if (!names.has(bucketStream(subjects.bucket()))) return { ...empty, state: "incomplete" };
  const bucket = await openExistingBucket(connection, subjects.bucket());
  const stored = (await bucket.read(SETTINGS_KEY))?.value;
  if (stored === undefined) return { ...empty, state: "incomplete" };
  const { shards, journal, leases } = parseSettings(stored);
  const hosts = await aliveHosts(connection, subjects, leases, names);
  const described = { ...rest, shards, journal, leases, hosts };
  if (hasRemovalMark(stored)) return { ...described, state: "removing" };
  if (isPendingFork(stored)) return { ...described, state: "incomplete" };
  return { ...described, state: (await jobRecord.read({ bucket })).state };
}

/** The ids of a job's hosts that are alive; undefined if its leases are not in the broker. */
export async function aliveHosts(
  connection: NatsConnection,
  subjects: JobSubjects,
  leases: string,
  streams: ReadonlySet<string>,
): Promise<string[] | undefined> {
  if (leases !== LEASES_IN_KV) return undefined;
  const bucket = subjects.leaseBucket();
  if (!streams.has(bucketStream(bucket))) return [];
  const keys = await (await openExistingBucket(connection, bucket)).keys(HOST_LEASES);
  return keys.map(hostOfKey).sort();
}
