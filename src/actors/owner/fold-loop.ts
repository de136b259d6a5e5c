import { setTimeout as delay } from "node:timers/promises";
import { ensureError, PserverError } from "../../protocol/index.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
import type { Settled, Shard } from "../fold/shard.ts";
import type { JournalReader } from "../journal/reader.ts";
import { isFinal } from "../journal/retry-limit.ts";
import { FoldQueue } from "./fold-queue.ts";
import { type JournalGap, journalDamaged } from "./journal-gap.ts";
import type { LocatedJournal } from "./owned-journal.ts";
import type { Pace } from "./pace.ts";

/** Time to collect more mismatched records before all of them are read again. */
const COLLECT_MS = 5;

/** Callbacks of a {@link FoldLoop}. */
export interface FoldLoopEvents {
  /** Says, before each reading, where the journal continues; may replace the journal. */
  readonly locate: () => Promise<LocatedJournal>;
  /** Whether the fold may go on; asked before each record, and again after {@link FoldLoop.poke}. */
  readonly mayFold: () => boolean;
  readonly onSettled: (settled: Settled) => void;
  /** Called soon after records were folded, once for several, with their bytes in the stream. */
  readonly onAdvanced: (bytes: number) => void;
  /**
   * Called when records are missing before the next one. Folding continues when it resolves, ends
   * after a final error, and starts with a new reading of the journal after any other error.
   */
  readonly onGap: (gap: JournalGap) => Promise<void>;
  /** Called once when folding cannot go on. */
  readonly onFailure: (error: PserverError) => void;
}

/** Dependencies of {@link FoldLoop}. */
export interface FoldLoopDeps {
  /** Number of the shard. */
  readonly number: number;
  readonly shard: Pick<Shard, "seq" | "apply" | "expect">;
  readonly reader: JournalReader;
  readonly pace: Pace;
  readonly events: FoldLoopEvents;
}

/** Reads the journal of a shard into its {@link FoldQueue}, and does what the queue asks for. */
export class FoldLoop {
  readonly #deps: FoldLoopDeps;
  readonly #queue: FoldQueue;
  /** Whether folding waits for the end of {@link #hold}. */
  #isHeld = false;
  #stopped = false;
  /** Bytes folded when the owner was last told. */
  #toldBytes = 0;
  #isTelling = false;
  /** Generation of the journal that is read. */
  #generation = 0;

  constructor(deps: FoldLoopDeps) {
    const { shard, events } = deps;
    const { mayFold, onSettled } = events;
    this.#deps = deps;
    this.#queue = new FoldQueue({ shard, mayFold, onSettled });
  }

  /** Starts to read. */
  start(): Promise<void> {
    return this.#deps.reader.start({
      locate: () => this.#locate(),
      onRecord: (record) => this.#receive(record),
      onFailure: (error) => this.#fail(error),
    });
  }

  /** Reads anew after the connection was lost. */
  reconnected(): Promise<void> {
    return this.#deps.reader.reconnected();
  }

  /** Folds what is queued as far as possible. */
  poke(): void {
    if (this.#isHeld || this.#stopped) return;
    const before = this.#queue.foldedRecords;
    const stop = this.#queue.fold();
    const folded = this.#queue.foldedRecords - before;
    if (folded > 0) this.#tellSoon();
    if (stop.kind === "gap") void this.#hold(() => this.#deps.events.onGap(stop.gap));
    else if (stop.kind === "reread") void this.#hold(() => this.#readAgain());
    else if (stop.kind === "failed") this.#fail(stop.error);
    if (folded > 0 && !this.#stopped) this.#deps.reader.taken(folded);
  }

  /** Stops folding at once. */
  stop(): void {
    this.#stopped = true;
    this.#deps.reader.stop();
    this.#queue.clear();
  }

  async #locate(): Promise<{ stream: string; startSeq: number }> {
    // The queued records are of a journal that has to be checked again: they are read again.
    this.#queue.clear();
    const { stream, generation, noted } = await this.#deps.events.locate();
    this.#generation = generation;
    this.#deps.shard.expect(noted);
    return { stream, startSeq: this.#queue.startSeq };
  }

  #receive(record: JournalRecord): void {
    this.#queue.add(record);
    this.poke();
    this.#queue.keepPayload(record);
  }

  #tellSoon(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    this.#deps.pace.soon(() => {
      const bytes = this.#queue.foldedBytes - this.#toldBytes;
      this.#toldBytes += bytes;
      this.#isTelling = false;
      if (!this.#stopped) this.#deps.events.onAdvanced(bytes);
    });
  }

  /** Reads mismatched records again, together with those that arrive within a moment. */
  async #readAgain(): Promise<void> {
    await delay(COLLECT_MS);
    if (this.#stopped) return;
    if (!this.#queue.rememberMismatched()) {
      throw journalDamaged(this.#deps.number, this.#queue.startSeq, undefined);
    }
    await this.#deps.reader.reset();
  }

  /** Folds nothing until `work` is done. */
  async #hold(work: () => Promise<void>): Promise<void> {
    this.#isHeld = true;
    try {
      await work();
    } catch (error) {
      const found = ensureError(error);
      // A broker without JetStream for a while is not the end of a shard either.
      const isTransient = found.retryable || found.code === "NO_JETSTREAM";
      if (isTransient && !isFinal(found)) void this.#deps.reader.reset();
      else this.#fail(found);
    } finally {
      this.#isHeld = false;
      this.poke();
    }
  }

  #fail(error: PserverError): void {
    if (this.#stopped) return;
    this.stop();
    this.#deps.events.onFailure(inGeneration(error, this.#generation));
  }
}

/** The error for a record that cannot be folded, with the generation of its journal; others as they are. */
function inGeneration(error: PserverError, generation: number): PserverError {
  if (error.code !== "FOLD_FAILED") return error;
  const message = `${error.message} (generation ${generation})`;
  return new PserverError(error.code, message, { ...error.details, generation }, { cause: error });
}
