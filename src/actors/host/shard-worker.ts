import { setTimeout as delay } from "node:timers/promises";
import type { JetStreamClient } from "@nats-io/jetstream";
import { bucketStream, JobSubjects } from "../../protocol/index.ts";
import { fromBrokerError, isRefusedSubscription } from "../../transport/broker-error.ts";
import { BufferPool } from "../../transport/buffers.ts";
import { dataBytesMaxOf, payloadBytesMaxOf } from "../../transport/bulk-transport.ts";
import { openConnection } from "../../transport/connection.ts";
import { openJetStream, StreamPublisher } from "../../transport/jetstream.ts";
import { LeaseClock } from "../job/leases.ts";
import { olderSnapshotBytes, openEntries } from "../job/storage-plan.ts";
import { ArchiverWatch } from "../journal/archivers.ts";
import { Journal } from "../journal/journal.ts";
import { Credit } from "../journal/journal-reader.ts";
import type { KvBucket } from "../journal/kv-bucket.ts";
import { SnapshotStore } from "../journal/snapshot-store.ts";
import { SnapshotBudget } from "../journal/snapshots/snapshot-budget.ts";
import { TapeStore } from "../journal/tape/tape-store.ts";
import { WatermarkKeeper } from "../journal/watermark-keeper.ts";
import { ParameterPlaces } from "../lifecycle/parameter.ts";
import { FairServer, RefusalBudget } from "../owner/fair-server.ts";
import { Coalescer } from "../owner/fold-loop.ts";
import { OwnerCounters } from "../owner/owner-counters.ts";
import { Responder } from "../owner/responder.ts";
import type { WorkerContext } from "../owner/serving-shard.ts";
import { ShardOwner } from "../owner/shard-owner.ts";
import { FailedBlocks } from "../owner/subscriptions.ts";
import { HostMemory } from "./host-memory.ts";
import { AnsweringConnection, type ConnectedReceipt, listenForPresence } from "./host-presence.ts";
import type { WorkerEvent, WorkerSetup } from "./worker-pool.ts";

/** How long one request of a worker to the broker may take. */
const BROKER_TIMEOUT_MS = 5_000;

/** How often a deposed owner checks whether the lease is held again. */
const RETAKE_MS = 200;

/** How often the main thread gets the statuses of the shards. */
const STATUS_MS = 500;

/** How many times in a lease time the owners write their watermarks: as often as leases are renewed. */
const WATERMARKS_PER_LEASE = 3;

/** How long a closing worker waits for the last watermarks. */
const LAST_MARK_MS = 2_000;

/** Parts of one worker thread besides those that its shards share. */
interface WorkerParts {
  readonly setup: WorkerSetup;
  readonly send: (message: WorkerEvent) => void;
  readonly leases: LeaseClock;
  readonly answering: AnsweringConnection;
  readonly client: JetStreamClient;
  readonly bucket: KvBucket;
  readonly publisher: StreamPublisher;
  readonly context: WorkerContext;
}

/** Connects the shards of one worker thread; @throws NO_BROKER, DENIED or NO_JETSTREAM. */
export async function openShardWorker(
  setup: WorkerSetup,
  send: (message: WorkerEvent) => void,
): Promise<ShardWorker> {
  const subjects = new JobSubjects(setup.job, setup.acrossAccounts);
  const inboxPrefix = subjects.hostInbox(setup.host);
  // One pool for all: a worker needs the same memory for folding, answering and snapshots.
  const pool = new BufferPool();
  const name = `pserver ${setup.job} host ${setup.host} worker ${setup.index}`;
  const journalConnection = await openConnection(setup.connection, {
    name: `${name} journal`,
    inboxPrefix,
    // A record is folded as it arrives; one that has to wait is copied.
    lending: { prefix: subjects.logPrefix(), pool },
  });
  const refusals = new RefusalBudget();
  const dataConnection = await openConnection(setup.answerConnection, {
    name: `${name} data`,
    inboxPrefix,
    drops: refusals.isDropped,
  });
  listenForPresence(dataConnection, subjects, setup.run);
  const client = openJetStream(journalConnection, BROKER_TIMEOUT_MS);
  const manager = await client.jetstreamManager(false);
  const bucket = await openEntries(journalConnection, subjects);
  const { shards, host, journal, leaseMs, retainBytes, snapshotBytes } = setup;
  const { memory: buffer, memoryLimitBytes: limitBytes } = setup;
  const snapshotBudget = new SnapshotBudget(pool);
  const worker = new ShardWorker({
    ...{ setup, send, client, bucket },
    leases: new LeaseClock(shards, leaseMs, setup.leases),
    answering: new AnsweringConnection(dataConnection, (notice) =>
      send({ type: "connected", ...notice }),
    ),
    publisher: StreamPublisher.open(journalConnection, inboxPrefix),
    context: {
      ...{ host, subjects, inboxPrefix, journalConnection, dataConnection, manager },
      settings: {
        ...{ leaseMs, retainBytes, snapshotBytes, journalStorage: journal.storage },
        olderBytesMax: olderSnapshotBytes(journal.bytesMax),
        partBytesMax: dataBytesMaxOf(journalConnection),
      },
      memory: HostMemory.open({ shards, buffer, limitBytes }),
      archivers: new ArchiverWatch({
        ...{ bucket, nowMs: () => performance.now() },
        onStopped: (shard, error) =>
          send({ type: "archiver-stopped", shard, error: error.toWire() }),
      }),
      server: new FairServer(refusals, [{}], () => snapshotBudget.worked()),
      responder: new Responder(dataConnection, pool),
      snapshotBudget,
      failedBlocks: new FailedBlocks(dataConnection, subjects, new ParameterPlaces(bucket)),
      coalescer: new Coalescer(),
      counters: new OwnerCounters(setup.countsTrainers),
    },
  });
  worker.start();
  return worker;
}

/**
 * The shards of one worker thread and the two connections they share: one reads journals and
 * writes snapshots, the other answers. Kept apart, a request never waits behind bulk data, and the one
 * that answers needs no permission to write anything but inboxes.
 */
export class ShardWorker {
  readonly #parts: WorkerParts;
  readonly #owners: Map<number, ShardOwner> = new Map();
  /** Owners that are closed and still write their last watermark. */
  readonly #closing: Set<Promise<void>> = new Set();
  /** Shards that are being saved, with the functions to call on progress. */
  readonly #saving: Map<number, () => void> = new Map();
  /** How far the saving of all these shards had come when progress was last reported. */
  #savedUpTo = "";
  /** Keepers of watermarks, also of shards that are not owned any more: they know how far this host has folded. */
  readonly #watermarks: Map<number, WatermarkKeeper> = new Map();
  /** Snapshot stores of the owned shards. */
  readonly #stores: Map<number, SnapshotStore> = new Map();
  #statusTimer: NodeJS.Timeout | undefined;
  #watermarkTimer: NodeJS.Timeout | undefined;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
  }

  /** Begins to report statuses, write watermarks and watch the connections. */
  start(): void {
    const watermarkMs = this.#parts.setup.leaseMs / WATERMARKS_PER_LEASE;
    this.#statusTimer = setInterval(() => this.#sendStatuses(), STATUS_MS);
    this.#watermarkTimer = setInterval(() => this.#writeWatermarks(), watermarkMs);
    void this.#parts.answering.watch();
    void this.#watchReconnects();
    void this.#watchSubscriptions();
  }

  /** Takes note of which leases name the broker that the connection which answers now leads to. */
  named(receipt: ConnectedReceipt): void {
    this.#parts.answering.named(receipt);
  }

  /** Takes a shard over; its lease was claimed. */
  own(shard: number): void {
    const owner = this.#owners.get(shard);
    // An owner that has failed stays: the loss that it has found may show nowhere else.
    if (owner === undefined) this.#takeOver(shard);
    else void owner.resume();
  }

  #takeOver(shard: number): void {
    const { setup, client, leases, answering, publisher, bucket, context } = this.#parts;
    const { manager, subjects, journalConnection } = context;
    const watermarks = this.#watermarks.get(shard) ?? new WatermarkKeeper(bucket, shard);
    this.#watermarks.set(shard, watermarks);
    const store = new SnapshotStore({ manager, client, publisher, subjects, shard });
    const owner = new ShardOwner({
      worker: context,
      shard,
      journal: new Journal({ manager, client, subjects, settings: setup.journal, shard }),
      store,
      tape: setup.tape ? new TapeStore({ manager, client, subjects, shard }) : undefined,
      tapeBytesMax: setup.tapeBytesMax,
      watermarks,
      credit: new Credit(setup.creditBytes, payloadBytesMaxOf(journalConnection)),
      tenure: () => leases.tenure(shard),
      isLeaseRenewed: () => leases.isRenewedSince(shard, answering.namedSinceNs),
      listener: {
        serving: () => this.#tellServing(shard),
        trouble: (type, error) => {
          this.#parts.send({ type, shard, error: error.toWire() });
          if (type === "failed" && error.code === "NOT_OWNER") this.#retake(shard, owner);
        },
        fellBack: ({ generation, fallbacks }) =>
          this.#parts.send({
            type: "fell-back",
            continued: { shard, generation, fallbacks: fallbacks.slice(-1) },
          }),
        recovered: ({ generation, fallbacks }) => {
          this.#parts.send({ type: "recovered", continued: { shard, generation, fallbacks } });
          this.#retake(shard, owner);
        },
      },
    });
    this.disown(shard);
    this.#owners.set(shard, owner);
    this.#stores.set(shard, store);
    void owner.start();
  }

  /** Stores all of a shard, as {@link ShardOwner.save} does, and calls `onProgress` while there is progress. */
  async save(shard: number, onProgress: () => void): Promise<void> {
    this.#saving.set(shard, onProgress);
    try {
      await this.#owners.get(shard)?.save();
    } finally {
      this.#saving.delete(shard);
    }
  }

  /** Stops owning all shards and closes the connections. */
  async close(): Promise<void> {
    clearInterval(this.#statusTimer);
    clearInterval(this.#watermarkTimer);
    for (const shard of this.#owners.keys()) this.disown(shard);
    // If the broker does not answer, the watermarks stay as they are; closing ends the requests.
    await Promise.race([
      Promise.all(this.#closing),
      delay(LAST_MARK_MS, undefined, { ref: false }),
    ]);
    const { journalConnection, dataConnection } = this.#parts.context;
    await Promise.all([journalConnection.close(), dataConnection.close()]);
  }

  /** Stops owning a shard, at once. */
  disown(shard: number): void {
    const owner = this.#owners.get(shard);
    if (owner === undefined) return;
    this.#owners.delete(shard);
    this.#stores.delete(shard);
    const closed = owner.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }

  #writeWatermarks(): void {
    for (const owner of this.#owners.values()) void owner.writeWatermark();
  }

  async #watchReconnects(): Promise<void> {
    for await (const status of this.#parts.context.journalConnection.status()) {
      if (status.type !== "reconnect" || (await this.#isJobAnother())) continue;
      for (const owner of this.#owners.values()) void owner.reconnected();
    }
  }

  /**
   * Whether the broker now holds another job of this name. The main thread finds that out, too, and ends the host.
   */
  async #isJobAnother(): Promise<boolean> {
    const { bucket, context } = this.#parts;
    try {
      const stream = bucketStream(context.subjects.bucket());
      const { created } = await context.manager.streams.info(stream);
      return created !== (await bucket.created());
    } catch {
      // Without its bucket nothing can be taken for a part of another job.
      return false;
    }
  }

  /** Ends the thread, and so the host, by an uncaught error: blocks that receive no requests serve nobody. */
  async #watchSubscriptions(): Promise<void> {
    for await (const status of this.#parts.context.dataConnection.status()) {
      if (status.type === "error" && isRefusedSubscription(status.error)) {
        throw fromBrokerError(status.error, `host ${this.#parts.setup.host} listening`);
      }
    }
  }

  /** Takes a shard over again that another host has owned in between, once its lease is held here. */
  #retake(shard: number, deposed: ShardOwner): void {
    setTimeout(() => {
      if (this.#owners.get(shard) !== deposed) return;
      if (this.#parts.leases.tenure(shard) !== undefined) this.#takeOver(shard);
      else this.#retake(shard, deposed);
    }, RETAKE_MS);
  }

  #tellServing(shard: number): void {
    // First, so that the main thread has the shard's status when it is told that the shard is served.
    this.#sendStatuses();
    this.#parts.send({ type: "serving", shard });
  }

  #sendStatuses(): void {
    this.#parts.send({
      type: "statuses",
      statuses: [...this.#owners.values()].map((owner) => owner.status()),
      counts: this.#parts.context.counters.counted,
    });
    this.#reportSaving();
  }

  /**
   * Reports the progress of all shards that are being saved: one that waits until others are saved progresses with
   * them.
   */
  #reportSaving(): void {
    const reached = [...this.#saving.keys()].map((shard) => {
      return `${shard} ${this.#owners.get(shard)?.position().seq} ${this.#stores.get(shard)?.stored}`;
    });
    const savedUpTo = reached.join();
    if (savedUpTo === this.#savedUpTo) return;
    this.#savedUpTo = savedUpTo;
    for (const onProgress of this.#saving.values()) onProgress();
  }
}
