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
import { brokerCall, deleteStreamAsMade, type MadeStream } from "../journal/streams.ts";
import { jobEntry } from "../lifecycle/machine.ts";
import type { EtcdEntry } from "./etcd-client.ts";
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
import { type ReplicaReport, reportReplicas } from "./replica-report.ts";

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
  /** Whether these settings are those of the job that is meant; if not, nothing is removed. By default any are. */
  readonly isOwn?: (settings: unknown) => boolean;
}

/** What belongs to a job before any of it is removed; a job that is made under its name later has none of it. */
interface Belongings {
  /** The bucket of settings last. */
  readonly streams: readonly MadeStream[];
  readonly etcdKeys: readonly EtcdEntry[];
}

/**
 * Removes a job for good. First its settings get a flag, so that no host joins the job or makes it again from what is
 * left; the bucket that holds them is removed last. An interrupted removal is completed by another one. One that goes
 * on late leaves alone what was made under the job's name meanwhile.
 */
export class JobRemoval {
  readonly #options: JobRemovalOptions;
  readonly #subjects: JobSubjects;

  /** When the bucket of the job was made that was planned to be removed; undefined before. */
  #planned: string | undefined;

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
    if (settings !== undefined) await this.#checkUnused(settings, namesOf(streams));
    this.#planned = this.#bucketStream(streams)?.created;
    return streams.map(({ name }) => name);
  }

  /**
   * Removes the job; `onRemoved` is called for each stream and key.
   * @throws as {@link JobRemoval.plan}, before anything is removed; BUSY if somebody else changes the job's settings,
   * or if the name has been used again since the plan or during the removal: what was made then stays.
   */
  async run(onRemoved: (name: string) => void): Promise<void> {
    const { streams, etcdKeys } = await this.#belongings();
    const bucket = await this.#bucket(streams);
    const settings = await bucket?.read(SETTINGS_KEY);
    const { job, isOwn } = this.#options;
    if (bucket !== undefined && settings !== undefined) {
      await this.#fence(bucket, settings, namesOf(streams));
    } else if (isOwn !== undefined) throw settingsChanged(job);
    await this.#removeEtcdKeys(etcdKeys, onRemoved);
    const manager = await this.#manager();
    for (const stream of streams) {
      // A missing stream was removed by another removal of the same job.
      const wasThere = await brokerCall(`removing the stream ${stream.name}`, { job }, () =>
        deleteStreamAsMade(manager, stream),
      );
      if (wasThere) onRemoved(stream.name);
    }
  }

  /** Lists what there is of the job. @throws BUSY if it is another one than that of the plan. */
  async #belongings(): Promise<Belongings> {
    const { etcd, job } = this.#options;
    const streams = await this.#streams();
    const created = this.#bucketStream(streams)?.created;
    if (this.#planned !== undefined && created !== undefined && created !== this.#planned) {
      throw new PserverError("BUSY", `job ${job}: its name has been used again meanwhile`, { job });
    }
    if (etcd === undefined) return { streams, etcdKeys: [] };
    const { keys, client } = etcd;
    const etcdKeys = [...(await client.list(keys.leases)), ...(await client.list(keys.done))];
    return { streams, etcdKeys };
  }

  /** Writes the flag into the settings, and checks before and after that no host is alive. */
  async #fence(bucket: KvBucket, settings: KvEntry, streams: ReadonlySet<string>): Promise<void> {
    const { job, isOwn = () => true } = this.#options;
    if (!isOwn(settings.value)) throw settingsChanged(job);
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

  /** Removes the keys of the job that do not expire with a lease, as far as they are the listed ones. */
  async #removeEtcdKeys(
    listed: readonly EtcdEntry[],
    onRemoved: (name: string) => void,
  ): Promise<void> {
    for (const { key, revision } of listed) {
      const removed = await this.#options.etcd?.client.swap(
        [{ key, revision }],
        [{ kind: "remove", key }],
      );
      if (removed === true) onRemoved(`etcd ${key}`);
    }
  }

  async #streams(): Promise<MadeStream[]> {
    const manager = await this.#manager();
    const infos = await streamsOfJob(manager, this.#options.job);
    const streams = infos.map(({ config: { name }, created }) => ({ name, created }));
    const last = this.#bucketStream(streams);
    const others = streams.filter((stream) => stream !== last);
    others.sort((a, b) => (a.name < b.name ? -1 : 1));
    return last === undefined ? others : [...others, last];
  }

  /** Returns the stream of the bucket of settings, if it is among these. */
  #bucketStream(streams: readonly MadeStream[]): MadeStream | undefined {
    const name = bucketStream(this.#subjects.bucket());
    return streams.find((stream) => stream.name === name);
  }

  /** Opens the bucket of settings, if it is among the streams. */
  async #bucket(streams: readonly MadeStream[]): Promise<KvBucket | undefined> {
    if (this.#bucketStream(streams) === undefined) return undefined;
    return await openExistingBucket(this.#options.connection, this.#subjects.bucket());
  }

  async #manager(): Promise<JetStreamManager> {
    const { connection, timeoutMs } = this.#options;
    return await openJetStream(connection, timeoutMs).jetstreamManager(false);
  }
}

function namesOf(streams: readonly MadeStream[]): Set<string> {
  return new Set(streams.map(({ name }) => name));
}
