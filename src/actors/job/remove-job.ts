import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import {
  asMap,
  bucketStream,
  defined,
  JobSubjects,
  type LifecycleState,
  PserverError,
} from "../../protocol/index.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import { HOST_LEASES, hostOfKey } from "../host/shard-claims.ts";
import { type KvBucket, type KvEntry, openExistingBucket } from "../journal/kv-bucket.ts";
import { brokerCall, deleteStream } from "../journal/streams.ts";
import { jobEntry } from "../lifecycle/machine.ts";
import type { EtcdSpace } from "./etcd-space.ts";
import {
  hasRemovalFlag,
  isPendingFork,
  LEASES_IN_KV,
  leasesIn,
  parseSettings,
  SETTINGS_KEY,
  settingsChanged,
  withRemovalFlag,
} from "./job-settings.ts";
import { type JobStreams, streamsOfJob } from "./open-job.ts";
import { type ReplicaReport, reportReplicas } from "./replicas.ts";

/** A job as its streams and entries describe it, whether hosts serve it or not. */
export interface JobDescription {
  readonly job: string;
  /**
   * State of its lifecycle; `removing` if its removal was begun; `incomplete` if it has no settings, because its
   * creation or its removal was interrupted, or if it is a fork that is not complete.
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
  if (!names.has(bucketStream(subjects.bucket()))) return { ...empty, state: "incomplete" };
  const bucket = await openExistingBucket(connection, subjects.bucket());
  const stored = (await bucket.read(SETTINGS_KEY))?.value;
  if (stored === undefined) return { ...empty, state: "incomplete" };
  const { shards, journal, leases, replicas: wanted } = parseSettings(stored);
  const hosts = await aliveHosts(connection, subjects, leases, names);
  const replicas = defined({ replicas: reportReplicas(streams, wanted) });
  const described = { ...rest, shards, journal, leases, hosts, ...replicas };
  if (hasRemovalFlag(stored)) return { ...described, state: "removing" };
  if (isPendingFork(stored)) return { ...described, state: "incomplete" };
  return { ...described, state: (await jobEntry.read({ bucket })).state };
}

/** Returns the ids of a job's hosts that are alive; undefined if its leases are not in the broker. */
async function aliveHosts(
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

/** Options of {@link JobRemoval}. */
export interface JobRemovalOptions {
  readonly connection: NatsConnection;
  readonly job: string;
  /** The etcd that holds the job's leases, if one does. */
  readonly etcd: EtcdSpace | undefined;
  /** How long one request to the broker may take. */
  readonly timeoutMs: number;
  /**
   * Revision of the settings. If they have another one, nothing is removed: somebody else may have taken the job
   * over.
   */
  readonly revision?: number;
}

/**
 * Removes a job for good. First its settings get a flag, so that no host joins the job or makes it again from what is
 * left; the bucket that holds them is removed last. An interrupted removal is completed by another one.
 */
export class JobRemoval {
  readonly #options: JobRemovalOptions;
  readonly #subjects: JobSubjects;

  constructor(options: JobRemovalOptions) {
    this.#options = options;
    this.#subjects = new JobSubjects(options.job);
  }

  /**
   * Lists the streams that would be removed, the bucket of settings last; none if there is no such job.
   * @throws JOB_EXISTS while a host of the job is alive, BAD_VALUE if its leases are in an etcd that was not given;
   * DENIED for a user who may not list streams.
   */
  async plan(): Promise<string[]> {
    const streams = await this.#streams();
    const settings = await (await this.#bucket(streams))?.read(SETTINGS_KEY);
    if (settings !== undefined) await this.#checkUnused(settings, new Set(streams));
    return streams;
  }

  /**
   * Removes the job; `onRemoved` is called for each stream and key.
   * @throws as {@link JobRemoval.plan}, before anything is removed.
   */
  async run(onRemoved: (name: string) => void): Promise<void> {
    const streams = await this.#streams();
    const bucket = await this.#bucket(streams);
    const settings = await bucket?.read(SETTINGS_KEY);
    if (bucket !== undefined && settings !== undefined) {
      await this.#fence(bucket, settings, new Set(streams));
    }
    await this.#removeEtcdKeys(onRemoved);
    const manager = await this.#manager();
    const { job } = this.#options;
    for (const name of streams) {
      // A missing stream was removed by another removal of the same job.
      const wasThere = await brokerCall(`removing the stream ${name}`, { job }, () =>
        deleteStream(manager, name),
      );
      if (wasThere) onRemoved(name);
    }
  }

  /** Writes the flag into the settings, and checks before and after that no host is alive. */
  async #fence(bucket: KvBucket, settings: KvEntry, streams: ReadonlySet<string>): Promise<void> {
    const { job, revision = settings.revision } = this.#options;
    if (settings.revision !== revision) throw settingsChanged(job);
    await this.#checkUnused(settings, streams);
    if (hasRemovalFlag(settings.value)) return;
    const flagged = await bucket.update(
      SETTINGS_KEY,
      withRemovalFlag(settings.value),
      settings.revision,
    );
    if (flagged === undefined) throw settingsChanged(job);
    try {
      // A host that read the settings before the flag was written may have joined since.
      await this.#checkUnused(settings, streams);
    } catch (error) {
      await bucket.update(SETTINGS_KEY, asMap(settings.value, SETTINGS_KEY), flagged);
      throw error;
    }
  }

  async #checkUnused({ value }: KvEntry, streams: ReadonlySet<string>): Promise<void> {
    const { leases } = parseSettings(value);
    this.#checkEtcd(leases);
    await this.#checkNoHosts(leases, streams);
  }

  #checkEtcd(leases: string): void {
    const { etcd, job } = this.#options;
    const received = leasesIn(etcd);
    if (received === leases) return;
    const message =
      leases === LEASES_IN_KV
        ? `job ${job} keeps its leases in the broker: expected no --etcd`
        : `job ${job} keeps its leases in ${leases}: expected --etcd and --etcd-prefix as its hosts have them`;
    throw new PserverError("BAD_VALUE", message, { job, expected: leases, received });
  }

  async #checkNoHosts(leases: string, streams: ReadonlySet<string>): Promise<void> {
    const { connection, job, etcd } = this.#options;
    const hosts =
      etcd === undefined
        ? ((await aliveHosts(connection, this.#subjects, leases, streams)) ?? [])
        : (await etcd.client.keys(`${etcd.keys.leases}${HOST_LEASES}`)).map((key) =>
            hostOfKey(key.slice(etcd.keys.leases.length)),
          );
    if (hosts.length === 0) return;
    throw new PserverError(
      "JOB_EXISTS",
      `hosts of job ${job} are alive: ${hosts.join(", ")}. Stop them first; the lease of one that ` +
        "crashed ends within seconds.",
      { job, hosts },
    );
  }

  /** Removes the keys of the job that do not expire with a lease. */
  async #removeEtcdKeys(onRemoved: (name: string) => void): Promise<void> {
    const { etcd } = this.#options;
    if (etcd === undefined) return;
    const { keys, client } = etcd;
    for (const { key, revision } of [
      ...(await client.list(keys.leases)),
      ...(await client.list(keys.done)),
    ]) {
      if (await client.swap([{ key, revision }], [{ kind: "remove", key }]))
        onRemoved(`etcd ${key}`);
    }
  }

  async #streams(): Promise<string[]> {
    const manager = await this.#manager();
    const names = (await streamsOfJob(manager, this.#options.job)).map(({ config }) => config.name);
    const last = bucketStream(this.#subjects.bucket());
    return [...names.filter((name) => name !== last).sort(), ...names.filter((n) => n === last)];
  }

  /** Opens the bucket of settings, if it is among the streams. */
  async #bucket(streams: readonly string[]): Promise<KvBucket | undefined> {
    const bucket = this.#subjects.bucket();
    if (!streams.includes(bucketStream(bucket))) return undefined;
    return await openExistingBucket(this.#options.connection, bucket);
  }

  async #manager(): Promise<JetStreamManager> {
    const { connection, timeoutMs } = this.#options;
    return await openJetStream(connection, timeoutMs).jetstreamManager(false);
  }
}
