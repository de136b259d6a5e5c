import { setTimeout as delay } from "node:timers/promises";
import { ensureError, PserverError } from "../../protocol/index.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
import type { RecordAnswer, Shard } from "../fold/shard.ts";
import { type JournalGap, journalDamaged } from "../journal/journal-check.ts";
import { type DeliveredRecord, isFinal, type JournalReader } from "../journal/journal-reader.ts";
import { MismatchedRecords, type RecordCopy } from "../journal/mismatched-records.ts";
import { type ReplicaDamage, replicaDamageOf } from "../journal/replicas.ts";
import type { LocatedJournal } from "./owned-journal.ts";

/** Bytes that the broker stores for a record besides its subject and payload. */
const RECORD_OVERHEAD_BYTES = 30;

/** Why a {@link FoldQueue} stopped folding. */
type FoldStop =
  /** All queued records are folded, or the owner does not let it fold now. */
  | { readonly kind: "idle" }
  /** Records are missing before the next queued one. */
  | { readonly kind: "gap"; readonly gap: JournalGap }
  /** The next record does not match its checksum and has to be delivered again. */
  | { readonly kind: "reread" }
  /** Folding cannot go on. */
  | { readonly kind: "failed"; readonly error: PserverError; readonly broker: string | undefined };

/** What a {@link FoldQueue} asks and tells. */
interface FoldQueueEvents extends Pick<FoldLoopEvents, "mayFold" | "onSettled" | "onFolded"> {
  /**
   * Called when a record is folded that another broker had delivered with a wrong checksum; `isSame` if with the
   * same bytes.
   */
  onReread(seq: number, broker: string, isSame: boolean): void;
}

const IDLE: FoldStop = { kind: "idle" };
const REREAD: FoldStop = { kind: "reread" };

/**
 * Folds the records of a journal in order, each as soon as it may, and tells what has to happen before the next one.
 * Does no I/O.
 *
 * A record that does not match its checksum is folded, as unreadable, only when it has come twice with the same
 * bytes: then it is stored like that, and every owner folds the same.
 */
export class FoldQueue {
  readonly #shard: Pick<Shard, "seq" | "apply">;
  readonly #events: FoldQueueEvents;
  readonly #mismatched: MismatchedRecords = new MismatchedRecords();
  #records: RecordCopy[] = [];
  #foldedRecords = 0;
  #foldedBytes = 0;
  #lastRecordMs: number | undefined;

  constructor(shard: Pick<Shard, "seq" | "apply">, events: FoldQueueEvents) {
    this.#shard = shard;
    this.#events = events;
  }

  /** Sequence of the first record that has to be read after {@link clear}. */
  get startSeq(): number {
    return this.#shard.seq + 1;
  }

  /** Number of records folded so far. */
  get foldedRecords(): number {
    return this.#foldedRecords;
  }

  /** When the broker stored the last of them, in milliseconds since 1970; undefined before the first. */
  get lastRecordMs(): number | undefined {
    return this.#lastRecordMs;
  }

  /** Bytes of those records in the stream. */
  get foldedBytes(): number {
    return this.#foldedBytes;
  }

  /** Adds a record as it was delivered; {@link keepPayload} must follow once {@link fold} was called. */
  add(record: RecordCopy): void {
    this.#records.push(record);
  }

  /** Copies the payload of the record added last if it is still queued: its buffer is only lent. */
  keepPayload(record: RecordCopy): void {
    if (this.#records.at(-1) !== record) return;
    this.#records[this.#records.length - 1] = {
      ...record,
      payload: Uint8Array.from(record.payload),
    };
  }

  /** Forgets the queued records; they have to be read again. */
  clear(): void {
    this.#records = [];
  }

  /** Folds queued records as far as possible. */
  fold(): FoldStop {
    let stop = IDLE;
    let folded = 0;
    let startedMs = performance.now();
    for (const record of this.#records) {
      if (!this.#events.mayFold()) break;
      stop = this.#isAfterGap(record)
        ? { kind: "gap", gap: { from: this.startSeq, to: record.seq - 1 } }
        : this.#apply(record);
      if (stop !== IDLE) break;
      folded += 1;
      const endedMs = performance.now();
      this.#events.onFolded((endedMs - startedMs) / 1_000);
      startedMs = endedMs;
    }
    // `mayFold` may have cleared the queue.
    this.#records = folded >= this.#records.length ? [] : this.#records.slice(folded);
    return stop;
  }

  /**
   * Remembers which queued records do not match their checksums, to compare them when they are
   * delivered again; false if one of them never comes twice with the same bytes.
   */
  rememberMismatched(): boolean {
    return this.#mismatched.remember(this.#records);
  }

  /** The brokers whose copies the queued records are from; none unless several brokers have copies. */
  get brokers(): ReadonlySet<string> {
    return new Set(this.#records.flatMap(({ broker }) => broker ?? []));
  }

  #isAfterGap({ seq }: JournalRecord): boolean {
    return seq > this.startSeq;
  }

  #apply(record: RecordCopy): FoldStop {
    const { seq, subject, payload, timeMs = 0, broker } = record;
    const reread = this.#mismatched.isConfirmedBy(record);
    try {
      const settled = this.#shard.apply({ seq, subject, payload, reread, timeMs });
      if (settled !== undefined) this.#events.onSettled(settled, record);
    } catch (error) {
      const found = ensureError(error);
      return found.code === "BAD_CHECKSUM" && !reread
        ? REREAD
        : { kind: "failed", error: found, broker };
    }
    const other = this.#mismatched.brokerOf(seq);
    if (other !== undefined && other !== broker) this.#events.onReread(seq, other, reread);
    this.#foldedRecords += 1;
    this.#lastRecordMs = timeMs;
    this.#foldedBytes += payload.length + subject.length + RECORD_OVERHEAD_BYTES;
    return IDLE;
  }
}

/** Time to collect more mismatched records before all of them are read again. */
const COLLECT_MS = 5;

/** Requests and reports of a {@link FoldLoop} to whoever owns the shard. */
export interface FoldLoopEvents {
  /** Returns, before each reading, where the journal continues; may replace the journal. */
  locate(): Promise<LocatedJournal>;
  /** Whether the fold may go on; asked before each record, and again after {@link FoldLoop.poke}. */
  mayFold(): boolean;
  /** Called for each record that was folded, with the seconds that this has taken. */
  onFolded(seconds: number): void;
  /** Takes the answer to a record that was folded. */
  onSettled(settled: RecordAnswer, record: JournalRecord): void;
  /** Called soon after records were folded, once for several, with their bytes in the stream. */
  onAdvanced(bytes: number): void;
  /**
   * Called when records are missing before the next one. Folding continues when it resolves, ends
   * after a final error, and starts with a new reading of the journal after any other error.
   */
  onGap(gap: JournalGap): Promise<void>;
  /** Called when one copy of a replicated journal is damaged and another one is used. */
  onReplicaDamaged(damage: ReplicaDamage): void;
  /**
   * Called once when folding cannot go on. `copy`: what is wrong with the copy of a replicated journal that was
   * folded, if another copy may be what was folded before.
   */
  onFailure(error: PserverError, copy?: ReplicaDamage): void;
}

/** Dependencies of {@link FoldLoop}. */
interface FoldLoopDeps {
  /** Number of the shard. */
  readonly number: number;
  readonly shard: Pick<Shard, "seq" | "apply" | "expect">;
  readonly reader: JournalReader;
  readonly coalescer: Coalescer;
  readonly events: FoldLoopEvents;
}

/** Reads the journal of a shard into its {@link FoldQueue}, and does what the queue asks for. */
export class FoldLoop {
  readonly #deps: FoldLoopDeps;
  readonly #queue: FoldQueue;
  /** Whether folding is paused until {@link #hold} ends. */
  #isHeld = false;
  #stopped = false;
  /** Bytes folded when {@link FoldLoopEvents.onAdvanced} was last called. */
  #toldBytes = 0;
  #isTelling = false;
  /** Generation of the journal that is read. */
  #generation = 0;

  constructor(deps: FoldLoopDeps) {
    this.#deps = deps;
    const { events, reader } = deps;
    this.#queue = new FoldQueue(deps.shard, {
      mayFold: () => events.mayFold(),
      onFolded: (seconds) => events.onFolded(seconds),
      onSettled: (settled, record) => events.onSettled(settled, record),
      onReread: (seq, broker, isSame) => {
        if (isSame) reader.allow(broker);
        else events.onReplicaDamaged({ broker, from: seq, to: seq, isOther: false });
      },
    });
  }

  /** When the broker stored the last folded record, in milliseconds since 1970; undefined before the first. */
  get lastRecordMs(): number | undefined {
    return this.#queue.lastRecordMs;
  }

  /** The last record that the journal is known to hold. */
  get endSeq(): number {
    return this.#deps.reader.endSeq;
  }

  /** Starts to read. */
  start(): Promise<void> {
    return this.#deps.reader.start({
      locate: () => this.#locate(),
      onRecord: (record) => this.#receive(record),
      onReplicaDamaged: (damage) => this.#deps.events.onReplicaDamaged(damage),
      onFailure: (error) => this.#fail(error),
    });
  }

  /** Reads again after the connection was lost. */
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
    else if (stop.kind === "failed") this.#fail(stop.error, stop.broker);
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

  #receive(record: DeliveredRecord): void {
    this.#queue.add(record);
    this.poke();
    this.#queue.keepPayload(record);
  }

  #tellSoon(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    this.#deps.coalescer.soon(() => {
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
    const { reader } = this.#deps;
    for (const broker of this.#queue.brokers) reader.avoid(broker);
    await reader.reset();
  }

  /** Folds nothing until `work` is done. */
  async #hold(work: () => Promise<void>): Promise<void> {
    this.#isHeld = true;
    try {
      await work();
    } catch (error) {
      const found = ensureError(error);
      // A broker without JetStream for a while does not end a shard either.
      const isTransient = found.retryable || found.code === "NO_JETSTREAM";
      if (isTransient && !isFinal(found)) void this.#deps.reader.reset();
      else this.#fail(found);
    } finally {
      this.#isHeld = false;
      this.poke();
    }
  }

  #fail(error: PserverError, broker?: string): void {
    if (this.#stopped) return;
    this.stop();
    const copy = broker === undefined ? undefined : replicaDamageOf(error, broker);
    this.#deps.events.onFailure(inGeneration(error, this.#generation), copy);
  }
}

/**
 * Returns the error for a record that cannot be folded with the generation of its journal, and other errors as they
 * are.
 */
function inGeneration(error: PserverError, generation: number): PserverError {
  if (error.code !== "FOLD_FAILED") return error;
  const message = `${error.message} (generation ${generation})`;
  return new PserverError(error.code, message, { ...error.details, generation }, { cause: error });
}

/** Work that comes sooner than this after the last run is delayed to be joined with more. */
const QUIET_MS = 0.3;

/** Length of that delay. */
const GATHER_MS = 1;

/**
 * Joins the work that the shards of a worker have after records, above all their answers: each write to the broker
 * costs as much as folding a small record. Work that comes alone runs in the same turn of the event loop; where
 * records follow each other closely, it is delayed by about a millisecond.
 */
export class Coalescer {
  readonly #now: () => number;
  #waiting: (() => void)[] = [];
  #ranAtMs = Number.NEGATIVE_INFINITY;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Runs `work` soon, in the order of the calls. */
  soon(work: () => void): void {
    this.#waiting.push(work);
    if (this.#waiting.length > 1) return;
    const run = (): void => this.#run();
    if (this.#now() - this.#ranAtMs >= QUIET_MS) setImmediate(run);
    else setTimeout(run, GATHER_MS);
  }

  #run(): void {
    this.#ranAtMs = this.#now();
    for (const work of this.#waiting.splice(0)) work();
  }
}
