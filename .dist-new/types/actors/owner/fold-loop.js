import { setTimeout as delay } from "node:timers/promises";
import { ensureError, PserverError } from "../../protocol/index.js";
import { journalDamaged } from "../journal/journal-check.js";
import { isFinal } from "../journal/journal-reader.js";
import { MismatchedRecords } from "../journal/mismatched-records.js";
import { replicaDamageOf } from "../journal/replicas.js";
/** Bytes that the broker stores for a record besides its subject and payload. */
const RECORD_OVERHEAD_BYTES = 30;
const IDLE = { kind: "idle" };
const REREAD = { kind: "reread" };
/**
 * Folds the records of a journal in order, each as soon as it may, and tells what has to happen before the next one.
 * Does no I/O.
 *
 * A record that does not match its checksum is folded, as unreadable, only when it has come twice with the same
 * bytes: then it is stored like that, and every owner folds the same.
 */
export class FoldQueue {
    #shard;
    #events;
    #mismatched = new MismatchedRecords();
    #records = [];
    #foldedRecords = 0;
    #foldedBytes = 0;
    #lastRecordMs;
    constructor(shard, events) {
        this.#shard = shard;
        this.#events = events;
    }
    /** Sequence of the first record that has to be read after {@link clear}. */
    get startSeq() {
        return this.#shard.seq + 1;
    }
    /** Number of records folded so far. */
    get foldedRecords() {
        return this.#foldedRecords;
    }
    /** When the broker stored the last of them, in milliseconds since 1970; undefined before the first. */
    get lastRecordMs() {
        return this.#lastRecordMs;
    }
    /** Bytes of those records in the stream. */
    get foldedBytes() {
        return this.#foldedBytes;
    }
    /** Adds a record as it was delivered; {@link keepPayload} must follow once {@link fold} was called. */
    add(record) {
        this.#records.push(record);
    }
    /** Copies the payload of the record added last if it is still queued: its buffer is only lent. */
    keepPayload(record) {
        if (this.#records.at(-1) !== record)
            return;
        this.#records[this.#records.length - 1] = {
            ...record,
            payload: Uint8Array.from(record.payload),
        };
    }
    /** Forgets the queued records; they have to be read again. */
    clear() {
        this.#records = [];
    }
    /** Folds queued records as far as possible. */
    fold() {
        let stop = IDLE;
        let folded = 0;
        for (const record of this.#records) {
            if (!this.#events.mayFold())
                break;
            stop = this.#isAfterGap(record)
                ? { kind: "gap", gap: { from: this.startSeq, to: record.seq - 1 } }
                : this.#apply(record);
            if (stop !== IDLE)
                break;
            folded += 1;
        }
        // `mayFold` may have cleared the queue.
        this.#records = folded >= this.#records.length ? [] : this.#records.slice(folded);
        return stop;
    }
    /**
     * Remembers which queued records do not match their checksums, to compare them when they are
     * delivered again; false if one of them never comes twice with the same bytes.
     */
    rememberMismatched() {
        return this.#mismatched.remember(this.#records);
    }
    /** The brokers whose copies the queued records are from; none unless several brokers have copies. */
    get brokers() {
        return new Set(this.#records.flatMap(({ broker }) => broker ?? []));
    }
    #isAfterGap({ seq }) {
        return seq > this.startSeq;
    }
    #apply(record) {
        const { seq, subject, payload, timeMs = 0, broker } = record;
        const reread = this.#mismatched.isConfirmedBy(record);
        try {
            const settled = this.#shard.apply({ seq, subject, payload, reread, timeMs });
            if (settled !== undefined)
                this.#events.onSettled(settled, record);
        }
        catch (error) {
            const found = ensureError(error);
            return found.code === "BAD_CHECKSUM" && !reread
                ? REREAD
                : { kind: "failed", error: found, broker };
        }
        const other = this.#mismatched.brokerOf(seq);
        if (other !== undefined && other !== broker)
            this.#events.onReread(seq, other, reread);
        this.#foldedRecords += 1;
        this.#lastRecordMs = timeMs;
        this.#foldedBytes += payload.length + subject.length + RECORD_OVERHEAD_BYTES;
        return IDLE;
    }
}
/** Time to collect more mismatched records before all of them are read again. */
const COLLECT_MS = 5;
/** Reads the journal of a shard into its {@link FoldQueue}, and does what the queue asks for. */
export class FoldLoop {
    #deps;
    #queue;
    /** Whether folding is paused until {@link #hold} ends. */
    #isHeld = false;
    #stopped = false;
    /** Bytes folded when {@link FoldLoopEvents.onAdvanced} was last called. */
    #toldBytes = 0;
    #isTelling = false;
    /** Generation of the journal that is read. */
    #generation = 0;
    constructor(deps) {
        this.#deps = deps;
        const { events, reader } = deps;
        this.#queue = new FoldQueue(deps.shard, {
            mayFold: () => events.mayFold(),
            onSettled: (settled, record) => events.onSettled(settled, record),
            onReread: (seq, broker, isSame) => {
                if (isSame)
                    reader.allow(broker);
                else
                    events.onReplicaDamaged({ broker, from: seq, to: seq, isOther: false });
            },
        });
    }
    /** When the broker stored the last folded record, in milliseconds since 1970; undefined before the first. */
    get lastRecordMs() {
        return this.#queue.lastRecordMs;
    }
    /** Starts to read. */
    start() {
        return this.#deps.reader.start({
            locate: () => this.#locate(),
            onRecord: (record) => this.#receive(record),
            onReplicaDamaged: (damage) => this.#deps.events.onReplicaDamaged(damage),
            onFailure: (error) => this.#fail(error),
        });
    }
    /** Reads again after the connection was lost. */
    reconnected() {
        return this.#deps.reader.reconnected();
    }
    /** Folds what is queued as far as possible. */
    poke() {
        if (this.#isHeld || this.#stopped)
            return;
        const before = this.#queue.foldedRecords;
        const stop = this.#queue.fold();
        const folded = this.#queue.foldedRecords - before;
        if (folded > 0)
            this.#tellSoon();
        if (stop.kind === "gap")
            void this.#hold(() => this.#deps.events.onGap(stop.gap));
        else if (stop.kind === "reread")
            void this.#hold(() => this.#readAgain());
        else if (stop.kind === "failed")
            this.#fail(stop.error, stop.broker);
        if (folded > 0 && !this.#stopped)
            this.#deps.reader.taken(folded);
    }
    /** Stops folding at once. */
    stop() {
        this.#stopped = true;
        this.#deps.reader.stop();
        this.#queue.clear();
    }
    async #locate() {
        // The queued records are of a journal that has to be checked again: they are read again.
        this.#queue.clear();
        const { stream, generation, noted } = await this.#deps.events.locate();
        this.#generation = generation;
        this.#deps.shard.expect(noted);
        return { stream, startSeq: this.#queue.startSeq };
    }
    #receive(record) {
        this.#queue.add(record);
        this.poke();
        this.#queue.keepPayload(record);
    }
    #tellSoon() {
        if (this.#isTelling)
            return;
        this.#isTelling = true;
        this.#deps.coalescer.soon(() => {
            const bytes = this.#queue.foldedBytes - this.#toldBytes;
            this.#toldBytes += bytes;
            this.#isTelling = false;
            if (!this.#stopped)
                this.#deps.events.onAdvanced(bytes);
        });
    }
    /** Reads mismatched records again, together with those that arrive within a moment. */
    async #readAgain() {
        await delay(COLLECT_MS);
        if (this.#stopped)
            return;
        if (!this.#queue.rememberMismatched()) {
            throw journalDamaged(this.#deps.number, this.#queue.startSeq, undefined);
        }
        const { reader } = this.#deps;
        for (const broker of this.#queue.brokers)
            reader.avoid(broker);
        await reader.reset();
    }
    /** Folds nothing until `work` is done. */
    async #hold(work) {
        this.#isHeld = true;
        try {
            await work();
        }
        catch (error) {
            const found = ensureError(error);
            // A broker without JetStream for a while does not end a shard either.
            const isTransient = found.retryable || found.code === "NO_JETSTREAM";
            if (isTransient && !isFinal(found))
                void this.#deps.reader.reset();
            else
                this.#fail(found);
        }
        finally {
            this.#isHeld = false;
            this.poke();
        }
    }
    #fail(error, broker) {
        if (this.#stopped)
            return;
        this.stop();
        const copy = broker === undefined ? undefined : replicaDamageOf(error, broker);
        this.#deps.events.onFailure(inGeneration(error, this.#generation), copy);
    }
}
/**
 * Returns the error for a record that cannot be folded with the generation of its journal, and other errors as they
 * are.
 */
function inGeneration(error, generation) {
    if (error.code !== "FOLD_FAILED")
        return error;
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
    #now;
    #waiting = [];
    #ranAtMs = Number.NEGATIVE_INFINITY;
    constructor(now = () => performance.now()) {
        this.#now = now;
    }
    /** Runs `work` soon, in the order of the calls. */
    soon(work) {
        this.#waiting.push(work);
        if (this.#waiting.length > 1)
            return;
        const run = () => this.#run();
        if (this.#now() - this.#ranAtMs >= QUIET_MS)
            setImmediate(run);
        else
            setTimeout(run, GATHER_MS);
    }
    #run() {
        this.#ranAtMs = this.#now();
        for (const work of this.#waiting.splice(0))
            work();
    }
}
//# sourceMappingURL=fold-loop.js.map