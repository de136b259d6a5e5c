import { setTimeout as delay } from "node:timers/promises";
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { HEADER_BYTES_MAX, JobSubjects, type PserverError } from "../../protocol/index.ts";
import { fromBrokerError, isRefusedSubscription } from "../../transport/broker-error.ts";
import { BufferPool } from "../../transport/buffer-pool.ts";
import { openConnection } from "../../transport/connection.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import { StreamPublisher } from "../../transport/stream-publisher.ts";
import { type KvBucket, openBucket } from "../jetstream/kv-bucket.ts";
import { Credit } from "../journal/credit.ts";
import { Journal } from "../journal/journal.ts";
import { LeaseClock } from "../leases/lease-clock.ts";
import { HostMemory } from "../memory/host-memory.ts";
import { FailedBlocks } from "../owner/failed-blocks.ts";
import { Intake } from "../owner/intake.ts";
import { MarkKeeper } from "../owner/mark-keeper.ts";
import { Pace } from "../owner/pace.ts";
import { Responder } from "../owner/responder.ts";
import { ShardOwner } from "../owner/shard-owner.ts";
import { Refusals } from "../requests/refusals.ts";
import { SnapshotBudget } from "../snapshot/snapshot-budget.ts";
import { SnapshotStore } from "../snapshot/store.ts";
import type { FromWorker, ShardEventType, WorkerSetup } from "./worker-messages.ts";

/** How long one request of a worker to the broker may take. */
const BROKER_TIMEOUT_MS = 5_000;

/** How often an owner that was deposed looks whether the lease is held again. */
const RETAKE_MS = 200;

/** How often the main thread learns how the shards stand. */
const STATUS_MS = 500;

/** How often in a lease time the owners note how far they have folded; as often as leases are renewed. */
const MARKS_PER_LEASE = 3;

/** How long a worker that closes waits for the last marks. */
const LAST_MARK_MS = 2_000;

/**
 * The shards of one worker thread and the two connections they share: one reads journals and
 * writes snapshots, the other answers. Kept apart, a request never waits behind bulk, and the one
 * that answers needs no permission to write anything but inboxes.
 */
export class ShardWorker {
  readonly #setup: WorkerSetup;
  readonly #send: (message: FromWorker) => void;
  readonly #subjects: JobSubjects;
  readonly #leases: LeaseClock;
  readonly #memory: HostMemory;
  readonly #owners: Map<number, ShardOwner> = new Map();
  readonly #journalConnection: NatsConnection;
  readonly #dataConnection: NatsConnection;
  readonly #client: JetStreamClient;
  readonly #manager: JetStreamManager;
  readonly #intake: Intake;
  readonly #responder: Responder;
  readonly #publisher: StreamPublisher;
  readonly #snapshotBudget: SnapshotBudget;
  readonly #pace = new Pace();
  readonly #statusTimer: NodeJS.Timeout;
  readonly #markTimer: NodeJS.Timeout;
  readonly #bucket: KvBucket;
  readonly #failedBlocks: FailedBlocks;
  /** Owners that are closed and still note how far they have folded. */
  readonly #closing: Set<Promise<void>> = new Set();

  private constructor(
    setup: WorkerSetup,
    send: (message: FromWorker) => void,
    journalConnection: NatsConnection,
    dataConnection: NatsConnection,
    manager: JetStreamManager,
    bucket: KvBucket,
    pool: BufferPool,
    refusals: Refusals,
  ) {
    this.#intake = new Intake(refusals);
    this.#setup = setup;
    this.#send = send;
    this.#subjects = new JobSubjects(setup.job, setup.acrossAccounts);
    this.#leases = new LeaseClock(setup.shards, setup.leases);
    const { shards, memory: buffer, memoryLimitBytes: limitBytes } = setup;
    this.#memory = new HostMemory({ shards, buffer, limitBytes });
    this.#journalConnection = journalConnection;
    this.#dataConnection = dataConnection;
    this.#client = openJetStream(journalConnection, BROKER_TIMEOUT_MS);
    this.#manager = manager;
    this.#responder = new Responder(dataConnection, pool);
    this.#snapshotBudget = new SnapshotBudget(pool);
    this.#publisher = new StreamPublisher(journalConnection, this.#subjects.hostInbox(setup.host));
    this.#bucket = bucket;
    this.#failedBlocks = new FailedBlocks(dataConnection, this.#subjects, setup.shards);
    this.#statusTimer = setInterval(() => this.#sendStatuses(), STATUS_MS);
    this.#markTimer = setInterval(() => this.#mark(), setup.leaseMs / MARKS_PER_LEASE);
  }

  /** Connects; @throws NO_BROKER, DENIED or NO_JETSTREAM. */
  static async open(setup: WorkerSetup, send: (message: FromWorker) => void): Promise<ShardWorker> {
    const subjects = new JobSubjects(setup.job);
    const inboxPrefix = subjects.hostInbox(setup.host);
    // One for all: a worker that folds, answers or snapshots much needs the same memory.
    const pool = new BufferPool();
    const name = `pserver ${setup.job} host ${setup.host} worker ${setup.index}`;
    const journal = await openConnection(setup.connection, {
      name: `${name} journal`,
      inboxPrefix,
      // A record is folded as it comes; one that has to wait is copied.
      lending: { prefix: subjects.logPrefix(), pool },
    });
    const refusals = new Refusals();
    const data = await openConnection(setup.answerConnection, {
      name: `${name} data`,
      inboxPrefix,
      drops: refusals.isUnheard,
    });
    const manager = await openJetStream(journal, BROKER_TIMEOUT_MS).jetstreamManager(false);
    const bucket = await openBucket({
      connection: journal,
      bucket: subjects.bucket(),
      storage: "file",
    });
    const worker = new ShardWorker(setup, send, journal, data, manager, bucket, pool, refusals);
    void worker.#watchReconnects();
    void worker.#watchRefusals();
    return worker;
  }

  /** Takes a shard over; its lease must be held. */
  own(shard: number): void {
    // Whoever still holds the shard goes on: its lease had run out, but nobody has taken it.
    const owner = this.#owners.get(shard);
    if (owner === undefined) this.#takeOver(shard);
    else if (owner.isServing) this.#tellServing(shard);
  }

  #takeOver(shard: number): void {
    const {
      journal: settings,
      host,
      leaseMs,
      retainBytes,
      snapshotBytes,
      creditBytes,
    } = this.#setup;
    const [manager, client, subjects] = [this.#manager, this.#client, this.#subjects];
    const payloadBytesMax = this.#journalConnection.info?.max_payload ?? 0;
    const owner = new ShardOwner({
      shard,
      host,
      subjects,
      journal: new Journal({ manager, client, subjects, settings, shard }),
      journalStorage: settings.storage,
      store: new SnapshotStore({ manager, client, publisher: this.#publisher, subjects, shard }),
      marks: new MarkKeeper(this.#bucket, shard),
      journalConnection: this.#journalConnection,
      manager,
      inboxPrefix: subjects.hostInbox(host),
      dataConnection: this.#dataConnection,
      intake: this.#intake,
      responder: this.#responder,
      failedBlocks: this.#failedBlocks,
      credit: new Credit(creditBytes, payloadBytesMax),
      pace: this.#pace,
      snapshotBytes,
      retainBytes,
      partBytesMax: payloadBytesMax - HEADER_BYTES_MAX,
      snapshotBudget: this.#snapshotBudget,
      leaseMs,
      mayAnswer: () => this.#leases.held(shard),
      memory: this.#memory,
      onServing: () => this.#tellServing(shard),
      onNoMemory: (error) => this.#tell("no-memory", shard, error),
      onSnapshotFailed: (error) => this.#tell("snapshot-failed", shard, error),
      onMarkFailed: (error) => this.#tell("mark-failed", shard, error),
      onLossReported: (error) => this.#tell("loss-reported", shard, error),
      onFailure: (error) => {
        this.#tell("failed", shard, error);
        if (error.code === "NOT_OWNER") this.#retake(shard, owner);
      },
      onRecovered: ({ generation, fallbacks }) => {
        this.#send({ type: "recovered", shard, generation, fallbacks });
        this.#retake(shard, owner);
      },
    });
    this.#closeOwner(shard);
    this.#owners.set(shard, owner);
    void owner.start();
  }

  /** Stops owning a shard, at once. */
  disown(shard: number): void {
    this.#closeOwner(shard);
    this.#send({ type: "disowned", shard });
  }

  /** Stops owning all shards and closes the connections. */
  async close(): Promise<void> {
    clearInterval(this.#statusTimer);
    clearInterval(this.#markTimer);
    for (const shard of this.#owners.keys()) this.#closeOwner(shard);
    // Without an answer of the broker the marks stay as they are; closing ends the requests.
    await Promise.race([
      Promise.all(this.#closing),
      delay(LAST_MARK_MS, undefined, { ref: false }),
    ]);
    await Promise.all([this.#journalConnection.close(), this.#dataConnection.close()]);
  }

  #closeOwner(shard: number): void {
    const owner = this.#owners.get(shard);
    if (owner === undefined) return;
    this.#owners.delete(shard);
    const closed = owner.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }

  #mark(): void {
    for (const owner of this.#owners.values()) void owner.mark();
  }

  async #watchReconnects(): Promise<void> {
    for await (const status of this.#journalConnection.status()) {
      if (status.type !== "reconnect") continue;
      for (const owner of this.#owners.values()) void owner.reconnected();
    }
  }

  /** Ends the thread, and so the host, by not being caught: blocks that nobody hears serve nobody. */
  async #watchRefusals(): Promise<void> {
    for await (const status of this.#dataConnection.status()) {
      if (status.type === "error" && isRefusedSubscription(status.error)) {
        throw fromBrokerError(status.error, `host ${this.#setup.host} listening`);
      }
    }
  }

  /** Another host has owned the shard meanwhile: it is taken over anew if its lease is ours again. */
  #retake(shard: number, deposed: ShardOwner): void {
    setTimeout(() => {
      if (this.#owners.get(shard) !== deposed) return;
      if (this.#leases.held(shard)) this.#takeOver(shard);
      else this.#retake(shard, deposed);
    }, RETAKE_MS);
  }

  #tellServing(shard: number): void {
    // First, so that whoever hears of it knows how the shard stands.
    this.#sendStatuses();
    this.#send({ type: "serving", shard });
  }

  #tell(type: ShardEventType, shard: number, error: PserverError): void {
    this.#send({ type, shard, error: error.toWire() });
  }

  #sendStatuses(): void {
    this.#send({
      type: "statuses",
      statuses: [...this.#owners.values()].map((owner) => owner.status()),
    });
  }
}
