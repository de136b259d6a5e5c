import { randomUUID } from "node:crypto";
import { availableParallelism, hostname } from "node:os";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { removeLeftTemporaries } from "../../model-files/index.ts";
import {
  ensureError,
  type Fields,
  type GuardInput,
  type JobSubjects,
  PserverError,
  quoteName,
  type SynchronizationInput,
} from "../../protocol/index.ts";
import {
  fromBrokerError,
  isRefusedSubscription,
  orNoJetStream,
} from "../../transport/broker-error.ts";
import { payloadBytesMaxOf } from "../../transport/bulk-transport.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import { InitializationKeys, Publication } from "../job/etcd-publication.ts";
import { type EtcdSettings, type EtcdSpace, toAdvertised } from "../job/etcd-space.ts";
import {
  journalSettings,
  quotasOf,
  type StoredSettings,
  type WantedSettings,
} from "../job/job-settings.ts";
import { BrokerProbe, LeaseClock, LeaseKeeper, type LeaseValue } from "../job/leases.ts";
import { leaseTimeoutMs, type OpenedJob } from "../job/open-job.ts";
import type { OwnersClient } from "../job/owners-client.ts";
import type { ContinuedShard } from "../journal/next-generation.ts";
import type { TakenBack } from "../lifecycle/initialization.ts";
import { createLifecycle, type LifecycleService } from "../lifecycle/service.ts";
import type { RefusalBudget } from "../owner/fair-server.ts";
import type { ShardTrouble } from "../owner/serving-shard.ts";
import type { TakeOverProgress } from "../owner/take-over.ts";
import { ControlService, Saver } from "./control-service.ts";
import { BrokerAsker } from "./gone-hosts.ts";
import { HostMemory } from "./host-memory.ts";
import { HostIdentity, listenForPresence } from "./host-presence.ts";
import { type HostReport, JobReportWatch, shardReport } from "./host-report.ts";
import { type HostRequests, serveRequests } from "./host-requests.ts";
import { type SaveQuotas, saveQuotasOf } from "./save-quotas.ts";
import { hostKey, ShardClaims } from "./shard-claims.ts";
import { TakeOvers } from "./take-overs.ts";
import { JobWatch, LossesWatch, MembersWatch, SessionsWatch } from "./watches.ts";
import { WorkerPool, type WorkerPoolEvents, type WorkerSetup } from "./worker-pool.ts";

/** Options of `startHost`; settings are for a new job, and must agree with those of an existing one. */
export interface HostOptions extends Omit<WantedSettings, "synchronization" | "guard">, SaveQuotas {
  readonly connection: ConnectionSettings;
  /**
   * For the connections that answer trainers; `connection` by default. With a user of its own that
   * may publish to inboxes only, no request can make a host write anywhere else.
   */
  readonly answerConnection?: ConnectionSettings;
  readonly job: string;
  /**
   * Whether trainers are in another account of the broker than the host. Without it requests from
   * another account are not answered, because the host cannot tell where the broker would send the
   * replies. False by default.
   */
  readonly acrossAccounts?: boolean;
  /** Unique among the hosts of the job; by default made of machine, process and a random part. */
  readonly id?: string;
  /** Worker threads; by default one less than the processors, at least one. */
  readonly workers?: number;
  /** How the trainers of the job keep step; not at all by default. */
  readonly synchronization?: SynchronizationInput;
  /** The guard of the parameters of a new job whose configurations name none. */
  readonly guard?: GuardInput;
  /** Bytes of journal that each shard retains for replays; 1 GiB by default, 64 MiB in memory. */
  readonly retainBytes?: number;
  /** Bytes of journal after which a shard is snapshotted; 256 MiB by default. */
  readonly snapshotBytes?: number;
  /** The most memory that the values of its shards may take; what the system has free by default. */
  readonly memoryLimitBytes?: number;
  /** The directory in which `save` may write; without it this host saves nothing. */
  readonly modelDirectory?: string;
  /** Where the job's leases are kept and its hosts are published; without it, leases are in JetStream KV. */
  readonly etcd?: EtcdSettings;
  /** Whether records of trainers are also counted for each trainer by itself. False by default. */
  readonly countsTrainers?: boolean;
  readonly onEvent?: (event: HostEvent) => void;
  /** Called with the host as soon as it can report, before it serves. With it the host also looks at the whole job. */
  readonly onReporting?: (host: ReportingHost) => void;
}

/** A host that can be asked how it is, at any time. */
export interface ReportingHost {
  /** Returns what was last known, at once: nothing is asked of workers or the broker. */
  report(): HostReport;
}

/** Events of a host for its operator. */
export type HostEvent =
  | { readonly type: "serving" | "released"; readonly shard: number }
  | {
      /** `shard-failed` stands for `failed`; {@link ShardTrouble} describes the others. */
      readonly type: "shard-failed" | Exclude<ShardTrouble, "failed">;
      readonly shard: number;
      readonly error: PserverError;
    }
  | ({ readonly type: "shard-recovered" } & ContinuedShard)
  /**
   * A shard whose journal was in memory has lost these parameters: they, or the whole job, are to be initialized
   * again.
   */
  | ({ readonly type: "parameters-lost"; readonly shard: number } & TakenBack)
  /** A shard is still being taken over, and that makes progress; repeated every few seconds. */
  | ({ readonly type: "taking-over" } & TakeOverProgress)
  /** A shard goes on from its last snapshot, because its journal in memory is gone. */
  | ({ readonly type: "fell-back" } & ContinuedShard)
  /** The host ends, and is still storing these shards, whose journals are in memory; repeated every few seconds. */
  | { readonly type: "saving"; readonly shards: readonly number[] }
  /** The host ends without having stored all of a shard whose journal is in memory. */
  | { readonly type: "unsaved"; readonly shard: number; readonly error: PserverError }
  | { readonly type: "disconnected" | "reconnected" | "etcd-back" }
  /** `etcd-lost`: etcd answers no call until `etcd-back`; errors of calls in that time are not reported. */
  | { readonly type: "error" | "etcd-lost"; readonly error: PserverError };

/** A running host. */
export interface Host extends ReportingHost {
  readonly id: string;
  readonly settings: StoredSettings;
  /** Settles when the host has stopped: with the reason, or undefined after `close`. */
  readonly stopped: Promise<PserverError | undefined>;
  /** Stores shards whose journals are in memory, releases all and stops; no acknowledged update is lost. */
  close(): Promise<void>;
  /**
   * Ends the leases of another host of the job, so that its shards are taken over at once. Only for one whose process has
   * ended for sure: whoever merely reaches it no more must wait for its leases. @throws as the store of leases does.
   */
  releaseDead(host: string): Promise<void>;
}

/** Dependencies of {@link RunningHost}. */
export interface HostOpening {
  readonly options: HostOptions;
  readonly subjects: JobSubjects;
  readonly id: string;
  readonly connection: NatsConnection;
  /** Connection on which requests of trainers arrive and are answered. */
  readonly answers: NatsConnection;
  /** Limits the refusals sent through `answers`. */
  readonly refusals: RefusalBudget;
  readonly etcd: EtcdSpace | undefined;
  readonly retries: StartRetries;
}

/** Shortest and longest pause between two attempts. */
const RETRY_MS_MIN = 50;
const RETRY_MS_MAX = 1_000;

/**
 * Repeats the parts of a host's start that the broker cannot do for now, as in a cluster without a leader, until a
 * deadline that all parts share.
 */
export class StartRetries {
  readonly #connection: Pick<NatsConnection, "info">;
  readonly #endsAtMs: number;

  constructor(connection: Pick<NatsConnection, "info">, timeoutMs: number) {
    this.#connection = connection;
    this.#endsAtMs = performance.now() + timeoutMs;
  }

  /**
   * Returns the result of `work`, which is repeated while its error is retryable and there is time.
   * @throws its last error; NO_JETSTREAM at once if the broker has no JetStream.
   */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let retryMs = RETRY_MS_MIN; ; retryMs = Math.min(2 * retryMs, RETRY_MS_MAX)) {
      try {
        return await work();
      } catch (caught) {
        const error = orNoJetStream(fromBrokerError(caught, "starting"), this.#connection);
        if (!error.retryable || performance.now() + retryMs >= this.#endsAtMs) throw error;
        await delay(retryMs);
      }
    }
  }
}

/** Bytes of journal that each shard retains. A journal in memory shares the broker's memory with all others. */
const RETAIN_BYTES = { file: 1024 ** 3, memory: 64 * 1024 ** 2 } as const;
const SNAPSHOT_BYTES = 256 * 1024 ** 2;

/** Journal bytes under way to one worker's connection, shared by its shards. */
const CREDIT_BYTES = 32 * 1024 ** 2;

/** How often a host that ends reports that it is still saving shards. */
const SAVING_REPORT_MS = 3_000;

/** A host that has opened its job: starts and stops its parts, and reacts to their reports. */
export class RunningHost implements Host, WorkerPoolEvents {
  readonly id: string;
  readonly settings: StoredSettings;
  readonly stopped: Promise<PserverError | undefined>;
  readonly #opening: HostOpening;
  readonly #emit: (event: HostEvent) => void;
  /** Names this run of the host, which other runs under the same id do not share. */
  readonly #run: string;
  readonly #identity: HostIdentity;
  readonly #clock: LeaseClock;
  readonly #memory: HostMemory;
  readonly #pool: WorkerPool;
  readonly #claims: ShardClaims;
  readonly #takeOvers: TakeOvers;
  /** Keeps the host's own lease. */
  readonly #keeper: LeaseKeeper;
  /** Publishes the host in etcd, if the job's leases are there. */
  readonly #publication: Publication | undefined;
  readonly #lifecycle: LifecycleService;
  readonly #control: ControlService;
  readonly #members: MembersWatch;
  readonly #presence: JobWatch;
  readonly #whole: JobReportWatch;
  /** Works only for a job with journals in memory. */
  readonly #losses: LossesWatch;
  readonly #sessions: SessionsWatch;
  /** Shards of this host that are served, have failed, or do not fit. */
  readonly #settled: Set<number> = new Set();
  #requests: readonly HostRequests[] = [];
  #finish: (reason: PserverError | undefined) => void = () => undefined;
  #closing: Promise<void> | undefined;
  #hasReportedOtherAccount = false;
  #isJobGone = false;
  #isConnected = true;
  #leasesLost = 0;
  /** Shards that are being saved before the host ends, and when that was reported last. */
  readonly #saving: Set<number> = new Set();
  #savingReportedMs: number | undefined;

  /** Makes the parts of the host. Nothing runs before {@link RunningHost.start}. */
  constructor(opening: HostOpening, job: OpenedJob, owners: OwnersClient) {
    const { options, id, connection, subjects } = opening;
    const { settings, leases } = job;
    const { shards, leaseMs } = settings;
    this.id = id;
    this.settings = settings;
    this.stopped = new Promise((resolve) => {
      this.#finish = resolve;
    });
    this.#opening = opening;
    this.#emit = watchEtcd(opening);
    const onError = (error: PserverError): void => this.#emit({ type: "error", error });
    // `owner` tells this run of the host from an earlier one with the same id.
    this.#run = randomUUID();
    const { modelDirectory } = options;
    // Commands on the same machine find saved models by it.
    const told = modelDirectory === undefined ? {} : { modelDirectory: resolve(modelDirectory) };
    const named = { owner: this.#run, host: id, pid: process.pid, machine: hostname(), ...told };
    this.#identity = new HostIdentity(named);
    const value = (): LeaseValue => this.#identity.value;
    this.#clock = new LeaseClock(shards, leaseMs);
    this.#memory = HostMemory.open({ shards, limitBytes: options.memoryLimitBytes });
    this.#pool = new WorkerPool(this);
    this.#claims = new ShardClaims({
      ...{ job: options.job, shards, host: id, value, leases, leaseMs, clock: this.#clock },
      asker: new BrokerAsker({
        ...{ connection, settings: options.connection, subjects },
        role: {
          name: `pserver ${options.job} host ${id} asks`,
          inboxPrefix: subjects.hostInbox(id),
        },
      }),
      events: {
        onClaimed: (shard) => this.#pool.own(shard),
        onReleased: (shard) => this.#release(shard),
        onLost: () => {
          this.#leasesLost += 1;
        },
        onError,
      },
    });
    const onLost = (error: PserverError): void => void this.#reclaimLease(error);
    this.#keeper = new LeaseKeeper({ leases, key: hostKey(id), value, leaseMs, onLost });
    this.#publication = opening.etcd && hostPublication(opening, opening.etcd, job, onError);
    const service = hostLifecycle(opening, job, owners, this.#publication, onError);
    this.#lifecycle = service;
    const { job: name, modelDirectory: directory } = options;
    const quotas = saveQuotasOf(options);
    const saver = new Saver({ service, owners, directory, quotas, job: name, host: id, onError });
    this.#control = new ControlService(job, service, owners, saver);
    const statuses = (): readonly Fields[] => this.#pool.statuses;
    this.#takeOvers = new TakeOvers({
      ...{ host: id, statuses },
      onProgress: (progress) => this.#emit({ type: "taking-over", ...progress }),
    });
    this.#members = new MembersWatch({ service, statuses, leaseMs, onError });
    this.#sessions = new SessionsWatch({ service, statuses, onError });
    this.#losses = new LossesWatch({
      ...{ service, leaseMs, onError },
      onTakenBack: (shard, taken) => this.#emit({ type: "parameters-lost", shard, ...taken }),
    });
    this.#whole = new JobReportWatch({ job, service, onError });
    this.#presence = new JobWatch({
      ...{ connection, manager: job.manager, subjects, created: job.created, leaseMs },
      onGone: (error) => void this.#jobGone(error),
    });
  }

  /** Claims shards and begins to answer requests. @throws as `startHost`. */
  async start(): Promise<void> {
    const { options, subjects, answers, retries, refusals } = this.#opening;
    const { workers, ...setup } = this.#workerSetup();
    options.onReporting?.(this);
    listenForPresence(answers, subjects, this.#run);
    await this.#pool.start(workers, setup);
    if (!(await retries.run(() => this.#join()))) {
      throw new PserverError(
        "JOB_EXISTS",
        `a host with the id ${JSON.stringify(this.id)} is alive in job ${options.job}`,
        { received: this.id },
      );
    }
    await this.#claims.start();
    this.#takeOvers.start();
    this.#presence.start();
    await this.#lifecycle.start();
    if (this.settings.synchronization.mode !== "async") this.#members.start();
    if (this.settings.journal === "memory") this.#losses.start();
    this.#sessions.start();
    if (options.onReporting !== undefined) this.#whole.start();
    const onOtherAccount = (trainer: string): void => this.#reportOtherAccount(trainer);
    const reception = { connection: answers, refusals, subjects };
    this.#requests = serveRequests(reception, this.#lifecycle, this.#control, onOtherAccount);
    void this.#watchConnection();
    void this.#watchSubscriptions();
    // A refused subscription is reported before the host counts as serving.
    await answers.flush();
    if (options.modelDirectory !== undefined) {
      // What hosts that died have left of their saves. It delays nobody, and stops nothing.
      removeLeftTemporaries(options.modelDirectory, true).catch((thrown: unknown) =>
        this.#emit({ type: "error", error: ensureError(thrown) }),
      );
    }
    // Last, so that trainers which find the host in etcd are answered.
    await retries.run(async () => this.#publication?.start());
  }

  /** Claims the host's own lease; false if another run of a host of this id holds it, and is there. */
  async #join(): Promise<boolean> {
    if (await this.#keeper.start()) return true;
    return (await this.#claims.endEarlierRun()) && (await this.#keeper.start());
  }

  /**
   * Settles when every shard that falls to this host is served or has failed.
   * @throws TIMEOUT when no take-over has made progress for `stallMs`.
   */
  async untilServed(stallMs: number): Promise<void> {
    let ended: { reason: PserverError | undefined } | undefined;
    void this.stopped.then((reason) => {
      ended = { reason };
    });
    await this.#takeOvers.until(() => {
      if (ended !== undefined) {
        const text = `host ${this.id} was closed as it started`;
        throw ended.reason ?? new PserverError("CLOSED", text);
      }
      return this.#claims.share.every((shard) => this.#settled.has(shard));
    }, stallMs);
  }

  report(): HostReport {
    const { job } = this.#opening.options;
    return {
      host: this.id,
      job,
      shards: this.#pool.statuses.map(shardReport),
      share: this.#claims.share,
      counts: this.#pool.counts,
      leasesLost: this.#leasesLost,
      liveTrainers: this.#lifecycle.liveTrainers,
      whole: this.#whole.report,
      silentMs: this.#pool.silentMs,
    };
  }

  close(): Promise<void> {
    return this.stop(undefined);
  }

  releaseDead(host: string): Promise<void> {
    return this.#claims.releaseDead(host);
  }

  /** Stops all parts, once; `reason` becomes the result of {@link RunningHost.stopped}. */
  stop(reason: PserverError | undefined): Promise<void> {
    this.#closing ??= this.#shutDown(reason);
    return this.#closing;
  }

  /** Has all leases name the broker that a worker's connection now leads to. */
  onConnected(worker: number, broker: string): void {
    this.#identity.connected(worker, broker);
    this.#renewNow();
  }

  onServing(shard: number): void {
    this.#emit({ type: "serving", shard });
    this.#settled.add(shard);
    this.#members.serving(shard);
    this.#losses.serving(shard);
  }

  /** Reports the trouble. A shard that does not fit into the memory is left to other hosts until it fits. */
  onTrouble(type: ShardTrouble, shard: number, error: PserverError): void {
    this.#emit({ type: type === "failed" ? "shard-failed" : type, shard, error });
    if (type === "no-memory") {
      const needed = Number(error.details["expected"]);
      this.#claims.decline(shard, () => this.#memory.freeBytes >= needed);
      this.#settled.add(shard);
    }
    // A shard that another host has owned in between is taken over again.
    if (type === "failed" && error.code !== "NOT_OWNER") this.#settled.add(shard);
  }

  onRecovered(recovered: ContinuedShard): void {
    this.#emit({ type: "shard-recovered", ...recovered });
  }

  onFellBack(fallen: ContinuedShard): void {
    this.#emit({ type: "fell-back", ...fallen });
  }

  onCrash(error: PserverError): void {
    void this.stop(error);
  }

  /** Stops owning a shard whose lease another host holds, or is to hold. */
  #release(shard: number): void {
    this.#pool.disown(shard);
    this.#settled.delete(shard);
    this.#emit({ type: "released", shard });
  }

  /** Stops the host: its state of a job that is gone must not get into a new job of the same name. */
  async #jobGone(reason: PserverError): Promise<void> {
    this.#isJobGone = true;
    await this.stop(reason);
  }

  /** Claims the host's own lease again after an outage of the broker, until it is held. */
  async #reclaimLease(reason: PserverError): Promise<void> {
    this.#leasesLost += 1;
    this.#emit({ type: "error", error: reason });
    while (this.#closing === undefined) {
      try {
        if (await this.#keeper.start()) return;
        const text = `another host has joined job ${this.#opening.options.job} under the id ${JSON.stringify(this.id)}`;
        await this.stop(new PserverError("NOT_OWNER", text, { received: this.id }));
      } catch (error) {
        this.#emit({ type: "error", error: ensureError(error) });
      }
      await delay(this.settings.leaseMs / 10);
    }
  }

  /** Renews all leases; without a connection that would only delay the renewal by which the next one begins. */
  #renewNow(): void {
    if (!this.#isConnected) return;
    this.#keeper.renewNow();
    this.#claims.renewNow();
  }

  /** Reports once that requests come from another account: such trainers repeat them and are never answered. */
  #reportOtherAccount(trainer: string): void {
    if (this.#hasReportedOtherAccount) return;
    this.#hasReportedOtherAccount = true;
    const text =
      `trainer ${quoteName(trainer)} sends requests from another account of the broker and is not answered: ` +
      "start every host with --across-accounts if trainers have an account of their own";
    this.#emit({ type: "error", error: new PserverError("UNSUPPORTED", text, { trainer }) });
  }

  /** Stops the host if a subscription is refused: it would seem to serve, but hear no requests. */
  async #watchSubscriptions(): Promise<void> {
    for await (const status of this.#opening.answers.status()) {
      if (status.type !== "error" || !isRefusedSubscription(status.error)) continue;
      const error = fromBrokerError(status.error, `host ${this.id} listening`);
      void this.stop(error);
    }
  }

  async #watchConnection(): Promise<void> {
    for await (const status of this.#opening.connection.status()) {
      if (status.type === "disconnect") {
        this.#lifecycle.disconnected();
        this.#claims.disconnected();
        this.#isConnected = false;
        this.#emit({ type: "disconnected" });
      } else if (status.type === "reconnect") {
        this.#emit({ type: "reconnected" });
        this.#presence.reconnected();
        // Workers whose connections are there again answer nothing before.
        this.#isConnected = true;
        this.#renewNow();
      }
    }
  }

  /**
   * Stores a shard that is about to be released: its journal in memory may go with the broker next. If it cannot be
   * stored, that is reported, and the host ends all the same.
   */
  async #save(shard: number): Promise<void> {
    this.#saving.add(shard);
    const error = await this.#pool.save(shard, () => this.#reportSaving());
    this.#saving.delete(shard);
    if (error !== undefined) this.#emit({ type: "unsaved", shard, error });
  }

  /** Reports which shards are still being saved, at most every few seconds. */
  #reportSaving(): void {
    const nowMs = performance.now();
    this.#savingReportedMs ??= nowMs;
    if (nowMs - this.#savingReportedMs < SAVING_REPORT_MS) return;
    this.#savingReportedMs = nowMs;
    this.#emit({ type: "saving", shards: [...this.#saving] });
  }

  async #shutDown(reason: PserverError | undefined): Promise<void> {
    const { connection, answers, etcd } = this.#opening;
    const savesShards = this.settings.journal === "memory" && !this.#isJobGone;
    this.#takeOvers.stop();
    void this.#losses.stop();
    void this.#presence.stop();
    void this.#whole.stop();
    // At the same time: a request in work may wait for a shard that another host is to take over.
    const ended = await Promise.allSettled([
      ...this.#requests.map((requests) => requests.close()),
      this.#claims.close(savesShards ? (shard) => this.#save(shard) : undefined),
      this.#lifecycle.close(),
      this.#members.stop(),
      this.#sessions.stop(),
      this.#keeper.stop(),
      this.#publication?.stop(),
    ]);
    await this.#pool.close();
    etcd?.client.close();
    await Promise.all([connection.close(), answers.close()]);
    for (const result of ended) {
      // A lease that could not be released ends by itself.
      if (result.status === "fulfilled") continue;
      this.#emit({ type: "error", error: ensureError(result.reason) });
    }
    this.#finish(reason);
  }

  /** Returns the setup of every worker thread, and how many there are. */
  #workerSetup(): Omit<WorkerSetup, "index"> & { readonly workers: number } {
    const { options } = this.#opening;
    const { shards, leaseMs, tape } = this.settings;
    const tapeBytesMax = Math.floor(this.settings.tapeBytesMax / shards);
    const workers = Math.min(options.workers ?? Math.max(1, availableParallelism() - 1), shards);
    const journal = journalSettings(this.settings);
    return {
      workers,
      connection: options.connection,
      answerConnection: options.answerConnection ?? options.connection,
      job: options.job,
      acrossAccounts: options.acrossAccounts ?? false,
      host: this.id,
      run: this.#run,
      ...{ shards, leaseMs, tape, tapeBytesMax, journal },
      leases: this.#clock.buffer,
      memory: this.#memory.buffer,
      memoryLimitBytes: options.memoryLimitBytes,
      countsTrainers: options.countsTrainers ?? false,
      retainBytes: options.retainBytes ?? RETAIN_BYTES[journal.storage],
      snapshotBytes: Math.min(options.snapshotBytes ?? SNAPSHOT_BYTES, journal.bytesMax / 4),
      creditBytes: Math.floor((CREDIT_BYTES * workers) / shards),
    };
  }
}

/**
 * Reports when etcd is lost and when it is back. Returns the function that emits the host's other events, without
 * repeated errors of etcd.
 */
function watchEtcd({ options, etcd }: HostOpening): (event: HostEvent) => void {
  const emit = options.onEvent ?? (() => undefined);
  etcd?.client.watch((error) =>
    emit(error === undefined ? { type: "etcd-back" } : { type: "etcd-lost", error }),
  );
  return (event) => {
    if (event.type !== "error" || event.error.code !== "NO_ETCD") emit(event);
  };
}

function hostLifecycle(
  { options, id, connection }: HostOpening,
  { settings, bucket, created, madeNow, leases }: OpenedJob,
  owners: OwnersClient,
  publication: Publication | undefined,
  onError: (error: PserverError) => void,
): LifecycleService {
  const { shards, journal, leaseMs, synchronization, guard } = settings;
  const kept = { shards, journal, leaseMs, synchronization, ...(guard && { guard }) };
  return createLifecycle({
    job: { job: options.job, made: created, ...kept, quotas: quotasOf(settings) },
    ...{ bucket, madeNow, leases, owners, onError },
    hostId: id,
    maxPayloadBytes: payloadBytesMaxOf(connection),
    ...(publication && { onJobChanged: () => publication.showJob() }),
  });
}

function hostPublication(
  { options, connection }: HostOpening,
  space: EtcdSpace,
  { settings: { leaseMs }, bucket }: OpenedJob,
  onError: (error: PserverError) => void,
): Publication {
  return new Publication({
    ...{ client: space.client, keys: space.keys, job: options.job, leaseMs, onError },
    urls: toAdvertised(options.etcd?.advertise ?? options.connection.servers),
    probe: new BrokerProbe(connection, leaseTimeoutMs(leaseMs)),
    initialization: new InitializationKeys(space, bucket),
  });
}
