import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import {
  defined,
  ensureError,
  type Fallback,
  type Fields,
  type GuardAction,
  type Position,
  PserverError,
  quoteName,
} from "../../protocol/index.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
import type { RecordAnswer, Shard } from "../fold/shard.ts";
import type { HostMemory } from "../host/host-memory.ts";
import { majorityLastSeq } from "../journal/journal.ts";
import { type JournalGap, lastRecordSeq, ObservedEnd } from "../journal/journal-check.ts";
import { type Credit, JournalReader } from "../journal/journal-reader.ts";
import type { Manifest, StoredManifest } from "../journal/manifest.ts";
import type { ReplicaDamage } from "../journal/replicas.ts";
import type { TapeStore } from "../journal/tape/tape-store.ts";
import { type TapeGaps, TapeWriter } from "../journal/tape/tape-writer.ts";
import type { FoldProgress } from "../journal/watermark.ts";
import type { WatermarkKeeper } from "../journal/watermark-keeper.ts";
import { ShardAnswers, shardUpdates } from "./answers.ts";
import { BACKLOG_BYTES_MAX, BacklogWatch } from "./backlog-watch.ts";
import { type Coalescer, FoldLoop, type FoldLoopEvents } from "./fold-loop.ts";
import { type LocatedJournal, OwnedJournal } from "./owned-journal.ts";
import type { OwnerCounters } from "./owner-counters.ts";
import {
  type AnsweredShard,
  FragmentQueue,
  PositionQueue,
  StepQueue,
  type WantedPosition,
} from "./pending-reads.ts";
import type { RecoveredShard } from "./recover-shard.ts";
import { OutgoingOutcomes } from "./responder.ts";
import { RoundCloser } from "./round-closer.ts";
import {
  ShardSnapshots,
  type SnapshotContext,
  type SnapshotEvents,
  type SnapshotSettings,
} from "./shard-snapshots.ts";
import { refusingHandler, ShardSubscriptions, type SubscriptionContext } from "./subscriptions.ts";

/** How long a shard that is saved waits for its fold before it asks for the end of the journal again. */
const FOLD_WAIT_MS = 2_000;

/** Resources that the shards of a worker share; the connections belong to the worker. */
export interface WorkerContext extends SubscriptionContext {
  /** Id of the host. */
  readonly host: string;
  readonly settings: OwnerSettings;
  readonly manager: JetStreamManager;
  readonly inboxPrefix: string;
  readonly journalConnection: NatsConnection;
  readonly coalescer: Coalescer;
  /** Counts what the owners do. */
  readonly counters: OwnerCounters;
  readonly archivers: SnapshotContext["worker"]["archivers"];
  readonly snapshotBudget: SnapshotContext["worker"]["snapshotBudget"];
  /** Memory of the host, for all its shards. */
  readonly memory: HostMemory;
}

/** Settings of owners. */
export interface OwnerSettings extends SnapshotSettings {
  readonly journalStorage: "file" | "memory";
  /** Lease time: the interval of checks whether a failed shard was recovered. */
  readonly leaseMs: number;
}

/** Resources of one shard of a worker: its streams and entries, and its lease. */
export interface ShardContext extends SnapshotContext {
  readonly worker: WorkerContext;
  readonly watermarks: WatermarkKeeper;
  /** The tape; undefined for a job without one. */
  readonly tape: TapeStore | undefined;
  /** The shard's part of the bytes that the tape may have. */
  readonly tapeBytesMax: number;
  readonly credit: Credit;
  /**
   * Returns the number of the present tenure of the shard's lease; undefined once the lease has run out on this
   * host's clock. Another host may have owned the shard between two tenures.
   */
  readonly tenure: () => bigint | undefined;
  /**
   * Whether the lease was claimed or renewed after the connection that answers was last made. If not, another host may
   * have ended it while that was closed; nothing is answered then.
   */
  readonly isLeaseRenewed: () => boolean;
  readonly listener: OwnerListener;
}

/**
 * Troubles of a shard: it has failed; it does not fit into the host's memory; a snapshot, lines of the tape or the
 * watermark could not be stored; records could not be described, or have no lines on the tape; a trainer has seen a
 * later record than the journal holds; an archiver has stopped, and is no longer waited for; records were trimmed
 * before one had copied them; a broker's copy of the journal is damaged, and another one is used; a session was ended
 * because it sent far ahead of the fold; the close of a round could not be written, and is tried again.
 */
export type ShardTrouble =
  | "failed"
  | "no-memory"
  | "snapshot-failed"
  | "tape-failed"
  | "tape-incomplete"
  | "mark-failed"
  | "loss-reported"
  | "archiver-stopped"
  | "archiver-behind"
  | "replica-damaged"
  | "flooded"
  | "close-failed";

/** Reports of the owner of a shard to its worker. */
export interface OwnerListener {
  /** The shard has caught up and answers. */
  serving(): void;
  /**
   * Something is wrong. A shard that has failed is stopped; all others go on. Failures to write the watermark or the
   * tape are reported once until a write succeeds, and losses at most once a minute.
   */
  trouble(type: ShardTrouble, error: PserverError): void;
  /** The journal in memory is gone, and with it records that former owners have noted as folded. */
  fellBack(manifest: Pick<Manifest, "generation" | "fallbacks">): void;
  /** Somebody else has recovered the failed shard: it can be taken over again. */
  recovered(manifest: Manifest): void;
}

/** What a serving shard needs of the owner that has taken it over. */
export interface ServingOwner {
  /** Token of this take-over. */
  readonly token: string;
  /** Whether the lease is held, and no other host can have owned the shard since it was taken over. */
  readonly mayAnswer: boolean;
  /** Whether the host has memory for the blocks that were folded while catching up. */
  fits(shard: Shard): boolean;
  /** Called when the shard has caught up, just before it receives requests. */
  caughtUp(): void;
  /** Brokers whose copies of the journal are not what was folded before. */
  readonly differingBrokers: Iterable<string>;
  /** Writes the last record that was folded into the watermark. Failures are reported, not thrown. */
  mark(): Promise<void>;
  /** Stops the shard, which cannot go on. `copy`: what is wrong with a copy, if another one may be sound. */
  fail(error: PserverError, copy?: ReplicaDamage): void;
  /** Called when a copy of the journal is damaged, and another one is used. */
  replicaDamaged(damage: ReplicaDamage): void;
  /** Called when an asker has seen a record that the journal does not hold. */
  lossFound(error: PserverError, wanted: WantedPosition): void;
  /** Makes the reply to `status`. */
  status(): Fields;
}

/**
 * A shard that was recovered and is served: it folds, answers requests and makes snapshots. It makes its parts, in
 * the order in which they need each other, and receives the reports of all of them.
 */
export class ServingShard implements AnsweredShard, FoldLoopEvents, SnapshotEvents {
  readonly number: number;
  readonly shard: Shard;
  readonly positions: PositionQueue;
  readonly steps: StepQueue;
  readonly fragments: FragmentQueue;
  readonly #rounds: RoundCloser;
  readonly #context: ShardContext;
  readonly #owner: ServingOwner;
  readonly #tape: TapeWriter | undefined;
  readonly #snapshots: ShardSnapshots;
  readonly #journal: OwnedJournal;
  readonly #core: OwnerCore;
  readonly #subscriptions: ShardSubscriptions;
  readonly #loop: FoldLoop;
  readonly #outcomes: OutgoingOutcomes;
  readonly #backlogs: BacklogWatch = new BacklogWatch();
  /** The last record that its snapshot holds. */
  readonly #baseSeq: number;
  #isStopped = false;
  #isMarking = false;
  #hasFoldEnded = false;
  /** Records of trainers rejected since it began to serve. */
  #rejected = 0;
  /** Records of trainers that guards have changed or held back since then. */
  readonly #guarded: Record<GuardAction, number> = { reject: 0, clip: 0, "set-aside": 0 };

  private constructor(
    context: ShardContext,
    owner: ServingOwner,
    recovered: RecoveredShard,
    kept: readonly StoredManifest[],
  ) {
    const { worker, shard: number, journal, watermarks, listener } = context;
    const { host, settings, manager, inboxPrefix, coalescer, responder } = worker;
    const { shard } = recovered;
    const journalEnd = new ObservedEnd(number);
    this.number = number;
    this.shard = shard;
    this.#baseSeq = shard.seq;
    this.#context = context;
    this.#owner = owner;
    this.#tape = this.#makeTape();
    this.#snapshots = new ShardSnapshots(context, { recovered, kept, tape: this.#tape }, this);
    this.#journal = new OwnedJournal({
      ...{ host, owner: owner.token, journal, storage: settings.journalStorage },
      ...{ shard, snapshots: this.#snapshots, watermarks, journalEnd },
      onReplaced: () => this.#positionChanged(),
      onFellBack: (manifest) => listener.fellBack(manifest),
      onGapRemains: (error) => this.onSnapshotFailed(error),
      onReplicaDamaged: (damage) => owner.replicaDamaged(damage),
    });
    this.positions = new PositionQueue({
      shard: number,
      fallbacks: () => this.fallbacks,
      lastSeq: (wanted, tell) => {
        majorityLastSeq(journal, wanted).then(tell, () => tell(undefined));
      },
      onLost: (error, wanted) => owner.lossFound(error, wanted),
    });
    this.steps = new StepQueue(number);
    this.fragments = new FragmentQueue(number);
    this.#rounds = new RoundCloser({
      shard,
      append: (record) => journal.append(record),
      onFailed: (error) => listener.trouble("close-failed", error),
    });
    this.#core = new OwnerCore({
      shard,
      journalEnd,
      positions: this.positions,
      steps: this.steps,
      fragments: this.fragments,
    });
    const answers = new ShardAnswers(this, responder, worker.counters);
    this.#subscriptions = new ShardSubscriptions(number, worker, () => owner.mayAnswer, answers);
    const { credit } = context;
    const connection = worker.journalConnection;
    const { isReplicated } = journal;
    const reader = new JournalReader({ connection, manager, inboxPrefix, credit, isReplicated });
    for (const broker of owner.differingBrokers) reader.avoid(broker);
    this.#loop = new FoldLoop({ number, shard, reader, coalescer, events: this });
    this.#outcomes = new OutgoingOutcomes(worker.dataConnection, number);
  }

  /**
   * Prepares a recovered shard for serving: removes what the former owner has left and creates the journal of a new
   * shard. {@link start} follows.
   */
  static async open(
    context: ShardContext,
    owner: ServingOwner,
    recovered: RecoveredShard,
  ): Promise<ServingShard> {
    const serving = new ServingShard(context, owner, recovered, await context.store.manifests());
    await serving.#tape?.open();
    serving.#observe();
    await serving.#snapshots.tidy();
    if (recovered.manifest === undefined) await serving.#journal.replace();
    return serving;
  }

  /** Makes the tape writer of the shard; undefined if its job has no tape. */
  #makeTape(): TapeWriter | undefined {
    const { tape: store, tapeBytesMax: bytesMax, shard, listener } = this.#context;
    if (store === undefined) return undefined;
    return new TapeWriter({
      ...{ store, shard, bytesMax, folded: this.shard },
      generation: () => this.position.generation,
      onProgress: () => this.onProgress(),
      onFailed: (error) => listener.trouble("tape-failed", error),
      onIncomplete: (error) => listener.trouble("tape-incomplete", error),
    });
  }

  /** Has the parts observe what the fold does to blocks. */
  #observe(): void {
    const snapshots = this.#snapshots;
    const counts = this.#context.worker.counters.observerOf(() => this.isServing);
    const tape = this.#tape === undefined ? [] : [this.#tape];
    this.shard.observers = [counts, this.#rounds, ...tape];
    this.shard.hooks = {
      blockAdded: (block) => this.#subscriptions.blockAdded(block),
      blockRemoved: (block) => {
        this.#subscriptions.blockRemoved(block);
        snapshots.blockRemoved(block);
      },
      beforeChange: (block) => snapshots.beforeChange(block),
    };
  }

  /** Starts to fold. */
  start(): Promise<void> {
    return this.#loop.start();
  }

  /** Reads the journal again after the connection was lost. */
  async reconnected(): Promise<void> {
    this.#snapshots.abort();
    await this.#loop.reconnected();
  }

  /** Whether it has caught up and answers. */
  get isServing(): boolean {
    return this.#core.isServing && !this.#isStopped;
  }

  /** Records that it has to fold before it answers, and how many of them it has folded. */
  get catchUp(): { readonly folded: number; readonly records: number } {
    const { seq } = this.#core.journalEnd;
    const records = Math.max(0, seq - this.#baseSeq);
    return { folded: Math.min(Math.max(0, this.shard.seq - this.#baseSeq), records), records };
  }

  get position(): Position {
    return { generation: this.#snapshots.newest?.manifest.generation ?? 0, seq: this.shard.seq };
  }

  get fallbacks(): readonly Fallback[] {
    return this.#snapshots.newest?.manifest.fallbacks ?? [];
  }

  /** The last record folded; undefined if the fold does not end with a record. */
  get foldProgress(): FoldProgress | undefined {
    const manifest = this.#snapshots.newest?.manifest;
    const { noted, lastCrc: recordCrc, endsWithRecord } = this.shard;
    if (manifest === undefined || !endsWithRecord) return undefined;
    const { term, generation } = manifest;
    return { term, generation, ...noted, recordCrc };
  }

  status(): Fields {
    return this.#owner.status();
  }

  memory(): Fields {
    const { host, memory } = this.#context.worker;
    return { host, freeBytes: Math.max(0, Math.floor(memory.freeBytes)) };
  }

  /** Makes its part of the reply to `status`. */
  statusEntries(): Fields {
    const manifest = this.#snapshots.newest?.manifest;
    return {
      ...this.position,
      term: manifest?.term ?? 0,
      snapshotSeq: manifest?.seq ?? 0,
      oldestSeq: this.#snapshots.oldestSeq,
      blocks: [...this.shard.blocks()].length,
      valueBytes: this.shard.valueBytes,
      updates: {
        applied: shardUpdates(this.shard),
        rejected: this.#rejected,
        guarded: { ...this.#guarded },
      },
      endSeq: Math.max(this.shard.seq, this.#core.journalEnd.seq, this.#loop.endSeq),
      journalBytes: this.#snapshots.journalBytes,
      journalBytesMax: this.#snapshots.journalBytesMax,
      ...defined({ lastRecordMs: this.#loop.lastRecordMs }),
      ...(this.#tape && { tape: this.#tapeGaps(this.#tape.gaps) }),
    };
  }

  #tapeGaps(gaps: TapeGaps): TapeGaps {
    return { ...gaps, leftOut: gaps.leftOut + this.shard.unobserved };
  }

  /** Requests that were not answered because their reply subject was outside the asker's inbox. */
  get refusedRequests(): number {
    return this.#subscriptions.refused;
  }

  async snapshot(at: Position): Promise<Fields> {
    const { manifest } = await this.#snapshots.make(at);
    return { shard: this.number, generation: manifest.generation, seq: manifest.seq };
  }

  /**
   * Folds up to the present end of the journal, then nothing more, and makes a snapshot of that. Reads are still
   * answered.
   * @throws TIMEOUT while the fold has not come so far.
   */
  async save(): Promise<void> {
    // Records that came after the fold has ended are never folded.
    if (!this.#hasFoldEnded) await this.#foldToEnd();
    this.#hasFoldEnded = true;
    this.#loop.stop();
    await this.#snapshots.make(this.position);
  }

  async #foldToEnd(): Promise<void> {
    const { journal, worker } = this.#context;
    const { host } = worker;
    const { generation } = this.position;
    const info = await journal.info(generation);
    const seq = info === undefined ? 0 : lastRecordSeq(info);
    await new Promise<void>((resolve, reject) => {
      const wanted = { generation, seq, asker: host };
      const read = { from: host, wanted, waitMs: FOLD_WAIT_MS, run: resolve, refuse: reject };
      this.positions.at(this.position, read);
    });
  }

  /** Has the broker confirm that no other host has taken the shard over. @throws NOT_OWNER if one has. */
  async confirm(): Promise<void> {
    await this.#snapshots.renew();
  }

  /** Stops folding and making snapshots. */
  stop(): void {
    this.#isStopped = true;
    this.#loop.stop();
    this.#journal.close();
    this.#snapshots.close();
    this.#tape?.close();
    this.#outcomes.clear();
    this.#rounds.stop();
  }

  /** Refuses pending requests, and further ones by {@link ShardSubscriptions.openFailed}. */
  fail(error: () => PserverError): void {
    this.#core.refuseAll(error());
    this.#subscriptions.openFailed(refusingHandler(error));
  }

  /** Refuses pending requests and receives no further ones. */
  close(error: PserverError): void {
    this.#subscriptions.close();
    this.#core.refuseAll(error);
  }

  async locate(): Promise<LocatedJournal> {
    const place = await this.#journal.locate();
    this.#catchUp();
    return place;
  }

  mayFold(): boolean {
    if (this.#snapshots.holdsUp || this.#tape?.holdsUp === true) return false;
    return this.#core.isServing || this.#owner.fits(this.shard);
  }

  onSettled(settled: RecordAnswer, { payload, timeMs = 0 }: JournalRecord): void {
    if (!this.isServing) return;
    const { trainer, session } = settled;
    const payloadBytes = payload.length;
    const times = { storedMs: timeMs, foldedMs: Date.now() };
    if (this.#backlogs.isTooFarAhead({ trainer, session, payloadBytes, ...times })) {
      void this.#endSession(trainer, session);
    }
    this.#outcomes.add(settled);
    if (settled.outcome.code !== undefined) this.#rejected += 1;
    if (settled.guarded !== undefined) this.#guarded[settled.guarded] += 1;
  }

  /** Ends a session that does not wait for its outcomes, so that others do not wait for its records. */
  async #endSession(trainer: string, session: number): Promise<void> {
    const { journal, listener } = this.#context;
    const { number: shard } = this;
    try {
      await journal.append({ verb: "end", trainer, session });
      const text =
        `shard ${shard}: session ${session} of trainer ${quoteName(trainer)} was ended: ` +
        `it sent ${BACKLOG_BYTES_MAX} bytes ahead of the fold without waiting for outcomes`;
      listener.trouble("flooded", new PserverError("QUOTA", text, { shard, trainer, session }));
    } catch (error) {
      listener.trouble("flooded", ensureError(error));
    }
  }

  onAdvanced(bytes: number): void {
    if (this.#isStopped) return;
    this.#catchUp();
    if (this.#owner.mayAnswer) this.#outcomes.flush(this.position.generation);
    else this.#outcomes.clear();
    this.#core.advanced(this.position);
    if (this.isServing && this.#owner.mayAnswer) this.#rounds.advanced();
    this.#snapshots.advanced(bytes, this.shard.isCompared);
  }

  async onGap(gap: JournalGap): Promise<void> {
    await this.#journal.skipGap(gap);
    this.#positionChanged();
  }

  onReplicaDamaged(damage: ReplicaDamage): void {
    this.#owner.replicaDamaged(damage);
  }

  onFailure(error: PserverError, copy?: ReplicaDamage): void {
    this.#owner.fail(error, copy);
  }

  onProgress(): void {
    this.#loop.poke();
  }

  onDeposed(error: PserverError): void {
    this.#owner.fail(error);
  }

  onArchiverBehind(error: PserverError): void {
    this.#context.listener.trouble("archiver-behind", error);
  }

  onSnapshotMade(seconds: number): void {
    this.#context.worker.counters.observe("snapshotSeconds", seconds);
  }

  onFolded(seconds: number): void {
    this.#context.worker.counters.observe("foldSeconds", seconds);
  }

  onSnapshotFailed(error: PserverError): void {
    this.#context.listener.trouble("snapshot-failed", error);
  }

  /** Answers pending requests after a gap was skipped or the journal was replaced. */
  #positionChanged(): void {
    this.positions.advance(this.position);
  }

  /**
   * Begins to answer once the fold has caught up. What it answers from is noted first: if the next owner finds other
   * records, it does not answer from those.
   */
  #catchUp(): void {
    if (this.#isMarking || this.#core.isServing || !this.#core.hasCaughtUp) return;
    this.#isMarking = true;
    void this.#owner.mark().then(() => {
      this.#isMarking = false;
      if (this.#isStopped || !this.#core.catchUp()) return;
      this.#rounds.advanced();
      this.#owner.caughtUp();
      this.#context.worker.counters.tookOver();
      this.#subscriptions.open(this.shard.blocks());
      this.#context.listener.serving();
    });
  }
}

/**
 * Decides when the owner of a shard answers. Does no I/O.
 *
 * Until it has folded up to the journal end of its take-over it answers nothing: the senders of these records were
 * answered by former owners, or ask.
 */
export class OwnerCore {
  readonly shard: Pick<Shard, "seq" | "steps">;
  readonly journalEnd: ObservedEnd;
  readonly positions: PositionQueue;
  readonly steps: StepQueue;
  readonly fragments: FragmentQueue;
  #isServing = false;

  constructor(
    parts: Pick<OwnerCore, "shard" | "journalEnd" | "positions" | "steps" | "fragments">,
  ) {
    this.shard = parts.shard;
    this.journalEnd = parts.journalEnd;
    this.positions = parts.positions;
    this.steps = parts.steps;
    this.fragments = parts.fragments;
  }

  /** Whether it has caught up and answers. */
  get isServing(): boolean {
    return this.#isServing;
  }

  /** Whether the fold has reached the journal end of the take-over. */
  get hasCaughtUp(): boolean {
    return this.shard.seq >= this.journalEnd.seq;
  }

  /** Starts to serve if the fold has reached the journal end of the take-over; returns whether it did so just now. */
  catchUp(): boolean {
    if (this.#isServing || !this.hasCaughtUp) return false;
    this.#isServing = true;
    return true;
  }

  /** Answers pending requests after records have been folded or skipped. */
  advanced(position: Position): void {
    this.positions.advance(position);
    this.steps.advance();
    this.fragments.advance();
  }

  /** Refuses all pending requests. */
  refuseAll(error: PserverError): void {
    this.positions.refuseAll(error);
    this.steps.refuseAll(error);
    this.fragments.refuseAll(error);
  }
}
