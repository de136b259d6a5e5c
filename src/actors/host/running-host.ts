import { availableParallelism } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import {
  asMap,
  CONTROL_VERBS,
  type ControlVerb,
  ensureError,
  isOneOf,
  type JobSubjects,
  LIFECYCLE_VERBS,
  type LifecycleVerb,
  PserverError,
  quoteName,
  textField,
} from "../../protocol/index.ts";
import { fromBrokerError, isRefusedSubscription } from "../../transport/broker-error.ts";
import { journalSettings, type StoredSettings } from "../job/job-settings.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import {
  type Refusals,
  type RequestHandler,
  RequestQueue,
  RequestServer,
} from "../owner/fair-server.ts";

import type { ControlService } from "./control-service.ts";
import type { Host, HostEvent, HostParts } from "./host-options.ts";
import type { ShardEventType, WorkerSetup } from "./worker-pool.ts";

/** Dependencies of {@link serveRequests}. */
interface HostServices {
  /** Where requests arrive and are answered. */
  readonly connection: NatsConnection;
  readonly refusals: Refusals;
  readonly subjects: JobSubjects;
  readonly lifecycle: LifecycleService;
  readonly control: ControlService;
  /** Called for each lifecycle request from another account of the broker; none of them is answered. */
  readonly onOtherAccount: (trainer: string) => void;
}

/** Begins to answer lifecycle and control requests; returns the servers, which the caller closes. */
function serveRequests(services: HostServices): RequestServer[] {
  const { connection, refusals, subjects, lifecycle, control, onOtherAccount } = services;
  const common = { connection, refusals, subjects };
  const handle: RequestHandler = (id, verb, message, tell) =>
    control.handle(id, verb, message, tell);
  const servers = [
    new RequestServer({
      ...common,
      subject: subjects.allLifecycle(),
      queues: lifecycleQueues(),
      onOtherAccount,
      handle: async (trainer, verb, message) => {
        if (isOneOf(LIFECYCLE_VERBS, verb)) return await lifecycle.handle(trainer, verb, message);
        throw new PserverError("BAD_MESSAGE", `lifecycle: no such verb: ${verb}`, {
          expected: LIFECYCLE_VERBS,
        });
      },
    }),
    new RequestServer({
      ...common,
      subject: subjects.allControl(),
      queues: controlQueues(),
      handle,
    }),
    new RequestServer({
      ...common,
      subject: subjects.allStops(),
      isForAll: true,
      queues: [new RequestQueue({ verbs: ["stop"], atOnce: 16, atOnceEach: 2 })],
      handle,
    }),
  ];
  for (const server of servers) server.listen();
  return servers;
}

/** Requests that keep sessions alive are served first, those that only read last. */
function lifecycleQueues(): RequestQueue[] {
  const sessions: readonly LifecycleVerb[] = ["join", "renew", "leave", "enter", "exit"];
  const reading: readonly LifecycleVerb[] = ["status"];
  const writing = LIFECYCLE_VERBS.filter((verb) => ![...sessions, ...reading].includes(verb));
  return [
    new RequestQueue({ verbs: sessions, atOnce: 64, atOnceEach: 8 }),
    new RequestQueue({ verbs: writing, atOnce: 32, atOnceEach: 8 }),
    new RequestQueue({ verbs: reading, atOnce: 16, atOnceEach: 4 }),
  ];
}

/**
 * Control requests take long and cost much, so few may wait and saves run one at a time. Requests that
 * only read do not wait for snapshots.
 */
function controlQueues(): RequestQueue[] {
  const saving: readonly ControlVerb[] = ["save"];
  const reading: readonly ControlVerb[] = ["hosts", "versions"];
  const others = CONTROL_VERBS.filter((verb) => ![...saving, ...reading].includes(verb));
  const bounds = { atOnce: 16, atOnceEach: 2, requestBytes: 1024 * 1024 };
  return [
    new RequestQueue({ verbs: reading, ...bounds }),
    new RequestQueue({ verbs: others, ...bounds }),
    new RequestQueue({
      verbs: saving,
      atOnce: 1,
      atOnceEach: 1,
      requestBytes: 4 * 1024 * 1024 - 64 * 1024,
      retryAfterMs: 2_000,
    }),
  ];
}

/** Journal retained for each shard; one in memory shares the broker's memory with all others. */
const RETAIN_BYTES = { file: 1024 ** 3, memory: 64 * 1024 ** 2 } as const;
const SNAPSHOT_BYTES = 256 * 1024 ** 2;

/** Journal bytes under way to one worker's connection, shared by its shards. */
const CREDIT_BYTES = 32 * 1024 ** 2;

/** How often a starting host checks whether its shards are served. */
const SERVED_POLL_MS = 20;

/** How often a host that ends tells that it is still saving shards. */
const SAVING_TOLD_MS = 3_000;

/** Shards whose errors are shown when a host cannot start. */
const ERRORS_SHOWN_MAX = 3;

/** A host that has opened its job: starts and stops its parts, and reacts to what they report. */
export class RunningHost implements Host {
  readonly id: string;
  readonly settings: StoredSettings;
  readonly stopped: Promise<PserverError | undefined>;
  readonly #parts: HostParts;
  readonly #emit: (event: HostEvent) => void;
  /** Shards of this host that are served, have failed, or do not fit. */
  readonly #settled: Set<number> = new Set();
  #servers: readonly RequestServer[] = [];
  #finish: (reason: PserverError | undefined) => void = () => undefined;
  #closing: Promise<void> | undefined;
  #hasReportedOtherAccount = false;
  #isJobGone = false;
  /** Shards that are being saved before the end, and when that was told last. */
  readonly #saving: Set<number> = new Set();
  #savingToldMs: number | undefined;

  constructor(parts: HostParts) {
    this.id = parts.opening.id;
    this.settings = parts.job.settings;
    this.stopped = new Promise((resolve) => {
      this.#finish = resolve;
    });
    this.#parts = parts;
    this.#emit = parts.emit;
  }

  /** Claims shards and begins to answer requests. @throws as `startHost`. */
  async start(): Promise<void> {
    const { opening, pool, keeper, claims, lifecycle, members, sessions, publication } =
      this.#parts;
    const { losses, presence } = this.#parts;
    const { options, subjects, answers, retries } = opening;
    const setup = workerSetup(this.#parts);
    await pool.start(setup.workers, setup);
    if (!(await retries.run(() => keeper.start()))) {
      throw new PserverError(
        "JOB_EXISTS",
        `a host with the id ${JSON.stringify(this.id)} is alive in job ${options.job}`,
        { received: this.id },
      );
    }
    await claims.start();
    presence.start();
    await lifecycle.start();
    if (this.settings.synchronization.mode !== "async") members.start();
    if (this.settings.journal === "memory") losses.start();
    if (this.settings.rules > 1) sessions.start();
    const onOtherAccount = (trainer: string): void => this.#reportOtherAccount(trainer);
    this.#servers = serveRequests({
      ...{ connection: answers, refusals: opening.refusals, subjects },
      ...{ lifecycle, control: this.#parts.control, onOtherAccount },
    });
    void this.#watchConnection();
    void this.#watchSubscriptions(subjects.allStops());
    // A refused subscription is reported before the host counts as serving.
    await answers.flush();
    // Last, so that trainers which find the host in etcd are answered.
    await publication?.start();
  }

  /** Settles when every shard that falls to this host is served or has failed; @throws TIMEOUT. */
  async served(timeoutMs: number): Promise<void> {
    const started = performance.now();
    let ended: { reason: PserverError | undefined } | undefined;
    void this.stopped.then((reason) => {
      ended = { reason };
    });
    while (!this.#parts.claims.share.every((shard) => this.#settled.has(shard))) {
      if (ended !== undefined) {
        const text = `host ${this.id} was closed as it started`;
        throw ended.reason ?? new PserverError("CLOSED", text);
      }
      if (performance.now() - started > timeoutMs) {
        const text = `host ${this.id}: its shards were not served in ${timeoutMs} ms${this.#shardErrors()}`;
        throw new PserverError("TIMEOUT", text);
      }
      await delay(SERVED_POLL_MS);
    }
  }

  close(): Promise<void> {
    return this.stop(undefined);
  }

  /** Stops all parts, once; `reason` becomes the result of {@link RunningHost.stopped}. */
  stop(reason: PserverError | undefined): Promise<void> {
    this.#closing ??= this.#shutDown(reason);
    return this.#closing;
  }

  /** Reacts to a shard that is served from now on. */
  shardServing(shard: number): void {
    this.#emit({ type: "serving", shard });
    this.#settled.add(shard);
    this.#parts.members.serving(shard);
    this.#parts.losses.serving(shard);
  }

  /** Reports a trouble of a shard. One that does not fit into the memory is left to other hosts until it fits. */
  shardTroubled(type: ShardEventType, shard: number, error: PserverError): void {
    this.#emit({ type: type === "failed" ? "shard-failed" : type, shard, error });
    if (type === "no-memory") {
      const needed = Number(error.details["expected"]);
      const { claims, memory } = this.#parts;
      claims.decline(shard, () => memory.freeBytes >= needed);
      this.#settled.add(shard);
    }
    // A shard that another host has owned meanwhile is taken over again.
    if (type === "failed" && error.code !== "NOT_OWNER") this.#settled.add(shard);
  }

  /** Stops owning a shard whose lease another host holds, or is to hold. */
  releaseShard(shard: number): void {
    this.#parts.pool.disown(shard);
    this.#settled.delete(shard);
    this.#emit({ type: "released", shard });
  }

  /** Stops the host: what it has of a job that is gone must not get into one that is made anew. */
  async jobGone(reason: PserverError): Promise<void> {
    this.#isJobGone = true;
    await this.stop(reason);
  }

  /** Claims the host's own lease again after an outage of the broker, until it is held. */
  async reclaimLease(reason: PserverError): Promise<void> {
    const { keeper, opening } = this.#parts;
    this.#emit({ type: "error", error: reason });
    while (this.#closing === undefined) {
      try {
        if (await keeper.start()) return;
        const text = `another host has joined job ${opening.options.job} under the id ${JSON.stringify(this.id)}`;
        await this.stop(new PserverError("NOT_OWNER", text, { received: this.id }));
      } catch (error) {
        this.#emit({ type: "error", error: ensureError(error) });
      }
      await delay(this.settings.leaseMs / 5);
    }
  }

  /** Once: such trainers repeat their requests and are never answered. */
  #reportOtherAccount(trainer: string): void {
    if (this.#hasReportedOtherAccount) return;
    this.#hasReportedOtherAccount = true;
    const text =
      `trainer ${quoteName(trainer)} sends requests from another account of the broker and is not answered: ` +
      "start every host with --across-accounts if trainers have an account of their own";
    this.#emit({ type: "error", error: new PserverError("UNSUPPORTED", text, { trainer }) });
  }

  /** Stops the host if a subscription is refused: it would seem to serve, but hear no requests. */
  async #watchSubscriptions(stops: string): Promise<void> {
    for await (const status of this.#parts.opening.answers.status()) {
      if (status.type !== "error" || !isRefusedSubscription(status.error)) continue;
      const error = fromBrokerError(status.error, `host ${this.id} listening`);
      // Permissions of earlier versions lack this subject. The host serves, but cannot be told to stop a save.
      if (error.message.includes(`"${stops}"`)) this.#emit({ type: "error", error });
      else void this.stop(error);
    }
  }

  async #watchConnection(): Promise<void> {
    for await (const status of this.#parts.opening.connection.status()) {
      if (status.type === "disconnect") {
        this.#parts.lifecycle.disconnected();
        this.#emit({ type: "disconnected" });
      } else if (status.type === "reconnect") {
        this.#emit({ type: "reconnected" });
        this.#parts.presence.reconnected();
      }
    }
  }

  /** Errors of shards that are not served, for a message. */
  #shardErrors(): string {
    const texts = this.#parts.pool.statuses.flatMap(({ shard, error }) =>
      error === undefined ? [] : `; shard ${shard}: ${textField(asMap(error, "error"), "message")}`,
    );
    return texts.slice(0, ERRORS_SHOWN_MAX).join("");
  }

  /**
   * Stores a shard that is about to be released: its journal in memory may go with the broker next. What cannot
   * be stored is reported, and does not keep the host from ending.
   */
  async #save(shard: number): Promise<void> {
    this.#saving.add(shard);
    const error = await this.#parts.pool.save(shard, () => this.#tellSaving());
    this.#saving.delete(shard);
    if (error !== undefined) this.#emit({ type: "unsaved", shard, error });
  }

  /** Tells which shards are still being saved, now and then. */
  #tellSaving(): void {
    const nowMs = performance.now();
    this.#savingToldMs ??= nowMs;
    if (nowMs - this.#savingToldMs < SAVING_TOLD_MS) return;
    this.#savingToldMs = nowMs;
    this.#emit({ type: "saving", shards: [...this.#saving] });
  }

  async #shutDown(reason: PserverError | undefined): Promise<void> {
    const { opening, pool, claims, keeper, lifecycle, members, sessions, publication } =
      this.#parts;
    const savesShards = this.settings.journal === "memory" && !this.#isJobGone;
    this.#parts.losses.stop();
    this.#parts.presence.stop();
    // At the same time: a request in work may wait for a shard that another host is to take over.
    const ended = await Promise.allSettled([
      ...this.#servers.map((server) => server.close()),
      claims.close(savesShards ? (shard) => this.#save(shard) : undefined),
      lifecycle.close(),
      members.stop(),
      sessions.stop(),
      keeper.stop(),
      publication?.stop(),
    ]);
    await pool.close();
    opening.etcd?.client.close();
    await Promise.all([opening.connection.close(), opening.answers.close()]);
    for (const result of ended) {
      // A lease that could not be released ends by itself.
      if (result.status === "fulfilled") continue;
      this.#emit({ type: "error", error: ensureError(result.reason) });
    }
    this.#finish(reason);
  }
}

/** What every worker thread is started with, and how many there are. */
function workerSetup({
  opening: { options, id },
  job: { settings },
  clock,
  memory,
}: HostParts): Omit<WorkerSetup, "index"> & { readonly workers: number } {
  const { shards, leaseMs } = settings;
  const workers = Math.min(options.workers ?? Math.max(1, availableParallelism() - 1), shards);
  const journal = journalSettings(settings);
  return {
    workers,
    connection: options.connection,
    answerConnection: options.answerConnection ?? options.connection,
    job: options.job,
    acrossAccounts: options.acrossAccounts ?? false,
    host: id,
    shards,
    leaseMs,
    leases: clock.buffer,
    memory: memory.buffer,
    memoryLimitBytes: options.memoryLimitBytes,
    journal,
    retainBytes: options.retainBytes ?? RETAIN_BYTES[journal.storage],
    tape: settings.tape,
    snapshotBytes: Math.min(options.snapshotBytes ?? SNAPSHOT_BYTES, journal.bytesMax / 4),
    creditBytes: Math.floor((CREDIT_BYTES * workers) / shards),
  };
}
