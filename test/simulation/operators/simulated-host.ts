import { randomUUID } from "node:crypto";
import type { Shard } from "../../../src/actors/fold/shard.ts";
import { hostKey } from "../../../src/actors/host/shard-claims.ts";
import { journalSettings, type WantedSettings } from "../../../src/actors/job/job-settings.ts";
import { type OpenedJob, openJob } from "../../../src/actors/job/open-job.ts";
import { ArchiverWatch } from "../../../src/actors/journal/archivers.ts";
import { Journal } from "../../../src/actors/journal/journal.ts";
import { ObservedEnd } from "../../../src/actors/journal/journal-check.ts";
import { SnapshotStore } from "../../../src/actors/journal/snapshot-store.ts";
import { SnapshotBudget } from "../../../src/actors/journal/snapshots/snapshot-budget.ts";
import { WatermarkKeeper } from "../../../src/actors/journal/watermark-keeper.ts";
import { OwnedJournal } from "../../../src/actors/owner/owned-journal.ts";
import { recoverShard } from "../../../src/actors/owner/recover-shard.ts";
import { ShardSnapshots } from "../../../src/actors/owner/shard-snapshots.ts";
import type { PserverError } from "../../../src/protocol/errors.ts";
import { encodeMessage, ensureError } from "../../../src/protocol/index.ts";
import { BufferPool } from "../../../src/transport/buffers.ts";
import { openJetStream, StreamPublisher } from "../../../src/transport/jetstream.ts";
import type { Random } from "../random.ts";
import type { Process } from "./processes.ts";
import type { SimulatedBroker } from "./simulated-broker.ts";
import type { SimulatedJob } from "./simulated-job.ts";

/** Bytes of a journal, each record one, that are kept before the newest snapshots. */
export const RETAIN_RECORDS = 4;

/** Lease time of all jobs. */
export const LEASE_MS = 1_000;

/** A shard that a host serves. */
interface Served {
  readonly shard: Shard;
  readonly snapshots: ShardSnapshots;
  readonly watermarks: WatermarkKeeper;
  readonly generation: number;
}

/** A host that joins a job and takes its shards over as a real one does; the schedule says when it folds and saves. */
export class SimulatedHost {
  readonly process: Process;
  readonly job: SimulatedJob;
  readonly #broker: SimulatedBroker;
  #opened: OpenedJob | undefined;
  /** What it has seen of archivers. */
  #archivers: ArchiverWatch | undefined;
  readonly #served: Map<number, Served> = new Map();
  /** Why a shard cannot be served. */
  readonly stopped: Map<number, PserverError> = new Map();

  constructor(process: Process, job: SimulatedJob, broker: SimulatedBroker) {
    this.process = process;
    this.job = job;
    this.#broker = broker;
  }

  /** Whether it has joined the job: from then on trainers may join. */
  get hasJoined(): boolean {
    return this.#opened !== undefined;
  }

  /** Joins the job, which is made if it does not exist and settings are wanted. */
  async join(wanted: WantedSettings = { leaseMs: LEASE_MS }): Promise<void> {
    const { connection } = this.process;
    const { subjects } = this.job;
    const manager = await openJetStream(connection).jetstreamManager(false);
    const opened = await openJob({ connection, manager, subjects, wanted });
    await opened.leases.claim(hostKey(this.process.name), { owner: this.process.name });
    this.#opened = opened;
    const { bucket } = opened;
    const nowMs = (): number => performance.now();
    this.#archivers = new ArchiverWatch({ bucket, nowMs, onStopped: () => undefined });
  }

  /** Takes a shard over; notes why, if it cannot be served. */
  async takeOver(shard: number): Promise<void> {
    this.#served.delete(shard);
    try {
      this.#served.set(shard, await this.#recover(shard));
      this.stopped.delete(shard);
    } catch (error) {
      this.stopped.set(shard, ensureError(error));
    }
  }

  /** Does something that a host does: takes a shard over, folds, or makes a snapshot. */
  async act(random: Random, shards: number): Promise<void> {
    const shard = random.below(shards);
    const served = this.#served.get(shard);
    if (served === undefined || random.chance(0.2)) {
      await this.takeOver(shard);
      return;
    }
    await this.fold(shard);
    if (random.chance(0.5)) await this.save(shard);
  }

  /** Folds a shard up to the end of its journal, and marks how far. */
  async fold(shard: number): Promise<void> {
    const served = this.#served.get(shard);
    if (served === undefined) return;
    await this.#attempt(shard, async () => {
      this.#foldRecords(shard, served);
      const { noted, lastCrc: recordCrc, endsWithRecord } = served.shard;
      const { term, generation } = served.snapshots.manifestHeader();
      if (!endsWithRecord) return;
      await served.watermarks.raise({ term, generation, ...noted, recordCrc });
    });
  }

  /** Makes a snapshot of a shard. */
  async save(shard: number): Promise<void> {
    const served = this.#served.get(shard);
    if (served !== undefined) await this.#attempt(shard, () => served.snapshots.make(at(served)));
  }

  /** The shard as this host has folded it; undefined if it does not serve it. */
  folded(shard: number): Shard | undefined {
    return this.#served.get(shard)?.shard;
  }

  /** Answers a question for a snapshot of a generation as an owner does; undefined if it does not serve that. */
  answer(shard: number, generation: number): Uint8Array | undefined {
    const served = this.#served.get(shard);
    if (served === undefined || served.generation < generation) return undefined;
    return encodeMessage({ shard, generation: served.generation, seq: 0 });
  }

  async #attempt(shard: number, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      // Deposed, stopped, or without an answer: it takes the shard over again.
      this.#served.delete(shard);
      this.stopped.set(shard, ensureError(error));
    }
  }

  #foldRecords(number: number, { shard, generation }: Served): void {
    const stream = this.#broker.streams.get(this.job.subjects.journalStream(number, generation));
    for (const { seq, subject, data } of stream?.messages.values() ?? []) {
      if (seq > shard.seq) shard.apply({ seq, subject, payload: data });
    }
  }

  async #recover(shard: number): Promise<Served> {
    const { connection, name: host } = this.process;
    const { subjects } = this.job;
    const { manager, bucket, settings, archivers } = this.#joined();
    const owner = randomUUID();
    const client = openJetStream(connection);
    const publisher = StreamPublisher.open(connection, subjects.hostInbox(host));
    const store = new SnapshotStore({ manager, client, publisher, subjects, shard });
    const journalDeps = { manager, client, subjects, shard };
    const journal = new Journal({ ...journalDeps, settings: journalSettings(settings) });
    const watermarks = new WatermarkKeeper(bucket, shard);
    const place = { subjects, shard, host, owner, store, journal, watermarks };
    const recovered = await recoverShard({ ...place, reserve: () => undefined });
    const settingsOfSnapshots = {
      snapshotBytes: 1e9,
      retainBytes: RETAIN_RECORDS,
      olderBytesMax: 1e9,
      partBytesMax: 1e6,
    };
    const worker = {
      ...{ subjects, archivers },
      ...{ snapshotBudget: new SnapshotBudget(new BufferPool()), settings: settingsOfSnapshots },
    };
    const kept = await store.manifests();
    const snapshots = new ShardSnapshots(
      { shard, journal, store, worker },
      { recovered, kept },
      {
        onProgress: () => undefined,
        onDeposed: () => undefined,
        onArchiverBehind: () => undefined,
        onSnapshotMade: () => undefined,
        onSnapshotFailed: () => undefined,
      },
    );
    recovered.shard.hooks = {
      blockRemoved: (block) => snapshots.blockRemoved(block),
      beforeChange: (block) => snapshots.beforeChange(block),
    };
    const owned = new OwnedJournal({
      ...{ host, owner, journal, storage: settings.journal, shard: recovered.shard, snapshots },
      ...{ watermarks, journalEnd: new ObservedEnd(shard), onReplaced: () => undefined },
      ...{ onFellBack: () => undefined, onGapRemains: () => undefined },
      onReplicaDamaged: () => undefined,
    });
    await snapshots.tidy();
    if (recovered.manifest === undefined) await owned.replace();
    const { generation, noted } = await owned.locate();
    recovered.shard.expect(noted);
    return { shard: recovered.shard, snapshots, watermarks, generation };
  }

  #joined(): OpenedJob & { archivers: ArchiverWatch } {
    const archivers = this.#archivers;
    if (this.#opened === undefined || archivers === undefined)
      throw new Error("the host has not joined");
    return { ...this.#opened, archivers };
  }
}

function at({ shard, generation }: Served): { generation: number; seq: number } {
  return { generation, seq: shard.seq };
}
