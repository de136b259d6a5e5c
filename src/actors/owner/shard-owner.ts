import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  ensureError,
  type Fallback,
  type Fields,
  type Position,
  PserverError,
} from "../../protocol/index.ts";
import type { Block, BlockHeader } from "../fold/block.ts";
import type { CountRow } from "../fold/fold-state.ts";
import { Shard } from "../fold/shard.ts";
import { RetryLimit } from "../journal/retry-limit.ts";
import { AnswerBatch } from "./answers.ts";
import { FoldLoop } from "./fold-loop.ts";
import type { HeadMark } from "./head-mark.ts";
import { type Holding, isDeposed, takeShardOver } from "./holding.ts";
import { LossReports } from "./loss-reports.ts";
import { Marking } from "./marking.ts";
import { OwnedJournal } from "./owned-journal.ts";
import { PositionQueue } from "./position-queue.ts";
import { RecoveryWatch } from "./recovery-watch.ts";
import type { OwnerState, ShardOwnerOptions } from "./shard-owner-options.ts";
import { ShardRequests } from "./shard-requests.ts";
import { ShardSnapshots } from "./shard-snapshots.ts";
import { shardUpdates } from "./shard-versions.ts";
import { StepQueue } from "./step-queue.ts";

/** Pause after an attempt to take the shard over that the broker kept from success. */
const RETRY_MS = 500;

/** Trainers that `status` names of those whose records were of no use. */
const WASTEFUL_MAX = 16;

/** Owns one shard: takes it over, folds its journal, answers for its blocks, snapshots it. */
export class ShardOwner {
  readonly #options: ShardOwnerOptions;
  /** Token of the present attempt to take the shard over: what is written under another deposes. */
  #owner = "";
  readonly #answers: AnswerBatch;
  readonly #positions: PositionQueue;
  readonly #steps: StepQueue;
  readonly #reports: LossReports;
  readonly #marking: Marking;
  #state: OwnerState = "taking-over";
  #failure: PserverError | undefined;
  #trouble: PserverError | undefined;
  /** What the shard needs of the host's memory, which has less. */
  #lacking: { readonly error: PserverError; readonly valueBytes: number } | undefined;
  /** Bytes of values that memory was last set aside for. */
  #reservedBytes = 0;
  #closed = false;
  /** Records of trainers refused since it serves the shard. */
  #refused = 0;
  #shard: Shard | undefined;
  #loop: FoldLoop | undefined;
  #requests: ShardRequests | undefined;
  #snapshots: ShardSnapshots | undefined;
  #journal: OwnedJournal | undefined;
  #recovery: RecoveryWatch | undefined;

  constructor(options: ShardOwnerOptions) {
    this.#options = options;
    this.#answers = new AnswerBatch(options.dataConnection, options.shard);
    this.#positions = new PositionQueue({
      shard: options.shard,
      fallbacks: () => this.#fallbacks,
      lastSeq: (generation) => options.journal.lastSeq(generation),
      onLost: (error, wanted) => this.#reports.add(error, wanted),
    });
    this.#reports = new LossReports(options.onLossReported);
    this.#marking = new Marking(options.marks, options.onMarkFailed);
    this.#steps = new StepQueue(options.shard);
  }

  /** Takes the shard over and starts to fold; `onServing` is called when it has caught up. */
  async start(): Promise<void> {
    const limit = new RetryLimit();
    while (!this.#closed) {
      try {
        if (this.#lacking !== undefined) this.#reserve(this.#lacking.valueBytes);
        await this.#takeOver();
        return;
      } catch (error) {
        this.#trouble = ensureError(error);
        // Somebody else who takes it over at the same time has no lease: it is taken from them.
        if (limit.isReachedBy(this.#trouble) && this.#trouble.code !== "NOT_OWNER") {
          this.#fail(this.#trouble);
          return;
        }
        await delay(RETRY_MS);
      }
    }
  }

  async #takeOver(): Promise<void> {
    const { shard, memory } = this.#options;
    const owner = randomUUID();
    this.#owner = owner;
    const holding = await takeShardOver({
      ...this.#options,
      owner,
      hooks: this.#hooks(),
      reserve: (valueBytes, blocks) => this.#reserve(valueBytes, blocks),
    });
    if (this.#closed) return;
    memory.holds(shard, holding.shard.memory.memoryBytes);
    this.#reservedBytes = holding.shard.valueBytes;
    this.#hasMemory();
    const loop = await this.#hold(holding);
    if (this.#closed) {
      loop.stop();
      return;
    }
    this.#loop = loop;
    this.#trouble = undefined;
    this.#state = "catching-up";
    await loop.start();
  }

  /** Sets memory aside. @throws NO_MEMORY, which askers are told from then on, until there is. */
  #reserve(valueBytes: number, blocks: Iterable<BlockHeader> = [], heldBytes = 0): void {
    const { shard, subjects, memory, onNoMemory } = this.#options;
    if (this.#closed) return;
    try {
      memory.reserve(shard, valueBytes, heldBytes);
    } catch (thrown) {
      const error = ensureError(thrown);
      this.#state = "no-memory";
      const isNew = this.#lacking === undefined;
      this.#lacking = { error, valueBytes };
      if (isNew) {
        this.#requests?.close();
        this.#requests = this.#requestsOf(new Shard({ subjects, shard }));
        this.#requests.open(blocks);
        onNoMemory(error);
      }
      throw error;
    }
  }

  /**
   * Whether the host has memory for what is folded while it catches up: blocks that no snapshot has yet.
   * If not, what is folded is let go, and the shard waits for room as one whose snapshot does not fit.
   */
  #fits(shard: Shard): boolean {
    if (this.#state !== "catching-up" || shard.valueBytes === this.#reservedBytes) return true;
    this.#reservedBytes = shard.valueBytes;
    try {
      this.#reserve(shard.valueBytes, shard.blocks(), shard.memory.memoryBytes);
      return true;
    } catch {
      // It is told by now, and kept for whoever asks.
      this.#letGo();
      void this.start();
      return false;
    }
  }

  #letGo(): void {
    this.#loop?.stop();
    this.#journal?.close();
    this.#snapshots?.close();
    this.#loop = undefined;
    this.#journal = undefined;
    this.#snapshots = undefined;
    this.#shard = undefined;
  }

  /** There is room for the shard: it has nothing to be refused for. */
  #hasMemory(): void {
    if (this.#lacking === undefined) return;
    this.#lacking = undefined;
    this.#requests?.close();
    this.#requests = undefined;
    this.#state = "taking-over";
  }

  /** Checks the journal and reads on after the connection was lost. */
  async reconnected(): Promise<void> {
    this.#snapshots?.abort();
    await this.#loop?.reconnected();
  }

  /** Whether it has caught up and answers. */
  get isServing(): boolean {
    return this.#state === "serving";
  }

  /** Where the fold stands; generation 0 before the shard is taken over. */
  position(): Position {
    return {
      generation: this.#snapshots?.newest?.manifest.generation ?? 0,
      seq: this.#shard?.seq ?? 0,
    };
  }

  /** Notes outside the journal how far it has folded. What keeps it from that is told, not thrown. */
  mark(): Promise<void> {
    return this.#marking.note(this.#head());
  }

  /** What `status` shows of the shard. */
  status(): Fields {
    const shard = this.#shard;
    const manifest = this.#snapshots?.newest?.manifest;
    const blocks = shard === undefined ? 0 : [...shard.blocks()].length;
    if (shard !== undefined && !this.#closed) {
      this.#options.memory.holds(this.#options.shard, shard.memory.memoryBytes);
    }
    return {
      shard: this.#options.shard,
      state: this.#state,
      ...this.position(),
      term: manifest?.term ?? 0,
      snapshotSeq: manifest?.seq ?? 0,
      oldestSeq: this.#snapshots?.oldestSeq ?? 0,
      blocks,
      valueBytes: shard?.valueBytes ?? 0,
      updates: { applied: shard === undefined ? 0 : shardUpdates(shard), refused: this.#refused },
      journalBytes: this.#snapshots?.journalBytes ?? 0,
      markedSeq: this.#markedSeq(),
      senders: senders(shard, this.#requests?.refused ?? 0),
      ...this.#reports.entry(),
      ...(this.#fallbacks.length === 0 ? {} : { fallbacks: this.#fallbacks }),
      ...stepEntries(shard),
      ...errorEntry(this.#failure ?? this.#trouble),
    };
  }

  /** What the host could still hold. */
  memory(): Fields {
    const { host, memory } = this.#options;
    return { host, freeBytes: Math.max(0, Math.floor(memory.freeBytes)) };
  }

  /** Answers with a snapshot of the shard at `at` or later; makes one unless there is one. */
  async snapshot(at: Position): Promise<Fields> {
    if (this.#snapshots === undefined) throw this.#notTakenOver();
    const { manifest } = await this.#snapshots.make(at);
    return { shard: this.#options.shard, generation: manifest.generation, seq: manifest.seq };
  }

  /**
   * Stops folding and answering at once; nothing is lost, the journal holds it. Settles when it is
   * noted how far it has folded, or cannot be.
   */
  close(): Promise<void> {
    const head = this.#head();
    this.#closed = true;
    if (this.#state !== "failed") this.#state = "closed";
    this.#loop?.stop();
    this.#recovery?.stop();
    this.#journal?.close();
    this.#snapshots?.close();
    this.#requests?.close();
    this.#answers.clear();
    const { shard, memory } = this.#options;
    memory.release(shard);
    this.#refuseAll(new PserverError("NOT_OWNER", `shard ${shard} is being handed over`));
    return this.#marking.finish(head);
  }

  /** The last record that is folded; undefined where none is, or none that could be known again. */
  #head(): HeadMark | undefined {
    const [shard, manifest] = [this.#shard, this.#snapshots?.newest?.manifest];
    if (shard === undefined || manifest === undefined || shard.lastCrc === 0) return undefined;
    const { term, generation } = manifest;
    return { term, generation, seq: shard.seq, recordCrc: shard.lastCrc };
  }

  /** The last record of the present journal that is noted outside it; 0 if none is. */
  #markedSeq(): number {
    const { last } = this.#options.marks;
    return last?.generation === this.position().generation ? last.seq : 0;
  }

  #refuseAll(error: PserverError): void {
    this.#positions.refuseAll(error);
    this.#steps.refuseAll(error);
  }

  async #hold(holding: Holding): Promise<FoldLoop> {
    const { shard } = holding;
    this.#shard = shard;
    const snapshots = new ShardSnapshots(this.#options, {
      holding,
      kept: await this.#options.store.manifests(),
      onProgress: () => this.#loop?.poke(),
      onDeposed: (error) => this.#fail(error),
    });
    this.#snapshots = snapshots;
    const { host, journal, journalStorage: storage } = this.#options;
    const owned = new OwnedJournal({
      host,
      owner: this.#owner,
      journal,
      storage,
      shard,
      snapshots,
      marks: this.#options.marks,
      onReplaced: () => this.#positions.advance(this.position()),
      onHoleStays: this.#options.onSnapshotFailed,
    });
    this.#journal = owned;
    await snapshots.tidy();
    if (holding.manifest === undefined) await owned.replace();
    this.#requests = this.#requestsOf(shard);
    const { journalConnection: connection, manager, inboxPrefix, credit, pace } = this.#options;
    return new FoldLoop({
      shard,
      journal,
      connection,
      manager,
      inboxPrefix,
      credit,
      pace,
      events: {
        locate: async () => {
          const place = await owned.locate();
          if (shard.seq >= owned.headSeq) this.#serve();
          return place;
        },
        mayFold: () => !snapshots.holdsUp && this.#fits(shard),
        onSettled: (settled) => {
          if (this.#state !== "serving") return;
          this.#answers.add(settled);
          if (settled.outcome.code !== undefined) this.#refused += 1;
        },
        onAdvanced: (bytes) => this.#advanced(bytes),
        onHole: async (hole) => {
          await owned.passOver(hole);
          this.#positions.advance(this.position());
        },
        onFailure: (error) => this.#fail(error),
      },
    });
  }

  #requestsOf(shard: Shard): ShardRequests {
    const { dataConnection: connection, shard: number } = this.#options;
    const { subjects, intake, responder, failedBlocks } = this.#options;
    return new ShardRequests({
      connection,
      subjects,
      intake,
      responder,
      failedBlocks,
      owner: {
        number,
        shard,
        positions: this.#positions,
        steps: this.#steps,
        position: () => this.position(),
        fallbacks: () => this.#fallbacks,
        failure: () => this.#failure ?? this.#lacking?.error,
        mayAnswer: this.#options.mayAnswer,
        snapshot: (at) => this.snapshot(at),
        status: () => this.status(),
        memory: () => this.memory(),
      },
    });
  }

  #hooks(): {
    blockAdded(b: Block): void;
    blockRemoved(b: Block): void;
    beforeChange(b: Block): void;
  } {
    return {
      blockAdded: (block) => this.#requests?.blockAdded(block),
      blockRemoved: (block) => {
        this.#requests?.blockRemoved(block);
        this.#snapshots?.blockRemoved(block);
      },
      beforeChange: (block) => this.#snapshots?.beforeChange(block),
    };
  }

  #advanced(bytes: number): void {
    const [shard, journal, snapshots] = [this.#shard, this.#journal, this.#snapshots];
    if (this.#state === "closed" || this.#state === "failed") return;
    if (shard === undefined || journal === undefined || snapshots === undefined) return;
    if (shard.seq >= journal.headSeq) this.#serve();
    if (this.#options.mayAnswer()) this.#answers.flush(this.position().generation);
    else this.#answers.clear();
    this.#positions.advance(this.position());
    this.#steps.advance();
    snapshots.advanced(bytes);
  }

  #serve(): void {
    if (this.#state !== "catching-up") return;
    this.#state = "serving";
    this.#requests?.open();
    this.#options.onServing();
  }

  get #fallbacks(): readonly Fallback[] {
    return this.#snapshots?.newest?.manifest.fallbacks ?? [];
  }

  #notTakenOver(): PserverError {
    return new PserverError("NOT_OWNER", `shard ${this.#options.shard} is not taken over yet`);
  }

  #fail(error: PserverError): void {
    if (this.#state === "closed" || this.#state === "failed") return;
    this.#state = "failed";
    this.#loop?.stop();
    this.#journal?.close();
    this.#snapshots?.close();
    this.#answers.clear();
    const { shard, store } = this.#options;
    void isDeposed(error, store, this.#snapshots?.newest?.manifest.owner).then((deposed) => {
      const message = `shard ${shard}: another host has taken it over, and forgets records since`;
      this.#report(deposed ? new PserverError("NOT_OWNER", message, { shard }) : error);
    });
  }

  #report(error: PserverError): void {
    this.#failure = error;
    if (this.#closed) return;
    this.#refuseAll(error);
    if (error.code === "NOT_OWNER") {
      this.#requests?.close();
    } else {
      // A damaged shard answers with what is wrong instead of leaving its askers in the dark.
      const { subjects, shard } = this.#options;
      this.#requests ??= this.#requestsOf(new Shard({ subjects, shard }));
      this.#requests.openFailed();
      this.#watchForRecovery();
    }
    this.#options.onFailure(error);
  }

  #watchForRecovery(): void {
    const { store, leaseMs: everyMs, onRecovered, shard } = this.#options;
    this.#recovery = new RecoveryWatch({
      store,
      owner: this.#owner,
      everyMs,
      onRecovered: (manifest) => {
        const text = `shard ${shard} was recovered under generation ${manifest.generation}`;
        this.#failure = new PserverError("NOT_OWNER", text, { shard });
        this.#requests?.close();
        onRecovered(manifest);
      },
    });
  }
}

/**
 * What `status` shows of who sends to the shard, and what was of no use. One entry, because a message
 * has room for few.
 */
function senders(shard: Shard | undefined, refusedRequests: number): Fields {
  if (shard === undefined) return { refusedRequests };
  const { refusedOf, unreadableOf, ...counts } = shard.senders;
  return {
    ...counts,
    refusedRequests,
    refusedOf: most(refusedOf),
    unreadableOf: most(unreadableOf),
  };
}

/** The trainers with the largest counts, those first. */
function most(counts: readonly CountRow[]): CountRow[] {
  return [...counts].sort(([, a], [, b]) => b - a).slice(0, WASTEFUL_MAX);
}

/** What `status` shows of the steps of a job that has some. */
function stepEntries(shard: Shard | undefined): Fields {
  if (shard === undefined || shard.synchronization.mode === "async") return {};
  const { revision, closed, memberCount } = shard.steps;
  return { steps: { revision, members: memberCount, closed } };
}

function errorEntry(error: PserverError | undefined): Fields {
  return error === undefined ? {} : { error: error.toWire() };
}
