import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  encodeMessage,
  ensureError,
  type Fields,
  type Position,
  PserverError,
  quoteName,
} from "../../protocol/index.ts";
import type { BlockHeader } from "../fold/block-actor.ts";
import type { Shard } from "../fold/shard.ts";
import type { CountRow } from "../fold/trainer-table.ts";
import { RetryLimit } from "../journal/journal-reader.ts";
import type { Manifest } from "../journal/manifest.ts";
import { type ReplicaDamage, replicaDamaged } from "../journal/replicas.ts";
import type { SnapshotStore } from "../journal/snapshot-store.ts";
import { WatermarkWriter } from "../journal/watermark-keeper.ts";
import type { WantedPosition } from "./pending-reads.ts";
import { isDeposed, recoverShard } from "./recover-shard.ts";
import { type ServingOwner, ServingShard, type ShardContext } from "./serving-shard.ts";
import { type RequestHandler, refusingHandler, ShardSubscriptions } from "./subscriptions.ts";
import { type TakeOverProgress, takingOver } from "./take-over.ts";

/**
 * Tells whether the owner of a shard is known to own it at this moment: its lease is held, and since the lease was
 * claimed the broker has taken a manifest of this owner. Without that manifest another host may have owned the shard
 * before the claim, and acknowledged records that this one has not folded.
 */
class OwnershipProof {
  readonly #tenure: () => bigint | undefined;
  /** The tenure in which the broker last took a manifest of this owner. */
  #proven: bigint | undefined;

  /** `tenure`: returns that of the shard's lease; undefined while the lease is not held. */
  constructor(tenure: () => bigint | undefined) {
    this.#tenure = tenure;
  }

  /** Whether the lease is held. */
  get isLeaseHeld(): boolean {
    return this.#tenure() !== undefined;
  }

  /** Whether the shard is known to be owned; false at once when the lease runs out. */
  get holds(): boolean {
    const tenure = this.#tenure();
    return tenure !== undefined && tenure === this.#proven;
  }

  /**
   * Runs a commit, by which the broker takes a manifest of this owner: that proves the tenure in which the commit
   * began.
   */
  async by<Result>(commit: () => Promise<Result>): Promise<Result> {
    const tenure = this.#tenure();
    const result = await commit();
    this.#proven = tenure;
    return result;
  }
}

/** Dependencies of {@link RecoveryWatch}. */
interface RecoveryWatchDeps {
  readonly store: Pick<SnapshotStore, "lastManifest">;
  /** Token of the owner that has failed. */
  readonly owner: string;
  readonly everyMs: number;
  /** Called once when the newest manifest is another owner's. */
  readonly onRecovered: (manifest: Manifest) => void;
}

/**
 * Polls for the recovery of a failed shard: `pserver recover` writes a manifest of its own, and does not notify the
 * host that has failed.
 */
export class RecoveryWatch {
  readonly #deps: RecoveryWatchDeps;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  /** Sequence of another owner's manifest without a journal that the last poll found. */
  #unfinished: number | undefined;

  constructor(deps: RecoveryWatchDeps) {
    this.#deps = deps;
    this.#wait();
  }

  /** Stops polling. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #wait(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.#look(), this.#deps.everyMs);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    const { store, owner, onRecovered } = this.#deps;
    try {
      const last = await store.lastManifest();
      if (last !== undefined && last.manifest.owner !== owner) {
        // The recovery creates the journal next. If it has died, the next poll finds the manifest unchanged.
        if (last.manifest.created !== "" || last.seq === this.#unfinished) {
          if (!this.#stopped) onRecovered(last.manifest);
          return;
        }
        this.#unfinished = last.seq;
      }
    } catch {
      // The broker does not answer, or the manifest is damaged: the next poll may succeed.
    }
    this.#wait();
  }
}

/** Minimum time between two messages to the operator; all reports are counted. */
const REPORT_INTERVAL_MS = 60_000;

/**
 * Reports of askers that have seen a later record than the journal of a shard holds. Either the journal has lost
 * records unnoticed, or the asker names a record that never existed; so the operator is told, and the shard goes on.
 */
export class LossReports {
  readonly #onReport: (error: PserverError) => void;
  readonly #now: () => number;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  #count = 0;
  #last: Fields | undefined;

  constructor(onReport: (error: PserverError) => void, now = (): number => performance.now()) {
    this.#onReport = onReport;
    this.#now = now;
  }

  /** Adds a report. */
  add({ code, message, details }: PserverError, { asker, generation, seq }: WantedPosition): void {
    this.#count += 1;
    this.#last = { asker, generation, seq, count: this.#count };
    if (this.#now() - this.#toldAtMs < REPORT_INTERVAL_MS) return;
    this.#toldAtMs = this.#now();
    this.#onReport(
      new PserverError(code, `${message}; asker: ${quoteName(asker)}`, { ...details, asker }),
    );
  }

  /** Makes the entry of `status`: the last report and the number of reports; none without a report. */
  entry(): Fields {
    return this.#last === undefined ? {} : { reportedLoss: this.#last };
  }
}

/** Limit of the trainers that `status` names for rejected or unreadable records. */
const TRAINERS_MAX = 16;

/** Entries of `status` for a shard that is not taken over. */
const UNRECOVERED: Fields = {
  ...{ generation: 0, seq: 0, term: 0, snapshotSeq: 0, oldestSeq: 0, blocks: 0, valueBytes: 0 },
  updates: { applied: 0, rejected: 0, guarded: { reject: 0, clip: 0, "set-aside": 0 } },
  ...{ endSeq: 0, journalBytes: 0, journalBytesMax: 0 },
};

/** Makes the entry of `status` that counts senders and their rejected and unreadable records. */
function sendersEntry(shard: Shard | undefined, refusedRequests: number): Fields {
  if (shard === undefined) return { refusedRequests };
  const { rejectedOf, unreadableOf, ...counts } = shard.senders;
  return {
    ...counts,
    refusedRequests,
    refusedOf: largestCounts(rejectedOf),
    unreadableOf: largestCounts(unreadableOf),
  };
}

/** Returns the trainers with the highest counts, in descending order. */
function largestCounts(counts: readonly CountRow[]): CountRow[] {
  return [...counts].sort(([, a], [, b]) => b - a).slice(0, TRAINERS_MAX);
}

/** Makes the entry about the steps or rounds of the shard; none in an `async` job. */
function stepsEntry(shard: Shard | undefined): Fields {
  if (shard === undefined || shard.synchronization.mode === "async") return {};
  const { revision, closed, memberCount } = shard.steps;
  if (shard.synchronization.mode !== "diloco") {
    return { steps: { revision, members: memberCount, closed } };
  }
  return { rounds: { revision, members: memberCount, ...roundCounts(shard) } };
}

/** Counts the fragments of a shard, their closed rounds, and what became of the contributions. */
function roundCounts(shard: Shard): Fields {
  const versions = shard.fragmentVersions();
  const { processed, merged, late, dropped } = shard.fragments.ledger.total;
  return {
    fragments: versions.length,
    closed: versions.reduce((sum, [, version]) => sum + version, 0),
    ...{ processed, merged, late, dropped },
    keptBytes: shard.fragments.keptBytes,
  };
}

/** Makes the entry about the error of the shard, if it has one. */
function errorEntry(error: PserverError | undefined): Fields {
  return error === undefined ? {} : { error: error.toWire() };
}

/** Pause after a failed attempt to take the shard over. */
const RETRY_MS = 500;

/** A shard that does not fit into the host's memory. */
interface LackingMemory {
  readonly error: PserverError;
  /** Bytes of its values and slots. */
  readonly valueBytes: number;
}

/** Owns one shard: takes it over, and serves it until it is closed, deposed or finds a loss. */
export class ShardOwner implements ServingOwner {
  readonly #context: ShardContext;
  readonly #reports: LossReports;
  readonly #watermarks: WatermarkWriter;
  readonly #proof: OwnershipProof;
  /** Copies of the journal that were found to be damaged, by the names of their brokers. */
  readonly #damaged: Map<string, ReplicaDamage> = new Map();
  /** Of these, the brokers whose copies are not what was folded before: their records are sound, but others. */
  readonly #differing: Set<string> = new Set();
  #token = "";
  /** Token in the newest manifest, once this owner has written it. */
  #fence: string | undefined;
  #serving: ServingShard | undefined;
  /** Refuses requests while no shard can answer them. */
  #refusing: ShardSubscriptions | undefined;
  /** Last error of an attempt to take the shard over. */
  #trouble: PserverError | undefined;
  #failure: PserverError | undefined;
  #lacking: LackingMemory | undefined;
  /** Bytes of values for which memory was last reserved. */
  #reservedBytes = 0;
  #hasFailed = false;
  #closed = false;
  /** Settles when the shard is taken over, or cannot be. */
  #takingOver: Promise<void> = Promise.resolve();
  #recovery: RecoveryWatch | undefined;

  constructor(context: ShardContext) {
    const { watermarks, tenure, listener } = context;
    this.#context = context;
    this.#reports = new LossReports((error) => listener.trouble("loss-reported", error));
    this.#watermarks = new WatermarkWriter(watermarks, (error) =>
      listener.trouble("mark-failed", error),
    );
    this.#proof = new OwnershipProof(tenure);
  }

  get token(): string {
    return this.#token;
  }

  /** Takes the shard over and starts to fold; its listener is called when it has caught up. */
  start(): Promise<void> {
    this.#takingOver = this.#tryToTakeOver();
    return this.#takingOver;
  }

  async #tryToTakeOver(): Promise<void> {
    const limit = new RetryLimit();
    while (!this.#closed) {
      try {
        if (this.#lacking === undefined) this.#refuseForNow();
        else this.#reserve(this.#lacking.valueBytes);
        await this.#takeOver();
        return;
      } catch (error) {
        this.#trouble = ensureError(error);
        // NOT_OWNER: somebody else takes it over at the same time, but has no lease.
        if (limit.isReachedBy(this.#trouble) && this.#trouble.code !== "NOT_OWNER") {
          this.fail(this.#trouble);
          return;
        }
        await delay(RETRY_MS);
      }
    }
  }

  /**
   * Goes on after the lease was claimed again, once the broker confirms that no other host has taken the shard over
   * in between; if one has, takes it over again. Nothing is answered before.
   */
  async resume(): Promise<void> {
    const serving = this.#serving;
    const limit = new RetryLimit();
    // A take-over that is under way resumes when it is done, and a lease that has run out when it is claimed again.
    while (serving !== undefined && this.#isLive(serving) && this.#proof.isLeaseHeld) {
      try {
        await this.#proof.by(() => serving.confirm());
        this.#trouble = undefined;
        if (!this.#proof.holds) continue;
        if (this.isServing) this.#context.listener.serving();
        return;
      } catch (error) {
        this.#trouble = ensureError(error);
        if (!this.#isLive(serving)) return;
        if (this.#trouble.code === "NOT_OWNER") return this.#restart(this.#trouble);
        if (limit.isReachedBy(this.#trouble)) return this.fail(this.#trouble);
        await delay(RETRY_MS);
      }
    }
  }

  /** Whether this is the shard that was taken over last and has not stopped. */
  #isLive(serving: ServingShard): boolean {
    return serving === this.#serving && !this.#closed && !this.#hasFailed;
  }

  async #takeOver(): Promise<void> {
    const serving = await this.#proof.by(() => this.#recover());
    if (this.#closed) {
      serving?.stop();
      return;
    }
    this.#serving = serving;
    this.#trouble = undefined;
    await serving?.start();
    if (!this.#proof.holds) await this.resume();
  }

  /** Recovers the shard and prepares it for serving; undefined if this owner was closed in between. */
  async #recover(): Promise<ServingShard | undefined> {
    const { shard, worker, store, journal, watermarks } = this.#context;
    const { subjects, host, memory } = worker;
    const owner = randomUUID();
    this.#token = owner;
    this.#fence = undefined;
    const recovered = await recoverShard({
      ...{ subjects, shard, host, owner, store, journal, watermarks },
      reserve: (valueBytes, blocks) => this.#reserve(valueBytes, blocks),
    });
    this.#fence = owner;
    if (this.#closed) return undefined;
    memory.holds(shard, recovered.shard.memory.memoryBytes);
    this.#reservedBytes = recovered.shard.valueBytes;
    this.#hasMemory();
    return await ServingShard.open(this.#context, this, recovered);
  }

  /**
   * Whether it may answer. A failed shard may give its error as soon as the lease is held: if another host has
   * repaired the shard, that shows soon.
   */
  get mayAnswer(): boolean {
    if (!this.#context.isLeaseRenewed()) return false;
    return this.#hasFailed ? this.#proof.isLeaseHeld : this.#proof.holds;
  }

  /** Drops the folded state, and takes the shard over again; the journal must then hold what was folded. */
  #restart(reason: PserverError): void {
    const marked = this.mark();
    this.#serving?.stop();
    this.#serving?.close(reason);
    this.#serving = undefined;
    this.#takingOver = marked.then(() => this.#tryToTakeOver());
  }

  /** Reserves memory. @throws NO_MEMORY, which askers also get until a later call succeeds. */
  #reserve(valueBytes: number, blocks: Iterable<BlockHeader> = [], heldBytes = 0): void {
    const { shard, worker, listener } = this.#context;
    if (this.#closed) return;
    try {
      worker.memory.reserve(shard, valueBytes, heldBytes);
    } catch (thrown) {
      const error = ensureError(thrown);
      const isNew = this.#lacking === undefined;
      this.#lacking = { error, valueBytes };
      if (isNew) {
        this.#refuse(() => this.#lacking?.error ?? error).open(blocks);
        listener.trouble("no-memory", error);
      }
      throw error;
    }
  }

  /**
   * Whether the host has memory for the blocks that a shard has folded while catching up, which its snapshot does not
   * have. If not, drops the shard, which then waits like one whose snapshot does not fit.
   */
  fits(shard: Shard): boolean {
    if (shard.valueBytes === this.#reservedBytes) return true;
    this.#reservedBytes = shard.valueBytes;
    try {
      this.#reserve(shard.valueBytes, shard.blocks(), shard.memory.memoryBytes);
      return true;
    } catch (error) {
      // It is kept for askers and was reported.
      this.#restart(ensureError(error));
      return false;
    }
  }

  /** Notes that the host has memory for the shard. */
  #hasMemory(): void {
    if (this.#lacking === undefined) return;
    this.#lacking = undefined;
    this.#refuseForNow();
  }

  /** Answers requests with how far the take-over has come, until the shard has caught up. */
  #refuseForNow(): void {
    if (this.#closed) return;
    const refuse = refusingHandler(() => takingOver(this.#progress));
    const { responder } = this.#context.worker;
    const ownerVerb: RequestHandler["ownerVerb"] = (data, asker, verb) => {
      if (verb !== "status") return refuse.ownerVerb(data, asker, verb);
      responder.respond(asker, () => encodeMessage({ status: this.status() }));
    };
    this.#receive({ ...refuse, ownerVerb }).open([]);
  }

  caughtUp(): void {
    this.#stopRefusing();
  }

  #stopRefusing(): void {
    this.#refusing?.close();
    this.#refusing = undefined;
  }

  get #progress(): TakeOverProgress {
    const { shard, store } = this.#context;
    const { folded, records } = this.#serving?.catchUp ?? { folded: 0, records: 0 };
    return { shard, loadedBytes: store.readBytes, folded, records };
  }

  /** Makes the entry about the take-over of the shard; none when it is over. */
  #takeOverEntry(): Fields {
    const state = this.#state;
    if (state !== "taking-over" && state !== "catching-up") return {};
    const { shard: _shard, ...takeOver } = this.#progress;
    return { takeOver };
  }

  /**
   * Ends the fold of a shard whose journal may go with the broker: folds what the journal holds, and stores a
   * snapshot of that. Tries again after errors that can pass, until the owner is closed. Does nothing for a shard
   * that has failed or does not fit into the memory: nothing newer than its last snapshot can be stored.
   * @throws the error that no second attempt can change.
   */
  async save(): Promise<void> {
    if (this.#lacking === undefined) await this.#takingOver;
    const serving = this.#serving;
    const limit = new RetryLimit();
    while (serving !== undefined && this.#isLive(serving)) {
      try {
        return await serving.save();
      } catch (thrown) {
        const error = ensureError(thrown);
        if (limit.isReachedBy(error)) throw error;
        await delay(RETRY_MS);
      }
    }
  }

  /** Checks the journal and reads on after the connection was lost. */
  async reconnected(): Promise<void> {
    await this.#serving?.reconnected();
  }

  /** Whether it has caught up and answers. */
  get isServing(): boolean {
    return this.#state === "serving";
  }

  get #state(): OwnerState {
    if (this.#hasFailed) return "failed";
    if (this.#closed) return "closed";
    if (this.#lacking !== undefined) return "no-memory";
    if (this.#serving === undefined) return "taking-over";
    return this.#serving.isServing ? "serving" : "catching-up";
  }

  /** Position of the fold; generation 0 before the shard is taken over. */
  position(): Position {
    return this.#serving?.position ?? { generation: 0, seq: 0 };
  }

  /** Writes the last record that it has folded into the watermark. Failures are reported, not thrown. */
  writeWatermark(): Promise<void> {
    return this.#watermarks.write(this.#serving?.foldProgress);
  }

  /** Makes the reply to `status`, which includes its error. */
  status(): Fields {
    try {
      return this.#statusEntries();
    } catch (error) {
      const { shard } = this.#context;
      return { shard, state: this.#state, ...UNRECOVERED, ...errorEntry(ensureError(error)) };
    }
  }

  #statusEntries(): Fields {
    const { shard: number, worker, watermarks } = this.#context;
    const serving = this.#serving;
    const shard = serving?.shard;
    if (shard !== undefined && !this.#closed) worker.memory.holds(number, shard.memory.memoryBytes);
    const { generation } = this.position();
    const fallbacks = serving?.fallbacks ?? [];
    const refusedRequests = (serving?.refusedRequests ?? 0) + (this.#refusing?.refused ?? 0);
    return {
      shard: number,
      state: this.#state,
      ...(serving?.statusEntries() ?? UNRECOVERED),
      rules: shard?.rules ?? 0,
      markedSeq: watermarks.last?.generation === generation ? watermarks.last.seq : 0,
      senders: sendersEntry(shard, refusedRequests),
      ...this.#reports.entry(),
      ...(this.#damaged.size === 0 ? {} : { damagedReplicas: [...this.#damaged.values()] }),
      ...(fallbacks.length === 0 ? {} : { fallbacks }),
      ...stepsEntry(shard),
      ...this.#takeOverEntry(),
      ...errorEntry(this.#failure ?? this.#trouble),
    };
  }

  /**
   * Stops folding and answering at once; the journal holds all records. Resolves when its last watermark is written,
   * or cannot be.
   */
  close(): Promise<void> {
    const { shard, worker } = this.#context;
    const progress = this.#serving?.foldProgress;
    this.#closed = true;
    this.#recovery?.stop();
    this.#serving?.stop();
    this.#refusing?.close();
    worker.memory.release(shard);
    this.#serving?.close(new PserverError("NOT_OWNER", `shard ${shard} is being handed over`));
    return this.#watermarks.writeNext(progress);
  }

  /** Receives requests and refuses them with an error. */
  #refuse(error: () => PserverError): ShardSubscriptions {
    return this.#receive(refusingHandler(error));
  }

  /** Receives requests with a handler that needs no recovered shard. */
  #receive(handler: RequestHandler): ShardSubscriptions {
    const { shard, worker } = this.#context;
    this.#stopRefusing();
    const { isLeaseRenewed } = this.#context;
    const mayAnswer = (): boolean => isLeaseRenewed() && this.#proof.isLeaseHeld;
    this.#refusing = new ShardSubscriptions(shard, worker, mayAnswer, handler);
    return this.#refusing;
  }

  lossFound(error: PserverError, wanted: WantedPosition): void {
    this.#reports.add(error, wanted);
  }

  get differingBrokers(): Iterable<string> {
    return this.#differing;
  }

  mark(): Promise<void> {
    return this.#watermarks.writeNext(this.#serving?.foldProgress);
  }

  replicaDamaged(damage: ReplicaDamage): void {
    const { shard, listener } = this.#context;
    if (this.#damaged.has(damage.broker)) return;
    this.#damaged.set(damage.broker, damage);
    listener.trouble("replica-damaged", replicaDamaged(shard, this.position().generation, damage));
  }

  fail(error: PserverError, copy?: ReplicaDamage): void {
    if (this.#closed || this.#hasFailed) return;
    if (copy !== undefined && this.#mayTryOthers(copy)) {
      this.replicaDamaged(copy);
      this.#restart(error);
      return;
    }
    this.#hasFailed = true;
    this.#serving?.stop();
    const { shard, store } = this.#context;
    void isDeposed(error, store, this.#fence).then((deposed) => {
      const message = `shard ${shard}: another host has taken it over, and removed records since`;
      this.#report(deposed ? new PserverError("NOT_OWNER", message, { shard }) : error);
    });
  }

  /**
   * Notes that the copy of a broker is not what was folded before. Returns whether the copies of other brokers decide:
   * not if most copies differ, because what most brokers hold is what they have acknowledged.
   */
  #mayTryOthers({ broker }: ReplicaDamage): boolean {
    this.#differing.add(broker);
    return 2 * this.#differing.size < this.#context.journal.replicas;
  }

  /** Reports a failure to askers and to the worker. */
  #report(error: PserverError): void {
    this.#failure = error;
    if (this.#closed) return;
    if (error.code === "NOT_OWNER") {
      this.#stopAnswering(error);
    } else {
      // A failed shard answers with its error, so that askers do not wait for an owner.
      const failure = (): PserverError => this.#failure ?? error;
      this.#stopRefusing();
      if (this.#serving !== undefined) this.#serving.fail(failure);
      else this.#refuse(failure).openFailed();
      this.#watchForRecovery();
    }
    this.#context.listener.trouble("failed", error);
  }

  #stopAnswering(error: PserverError): void {
    this.#serving?.close(error);
    this.#refusing?.close();
  }

  #watchForRecovery(): void {
    const { store, shard, worker, listener } = this.#context;
    this.#recovery = new RecoveryWatch({
      store,
      owner: this.#token,
      everyMs: worker.settings.leaseMs,
      onRecovered: (manifest) => {
        const text = `shard ${shard} was recovered under generation ${manifest.generation}`;
        this.#failure = new PserverError("NOT_OWNER", text, { shard });
        this.#stopAnswering(this.#failure);
        listener.recovered(manifest);
      },
    });
  }
}

/** State of an owner. */
type OwnerState = "taking-over" | "no-memory" | "catching-up" | "serving" | "failed" | "closed";
