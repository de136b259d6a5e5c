import { randomUUID } from "node:crypto";
import { availableParallelism, hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { defined } from "../protocol/defined.ts";
import {
  asMap,
  ensureError,
  type JobSubjects,
  PserverError,
  quoteName,
  textField,
  toSynchronization,
} from "../../protocol/index.ts";
import { fromBrokerError, isRefusedSubscription } from "../../transport/broker-error.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import type { EtcdSpace } from "../etcd/etcd-space.ts";
import { HostInEtcd } from "../etcd/host-in-etcd.ts";
import { journalSettings, type StoredSettings } from "../job/job-settings.ts";
import { leaseTimeoutMs, type OpenedJob, openJob } from "../job/open-job.ts";
import { quotasOf } from "../job/quotas.ts";
import { Journal, type JournalSettings } from "../journal/journal.ts";
import { BrokerProbe } from "../leases/broker-bound-leases.ts";
import { LeaseClock } from "../leases/lease-clock.ts";
import { LeaseKeeper } from "../leases/lease-keeper.ts";
import { createLifecycle, type LifecycleService } from "../lifecycle/service.ts";
import { HostMemory } from "../memory/host-memory.ts";
import { OwnersClient } from "../requests/owners-client.ts";
import type { Refusals } from "../requests/refusals.ts";
import type { RequestServer } from "../requests/request-server.ts";
import type { Host, HostEvent, HostOptions, HostStatus } from "./host-options.ts";
import { MembersWatch } from "./members-watch.ts";
import { serveRequests } from "./serve-requests.ts";
import { SessionsWatch } from "./sessions-watch.ts";
import { hostKey, ShardClaims } from "./shard-claims.ts";
import type { StartPatience } from "./start-retries.ts";
import { WorkerPool } from "./worker-pool.ts";

/** Journal kept of each shard; that in memory is the broker's, next to all other shards'. */
const RETAIN_BYTES = { file: 1024 ** 3, memory: 64 * 1024 ** 2 } as const;
const SNAPSHOT_BYTES = 256 * 1024 ** 2;

/** Journal bytes under way to one worker's connection, shared by its shards. */
const CREDIT_BYTES = 32 * 1024 ** 2;

/** How often a host that starts looks whether its shards are served. */
const SERVED_POLL_MS = 20;

/** Shards whose trouble is told of when a host cannot start. */
const TROUBLES_SHOWN_MAX = 3;

/** What a host is opened with. */
export interface Opening {
  readonly options: HostOptions;
  readonly subjects: JobSubjects;
  readonly id: string;
  readonly connection: NatsConnection;
  /** Where requests of trainers come in and are answered. */
  readonly answers: NatsConnection;
  /** Whom they refuse, as the connection is to know. */
  readonly refusals: Refusals;
  readonly etcd: EtcdSpace | undefined;
  readonly patience: StartPatience;
}

/** A host that has joined its job. */
export class RunningHost implements Host {
  readonly id: string;
  readonly settings: StoredSettings;
  readonly stopped: Promise<PserverError | undefined>;
  readonly #job: string;
  readonly #connection: NatsConnection;
  readonly #answers: NatsConnection;
  readonly #emit: (event: HostEvent) => void;
  readonly #clock: LeaseClock;
  readonly #memory: HostMemory;
  readonly #pool: WorkerPool;
  readonly #claims: ShardClaims;
  readonly #keeper: LeaseKeeper;
  readonly #lifecycle: LifecycleService;
  readonly #etcd: HostInEtcd | undefined;
  readonly #members: MembersWatch;
  readonly #sessions: SessionsWatch;
  readonly #servers: RequestServer[] = [];
  readonly #settled: Set<number> = new Set();
  #finish: (reason: PserverError | undefined) => void = () => undefined;
  #closing: Promise<void> | undefined;
  #hasToldOfOtherAccount = false;

  private constructor(opening: Opening, job: OpenedJob, owners: OwnersClient) {
    const { options, id, connection } = opening;
    this.id = id;
    this.#job = options.job;
    this.settings = job.settings;
    this.stopped = new Promise((resolve) => {
      this.#finish = resolve;
    });
    this.#connection = connection;
    this.#answers = opening.answers;
    const emit = options.onEvent ?? (() => undefined);
    this.#emit = (event) => {
      if (event.type !== "error" || event.error.code !== "NO_ETCD") emit(event);
    };
    opening.etcd?.client.watch((error) =>
      emit(error === undefined ? { type: "etcd-back" } : { type: "etcd-lost", error }),
    );
    const { leaseMs, shards } = job.settings;
    this.#clock = new LeaseClock(shards);
    const limitBytes = options.memoryLimitBytes;
    this.#memory = new HostMemory({ shards, limitBytes });
    this.#pool = new WorkerPool({
      onServing: (shard) => {
        this.#emit({ type: "serving", shard });
        this.#settle(shard);
        this.#members.serving(shard);
      },
      onNoMemory: (shard, error) => this.#decline(shard, error),
      onShardFailed: (shard, error) => this.#shardFailed(shard, error),
      onShardTrouble: (type, shard, error) => this.#emit({ type, shard, error }),
      onRecovered: (recovered) => this.#emit({ type: "shard-recovered", ...recovered }),
      onCrash: (error) => void this.#stop(error),
    });
    // Its own token tells this life of the host from an earlier one with the same id.
    const value = { owner: randomUUID(), host: id, pid: process.pid, machine: hostname() };
    const { leases } = job;
    this.#claims = new ShardClaims({
      job: options.job,
      shards,
      host: id,
      value,
      leases,
      leaseMs,
      clock: this.#clock,
      events: {
        onClaimed: (shard) => this.#pool.own(shard),
        onReleased: (shard) => {
          this.#pool.disown(shard);
          this.#settled.delete(shard);
          this.#emit({ type: "released", shard });
        },
        onError: (error) => this.#emit({ type: "error", error }),
      },
    });
    this.#keeper = new LeaseKeeper({
      leases,
      key: hostKey(id),
      value,
      leaseMs,
      onLost: (error) => void this.#keepAlive(error),
    });
    const onError = (error: PserverError): void => this.#emit({ type: "error", error });
    const etcd = opening.etcd && hostInEtcd(opening, opening.etcd, job, onError);
    this.#etcd = etcd;
    this.#lifecycle = createLifecycle({
      job: {
        job: options.job,
        shards,
        journal: job.settings.journal,
        leaseMs,
        synchronization: job.settings.synchronization,
        rules: job.settings.rules,
        quotas: quotasOf(job.settings),
      },
      bucket: job.bucket,
      leases,
      owners,
      hostId: id,
      maxPayloadBytes: connection.info?.max_payload ?? 0,
      ...(etcd === undefined ? {} : { onJobChanged: () => etcd.showJob() }),
      onError,
    });
    this.#members = new MembersWatch({
      service: this.#lifecycle,
      statuses: () => this.#pool.statuses,
      leaseMs,
      onError,
    });
    this.#sessions = new SessionsWatch({
      service: this.#lifecycle,
      statuses: () => this.#pool.statuses,
      onError,
    });
  }

  /** Joins the job and claims shards. @throws as `startHost`. */
  static async open(opening: Opening): Promise<RunningHost> {
    const { options, subjects, id, connection, etcd } = opening;
    const client = openJetStream(connection);
    const manager = await client.jetstreamManager(false);
    const { shards, journal, journalBytesMax, leaseMs, replicas } = options;
    const synchronization = options.synchronization && toSynchronization(options.synchronization);
    const { parametersMax, heldBytesMax, trainerParametersMax, trainerHeldBytesMax } = options;
    const quotas = { parametersMax, heldBytesMax, trainerParametersMax, trainerHeldBytesMax };
    const settled = { shards, journal, journalBytesMax, leaseMs, replicas, synchronization };
    const wanted = { ...settled, ...quotas };
    const job = await opening.patience.until(() =>
      openJob({ connection, manager, subjects, etcd, wanted: defined(wanted) }),
    );
    const settings = journalSettings(job.settings);
    const owners = new OwnersClient({
      connection,
      manager,
      subjects,
      host: id,
      journalOf: (shard) => new Journal({ manager, client, subjects, settings, shard }),
    });
    const host = new RunningHost(opening, job, owners);
    try {
      await host.#start(opening, job, owners, settings);
      return host;
    } catch (error) {
      await host.close();
      throw error;
    }
  }

  status(): HostStatus {
    return { id: this.id, shards: this.#pool.statuses };
  }

  /** Settles when every shard that falls to this host is served or has failed; @throws TIMEOUT. */
  async served(timeoutMs: number): Promise<void> {
    const started = performance.now();
    let ended: { reason: PserverError | undefined } | undefined;
    void this.stopped.then((reason) => {
      ended = { reason };
    });
    while (!this.#claims.share.every((shard) => this.#settled.has(shard))) {
      if (ended !== undefined) {
        throw (
          ended.reason ?? new PserverError("CLOSED", `host ${this.id} was closed as it started`)
        );
      }
      if (performance.now() - started > timeoutMs) {
        throw new PserverError(
          "TIMEOUT",
          `host ${this.id}: its shards were not served in ${timeoutMs} ms${this.#troubles()}`,
        );
      }
      await delay(SERVED_POLL_MS);
    }
  }

  close(): Promise<void> {
    return this.#stop(undefined);
  }

  async #start(
    { options, subjects, id, answers, refusals, patience }: Opening,
    job: OpenedJob,
    owners: OwnersClient,
    journal: JournalSettings,
  ): Promise<void> {
    const { shards, leaseMs } = job.settings;
    const workers = Math.min(options.workers ?? Math.max(1, availableParallelism() - 1), shards);
    await this.#pool.start(workers, {
      connection: options.connection,
      answerConnection: options.answerConnection ?? options.connection,
      job: options.job,
      acrossAccounts: options.acrossAccounts ?? false,
      host: id,
      shards,
      leaseMs,
      leases: this.#clock.buffer,
      memory: this.#memory.buffer,
      memoryLimitBytes: options.memoryLimitBytes,
      journal,
      retainBytes: options.retainBytes ?? RETAIN_BYTES[journal.storage],
      snapshotBytes: Math.min(options.snapshotBytes ?? SNAPSHOT_BYTES, journal.bytesMax / 4),
      creditBytes: Math.floor((CREDIT_BYTES * workers) / shards),
    });
    if (!(await patience.until(() => this.#keeper.start()))) {
      throw new PserverError(
        "JOB_EXISTS",
        `a host with the id ${JSON.stringify(id)} is alive in job ${options.job}`,
        {
          received: id,
        },
      );
    }
    await this.#claims.start();
    await this.#lifecycle.start();
    if (job.settings.synchronization.mode !== "async") this.#members.start();
    if (job.settings.rules > 1) this.#sessions.start();
    this.#servers.push(
      ...serveRequests({
        connection: answers,
        refusals,
        subjects,
        lifecycle: this.#lifecycle,
        owners,
        job,
        jobName: options.job,
        host: id,
        modelDirectory: options.modelDirectory,
        onError: (error) => this.#emit({ type: "error", error }),
        onOtherAccount: (trainer) => this.#tellOfOtherAccount(trainer),
      }),
    );
    void this.#watchConnection();
    void this.#watchRefusals(subjects.allStops());
    // A refused subscription is known before the host says that it serves.
    await answers.flush();
    // Whoever finds the host is answered.
    await this.#etcd?.start();
  }

  /** Once: trainers ask again and again, and are told nothing. */
  #tellOfOtherAccount(trainer: string): void {
    if (this.#hasToldOfOtherAccount) return;
    this.#hasToldOfOtherAccount = true;
    const text =
      `trainer ${quoteName(trainer)} asks from another account of the broker and is not answered: ` +
      "start every host with --across-accounts if trainers have an account of their own";
    this.#emit({ type: "error", error: new PserverError("UNSUPPORTED", text, { trainer }) });
  }

  /** A host that hears no requests must not look like one that serves. */
  async #watchRefusals(stops: string): Promise<void> {
    for await (const status of this.#answers.status()) {
      if (status.type !== "error" || !isRefusedSubscription(status.error)) continue;
      const error = fromBrokerError(status.error, `host ${this.id} listening`);
      // Permissions of before: it serves, and a save may go on although its asker has stopped it.
      if (error.message.includes(`"${stops}"`)) this.#emit({ type: "error", error });
      else void this.#stop(error);
    }
  }

  async #watchConnection(): Promise<void> {
    for await (const status of this.#connection.status()) {
      if (status.type === "disconnect") {
        this.#lifecycle.disconnected();
        this.#emit({ type: "disconnected" });
      } else if (status.type === "reconnect") this.#emit({ type: "reconnected" });
    }
  }

  /** Takes the host's own lease again after an outage of the broker, until it is held. */
  async #keepAlive(reason: PserverError): Promise<void> {
    this.#emit({ type: "error", error: reason });
    while (this.#closing === undefined) {
      try {
        if (await this.#keeper.start()) return;
        const text = `another host has joined job ${this.#job} under the id ${JSON.stringify(this.id)}`;
        await this.#stop(new PserverError("NOT_OWNER", text, { received: this.id }));
      } catch (error) {
        this.#emit({ type: "error", error: ensureError(error) });
      }
      await delay(this.settings.leaseMs / 5);
    }
  }

  /** A shard that does not fit is another host's, until it does. */
  #decline(shard: number, error: PserverError): void {
    this.#emit({ type: "no-memory", shard, error });
    const needed = Number(error.details["expected"]);
    this.#claims.decline(shard, () => this.#memory.freeBytes >= needed);
    this.#settle(shard);
  }

  #shardFailed(shard: number, error: PserverError): void {
    this.#emit({ type: "shard-failed", shard, error });
    // One that another host has owned meanwhile is taken over again.
    if (error.code !== "NOT_OWNER") this.#settle(shard);
  }

  /** What keeps shards from being served, for a message. */
  #troubles(): string {
    const texts = this.#pool.statuses.flatMap(({ shard, error }) =>
      error === undefined ? [] : `; shard ${shard}: ${textField(asMap(error, "error"), "message")}`,
    );
    return texts.slice(0, TROUBLES_SHOWN_MAX).join("");
  }

  #settle(shard: number): void {
    this.#settled.add(shard);
  }

  #stop(reason: PserverError | undefined): Promise<void> {
    this.#closing ??= this.#shutDown(reason);
    return this.#closing;
  }

  async #shutDown(reason: PserverError | undefined): Promise<void> {
    // Together: a request under way may wait for a shard that another host is to take over.
    const ended = await Promise.allSettled([
      ...this.#servers.map((server) => server.close()),
      this.#claims.close(),
      this.#lifecycle.close(),
      this.#members.stop(),
      this.#sessions.stop(),
      this.#keeper.stop(),
      this.#etcd?.stop(),
    ]);
    await this.#pool.close();
    this.#etcd?.close();
    await Promise.all([this.#connection.close(), this.#answers.close()]);
    for (const result of ended) {
      // A lease that could not be given up ends by itself.
      if (result.status === "rejected")
        this.#emit({ type: "error", error: ensureError(result.reason) });
    }
    this.#finish(reason);
  }
}

function hostInEtcd(
  { options, connection }: Opening,
  space: EtcdSpace,
  { settings, bucket }: OpenedJob,
  onError: (error: PserverError) => void,
): HostInEtcd {
  const urls = toAdvertised(options.etcd?.advertise ?? options.connection.servers);
  return new HostInEtcd({
    space,
    job: options.job,
    urls,
    leaseMs: settings.leaseMs,
    probe: new BrokerProbe(connection, leaseTimeoutMs(settings.leaseMs)),
    bucket,
    onError,
  });
}
