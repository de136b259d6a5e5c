import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { ensureError, type Fields, type Position, PserverError } from "../../protocol/index.ts";
import type { BlockHeader } from "../fold/block.ts";
import { CURRENT_RULES } from "../fold/rules.ts";
import type { Shard } from "../fold/shard.ts";
import { RetryLimit } from "../journal/retry-limit.ts";
import { LossReports } from "./loss-reports.ts";
import { MarkWriter } from "./mark-writer.ts";
import { OwnershipProof } from "./ownership-proof.ts";
import { isDeposed, recoverShard } from "./recover-shard.ts";
import { RecoveryWatch } from "./recovery-watch.ts";
import { serveShard } from "./serve-shard.ts";
import type { ServingShard } from "./serving-shard.ts";
import type { OwnerState, ShardOwnerDeps } from "./shard-owner-deps.ts";
import { refusingHandler, ShardRequests } from "./shard-requests.ts";
import { errorEntry, sendersEntry, stepsEntry, UNRECOVERED } from "./shard-status.ts";

/** Pause after a failed attempt to take the shard over. */
const RETRY_MS = 500;

/** A shard that does not fit into the host's memory. */
interface LackingMemory {
  readonly error: PserverError;
  /** Bytes of its values and slots. */
  readonly valueBytes: number;
}

/** Owns one shard: takes it over, and serves it until it is closed, deposed or finds a loss. */
export class ShardOwner {
  readonly #deps: ShardOwnerDeps;
  readonly #reports: LossReports;
  readonly #marks: MarkWriter;
  readonly #proof: OwnershipProof;
  /** Token of the present take-over. */
  #owner = "";
  /** Token in the newest manifest, once that is this owner's. */
  #fence: string | undefined;
  #serving: ServingShard | undefined;
  /** Answers requests while there is no shard that could. */
  #refusing: ShardRequests | undefined;
  /** Last error of an attempt to take the shard over. */
  #trouble: PserverError | undefined;
  #failure: PserverError | undefined;
  #lacking: LackingMemory | undefined;
  /** Bytes of values that memory was last reserved for. */
  #reservedBytes = 0;
  #hasFailed = false;
  #closed = false;
  /** Ends when the shard is taken over, or cannot be. */
  #takingOver: Promise<void> = Promise.resolve();
  #recovery: RecoveryWatch | undefined;

  constructor(deps: ShardOwnerDeps) {
    this.#deps = deps;
    this.#reports = new LossReports(deps.onLossReported);
    this.#marks = new MarkWriter(deps.marks, deps.onMarkFailed);
    this.#proof = new OwnershipProof(deps.tenure);
  }

  /** Takes the shard over and starts to fold; `onServing` is called when it has caught up. */
  start(): Promise<void> {
    this.#takingOver = this.#tryToTakeOver();
    return this.#takingOver;
  }

  async #tryToTakeOver(): Promise<void> {
    const limit = new RetryLimit();
    while (!this.#closed) {
      try {
        if (this.#lacking !== undefined) this.#reserve(this.#lacking.valueBytes);
        await this.#takeOver();
        return;
      } catch (error) {
        this.#trouble = ensureError(error);
        // NOT_OWNER: somebody else takes it over at the same time, but has no lease.
        if (limit.isReachedBy(this.#trouble) && this.#trouble.code !== "NOT_OWNER") {
          this.#fail(this.#trouble);
          return;
        }
        await delay(RETRY_MS);
      }
    }
  }

  /**
   * Goes on after the lease was claimed anew, once the broker confirms that no other host has taken the shard
   * over meanwhile; if one has, takes it over again. Nothing is answered before.
   */
  async resume(): Promise<void> {
    const serving = this.#serving;
    const limit = new RetryLimit();
    // A take-over under way resumes when it is done, a lease that has run out when it is claimed again.
    while (serving !== undefined && this.#isLive(serving) && this.#proof.isLeaseHeld) {
      try {
        await this.#proof.by(() => serving.confirm());
        this.#trouble = undefined;
        if (!this.#proof.holds) continue;
        if (this.isServing) this.#deps.onServing();
        return;
      } catch (error) {
        this.#trouble = ensureError(error);
        if (!this.#isLive(serving)) return;
        if (this.#trouble.code === "NOT_OWNER") return this.#startAnew(this.#trouble);
        if (limit.isReachedBy(this.#trouble)) return this.#fail(this.#trouble);
        await delay(RETRY_MS);
      }
    }
  }

  /** Whether this is the shard that was taken over last, and goes on. */
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

  /** Recovers the shard and prepares it for serving; undefined if this owner was closed meanwhile. */
  async #recover(): Promise<ServingShard | undefined> {
    const { shard, memory } = this.#deps;
    const owner = randomUUID();
    this.#owner = owner;
    this.#fence = undefined;
    const recovered = await recoverShard({
      ...this.#deps,
      owner,
      reserve: (valueBytes, blocks) => this.#reserve(valueBytes, blocks),
    });
    this.#fence = owner;
    if (this.#closed) return undefined;
    memory.holds(shard, recovered.shard.memory.memoryBytes);
    this.#reservedBytes = recovered.shard.valueBytes;
    this.#hasMemory();
    return await serveShard(
      {
        ...this.#deps,
        owner,
        fits: (folded) => this.#fits(folded),
        mayAnswer: () => this.#mayAnswer,
        onFailure: (error) => this.#fail(error),
        onLost: (error, wanted) => this.#reports.add(error, wanted),
        status: () => this.status(),
      },
      recovered,
    );
  }

  /** An error may be given as soon as the lease is held: if another host has repaired the shard, that shows soon. */
  get #mayAnswer(): boolean {
    return this.#hasFailed ? this.#proof.isLeaseHeld : this.#proof.holds;
  }

  /** Drops what was folded, and takes the shard over anew. */
  #startAnew(reason: PserverError): void {
    this.#serving?.stop();
    this.#serving?.close(reason);
    this.#serving = undefined;
    void this.start();
  }

  /** Reserves memory. @throws NO_MEMORY, which askers get, too, until a later call succeeds. */
  #reserve(valueBytes: number, blocks: Iterable<BlockHeader> = [], heldBytes = 0): void {
    const { shard, memory, onNoMemory } = this.#deps;
    if (this.#closed) return;
    try {
      memory.reserve(shard, valueBytes, heldBytes);
    } catch (thrown) {
      const error = ensureError(thrown);
      const isNew = this.#lacking === undefined;
      this.#lacking = { error, valueBytes };
      if (isNew) {
        this.#refuse(() => this.#lacking?.error ?? error).open(blocks);
        onNoMemory(error);
      }
      throw error;
    }
  }

  /**
   * Whether the host has memory for the blocks that a shard has folded while catching up, which its
   * snapshot does not have. If not, the shard is dropped, and waits as one whose snapshot does not fit.
   */
  #fits(shard: Shard): boolean {
    if (shard.valueBytes === this.#reservedBytes) return true;
    this.#reservedBytes = shard.valueBytes;
    try {
      this.#reserve(shard.valueBytes, shard.blocks(), shard.memory.memoryBytes);
      return true;
    } catch (error) {
      // It is kept for askers and was reported.
      this.#startAnew(ensureError(error));
      return false;
    }
  }

  /** Notes that the host has memory for the shard. */
  #hasMemory(): void {
    if (this.#lacking === undefined) return;
    this.#lacking = undefined;
    this.#refusing?.close();
    this.#refusing = undefined;
  }

  /**
   * Ends the fold of a shard whose journal may go with the broker: folds what the journal holds, and stores a
   * snapshot of that. Tries again after errors that can pass, until the owner is closed. Does nothing for a shard
   * that has failed, or does not fit into the memory: its last snapshot is all that there is of it.
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

  /** Writes the last record that it has folded into the mark. Failures are reported, not thrown. */
  mark(): Promise<void> {
    return this.#marks.write(this.#serving?.head);
  }

  /** The reply to `status`. What goes wrong with it is told in it. */
  status(): Fields {
    try {
      return this.#statusEntries();
    } catch (error) {
      const { shard } = this.#deps;
      return { shard, state: this.#state, ...UNRECOVERED, ...errorEntry(ensureError(error)) };
    }
  }

  #statusEntries(): Fields {
    const { shard: number, memory, marks } = this.#deps;
    const serving = this.#serving;
    const shard = serving?.shard;
    if (shard !== undefined && !this.#closed) memory.holds(number, shard.memory.memoryBytes);
    const { generation } = this.position();
    const fallbacks = serving?.fallbacks ?? [];
    const refusedRequests = (serving?.refusedRequests ?? 0) + (this.#refusing?.refused ?? 0);
    return {
      shard: number,
      state: this.#state,
      ...(serving?.status() ?? UNRECOVERED),
      rules: shard?.rules ?? 0,
      rulesKnown: CURRENT_RULES,
      markedSeq: marks.last?.generation === generation ? marks.last.seq : 0,
      senders: sendersEntry(shard, refusedRequests),
      ...this.#reports.entry(),
      ...(fallbacks.length === 0 ? {} : { fallbacks }),
      ...stepsEntry(shard),
      ...errorEntry(this.#failure ?? this.#trouble),
    };
  }

  /**
   * Stops folding and answering at once; the journal holds all records. Resolves when its last mark
   * is written, or cannot be.
   */
  close(): Promise<void> {
    const { shard, memory } = this.#deps;
    const head = this.#serving?.head;
    this.#closed = true;
    this.#recovery?.stop();
    this.#serving?.stop();
    this.#refusing?.close();
    memory.release(shard);
    this.#serving?.close(new PserverError("NOT_OWNER", `shard ${shard} is being handed over`));
    return this.#marks.finish(head);
  }

  /** Receives requests and refuses them with an error. */
  #refuse(error: () => PserverError): ShardRequests {
    this.#refusing?.close();
    const mayAnswer = (): boolean => this.#proof.isLeaseHeld;
    const deps = { ...this.#deps, connection: this.#deps.dataConnection, mayAnswer };
    this.#refusing = new ShardRequests(deps, refusingHandler(error));
    return this.#refusing;
  }

  #fail(error: PserverError): void {
    if (this.#closed || this.#hasFailed) return;
    this.#hasFailed = true;
    this.#serving?.stop();
    const { shard, store } = this.#deps;
    void isDeposed(error, store, this.#fence).then((deposed) => {
      const message = `shard ${shard}: another host has taken it over, and removed records since`;
      this.#report(deposed ? new PserverError("NOT_OWNER", message, { shard }) : error);
    });
  }

  /** Tells askers and the worker of a failure. */
  #report(error: PserverError): void {
    this.#failure = error;
    if (this.#closed) return;
    if (error.code === "NOT_OWNER") {
      this.#stopAnswering(error);
    } else {
      // A failed shard answers with its error, so that askers do not wait for an owner.
      const failure = (): PserverError => this.#failure ?? error;
      if (this.#serving !== undefined) this.#serving.fail(failure);
      else this.#refuse(failure).openFailed();
      this.#watchForRecovery();
    }
    this.#deps.onFailure(error);
  }

  #stopAnswering(error: PserverError): void {
    this.#serving?.close(error);
    this.#refusing?.close();
  }

  #watchForRecovery(): void {
    const { store, leaseMs: everyMs, onRecovered, shard } = this.#deps;
    this.#recovery = new RecoveryWatch({
      store,
      owner: this.#owner,
      everyMs,
      onRecovered: (manifest) => {
        const text = `shard ${shard} was recovered under generation ${manifest.generation}`;
        this.#failure = new PserverError("NOT_OWNER", text, { shard });
        this.#stopAnswering(this.#failure);
        onRecovered(manifest);
      },
    });
  }
}
