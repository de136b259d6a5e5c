import type { NatsConnection } from "@nats-io/transport-node";
import {
  asMap,
  bucketStream,
  defined,
  ensureError,
  JobSubjects,
  type LifecycleState,
} from "../../protocol/index.ts";
import { HOST_LEASES, hostOfKey } from "../host/shard-claims.ts";
import { type KvBucket, openExistingBucket } from "../journal/kv-bucket.ts";
import { jobEntry } from "../lifecycle/machine.ts";
import {
  hasRemovalFlag,
  isPendingFork,
  LEASES_IN_KV,
  parseSettings,
  readSettings,
  SETTINGS_KEY,
} from "./job-settings.ts";
import type { JobStreams } from "./open-job.ts";
import { type ReplicaReport, reportReplicas } from "./replica-report.ts";
import { settingsCopyIn } from "./settings-copy.ts";

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
export async function describeJob(
  connection: NatsConnection,
  { job, streams }: JobStreams,
): Promise<JobDescription> {
  const subjects = new JobSubjects(job);
  const names = new Set(streams.map(({ config }) => config.name));
  const bytes = streams.reduce((sum, { state }) => sum + state.bytes, 0);
  const rest = { job, bytes, streams: streams.length };
  const empty = { ...rest, shards: 0, journal: undefined, hosts: [], leases: LEASES_IN_KV };
  const snapshots = streams.find(({ config }) => config.name === subjects.snapshotStream());
  const bucket = names.has(bucketStream(subjects.bucket()))
    ? await openExistingBucket(connection, subjects.bucket())
    : undefined;
  const found = bucket && (await readSettings(bucket));
  const hasSnapshots = snapshots !== undefined && snapshots.state.last_seq > 0;
  if (found === undefined && !hasSnapshots) return { ...empty, state: "incomplete" };
  const isRemoved = found?.value !== undefined && hasRemovalFlag(found.value);
  const stored = found?.value ?? (snapshots && settingsCopyIn(snapshots.config));
  if (!isDescribed(stored)) return { ...empty, state: isRemoved ? "removing" : "damaged" };
  const { shards, journal, leases, replicas: wanted } = parseSettings(stored);
  const hosts = await aliveHosts(connection, subjects, leases, names);
  const replicas = defined({ replicas: reportReplicas(streams, wanted) });
  const described = { ...rest, shards, journal, leases, hosts, ...replicas };
  if (isRemoved) return { ...described, state: "removing" };
  if (bucket === undefined || found?.value === undefined) return { ...described, state: "damaged" };
  if (isPendingFork(stored)) return { ...described, state: "incomplete" };
  return { ...described, state: await lifecycleState(bucket) };
}

/** Whether settings say more than that a job is being removed whose settings were damaged. */
export function isDescribed(stored: unknown): boolean {
  return stored !== undefined && asMap(stored, SETTINGS_KEY)["shards"] !== undefined;
}

async function lifecycleState(bucket: KvBucket): Promise<LifecycleState | "damaged"> {
  try {
    return (await jobEntry.read({ bucket })).state;
  } catch (error) {
    if (ensureError(error).code !== "JOB_DAMAGED") throw error;
    return "damaged";
  }
}

/** Returns the ids of a job's hosts that are alive; undefined if its leases are not in the broker. */
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
