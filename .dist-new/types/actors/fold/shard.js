import { createHash } from "node:crypto";
import { packValue, readCrc } from "../../protocol/codec.js";
import { ensureError, PserverError } from "../../protocol/errors.js";
import { parseHostRecord } from "../../protocol/messages/host-records.js";
import { parseRecordHeader } from "../../protocol/messages/records.js";
import { quoteName } from "../../protocol/names.js";
import { ShardMemory } from "../kernel/shard-memory.js";
import { closeStep } from "./apply-update.js";
import { foldHostRecord, foldTrainerRecord, } from "./fold-record.js";
import { FoldTables } from "./fold-state.js";
import { addRecord, ChecksumComparison, checksumOf, toChecksum, } from "./journal-checksum.js";
import { LogSubjects, readable, readMessage, } from "./journal-record.js";
import { KNOWN_RULES } from "./rules.js";
import { noRules } from "./trainer-table.js";
/**
 * Codes that `apply` throws unchanged: they are about order, rules or memory, not about a record that cannot be
 * folded.
 */
const KNOWN_FAILURES = [
    "JOURNAL_DAMAGED",
    "UNKNOWN_RULES",
    "TOO_LARGE",
    "NO_MEMORY",
];
/**
 * Folds the journal of a shard, record by record, and holds the state of the shard. Pure and synchronous: the outcome
 * of a record depends only on the records before it, its subject and its payload. A rejected record changes no block.
 */
export class Shard {
    memory;
    #subjects;
    #logSubjects;
    #shard;
    #tables;
    /** Gets each record with its outcome; undefined for none. No part of the state. */
    observer;
    #failure;
    /** Compares the journal with noted checksums; no part of the state. */
    #comparison;
    #unobserved = 0;
    constructor(parts) {
        this.#subjects = parts.subjects;
        this.#logSubjects = parts.logSubjects;
        this.#shard = parts.shard;
        this.memory = parts.memory;
        this.#tables = parts.tables;
        this.#comparison = new ChecksumComparison(parts.shard);
    }
    /** Creates a shard before its first record. */
    static create(options) {
        const { subjects, shard, memory = ShardMemory.create() } = options;
        const { hooks = {}, knownRules = KNOWN_RULES } = options;
        const logSubjects = new LogSubjects(subjects);
        const tables = new FoldTables({ shard, memory, hooks, knownRules });
        return new Shard({ subjects, logSubjects, shard, memory, tables });
    }
    /** Callbacks for changes of blocks; replaces those of the options. */
    set hooks(hooks) {
        this.#tables.blocks.hooks = hooks;
    }
    /** Sequence of the last record folded; 0 before the first. */
    get seq() {
        return this.#tables.seq;
    }
    /** Version of the rules in force; 0 before the first `rules` record. */
    get rules() {
        return this.#tables.rules?.version ?? 0;
    }
    /** How the job's trainers are synchronized, from the first `rules` record. */
    get synchronization() {
        return this.#tables.steps.synchronization;
    }
    /** Progress of the steps of the job's trainers; a live view. */
    get steps() {
        return this.#tables.steps;
    }
    /** Checksum in the envelope of record {@link seq}; 0 before the first and after a skipped gap. */
    get lastCrc() {
        return this.#tables.crc;
    }
    /**
     * The checksum of the journal up to {@link seq}: equal if the same records were folded. It is no part of the state;
     * a manifest keeps it, and {@link continueChecksum} restores it.
     */
    get noted() {
        return { seq: this.#tables.seq, checksum: toChecksum(this.#tables.sums) };
    }
    /** Whether sequence {@link seq} is known to have a record: not before the first, and not in a skipped gap. */
    get endsWithRecord() {
        return this.#tables.endsWithRecord;
    }
    /** Bytes of all values and slots. */
    get valueBytes() {
        return this.#tables.blocks.bytes;
    }
    /** Counts of senders and of their rejected and unreadable records. */
    get senders() {
        return {
            trainers: this.#tables.trainers.count,
            declared: this.#tables.declarations.count,
            unreadable: this.#tables.unreadable.total,
            rejectedOf: this.#tables.trainers.rejectedCounts(),
            unreadableOf: this.#tables.unreadable.sorted(),
        };
    }
    /** How many records the observer could neither observe nor note as failed. */
    get unobserved() {
        return this.#unobserved;
    }
    /** What the shard knows of its job from hosts' records, with up to `count` parameters after a name. */
    known(after, count) {
        return this.#tables.known(after, count);
    }
    /** The trainers that the shard remembers; a live view. */
    get trainers() {
        return this.#tables.trainers;
    }
    /**
     * Folds the next record.
     * @returns the answer to a trainer's record, repeated and rejected ones included; undefined for a
     * host's record and for one without a readable sender.
     * @throws BAD_CHECKSUM, only with `reread: false`, if the payload does not match its checksum. The
     * shard is unchanged. After any other error the shard is unusable: each later call throws it again.
     * @throws JOURNAL_DAMAGED unless the record is the one after {@link seq}, or if records up to it are not those
     * that were folded before, see {@link expect}.
     * @throws UNKNOWN_RULES for a `rules` record of a version this program lacks.
     * @throws TOO_LARGE if this process has no memory for a block that the rules allow.
     * @throws FOLD_FAILED, naming the record, for anything else that goes wrong: a defect of this program.
     */
    apply(record) {
        if (this.#failure !== undefined)
            throw this.#failure;
        let subject;
        try {
            this.#checkOrder(record.seq);
            const { rules } = this.#tables;
            const read = this.#logSubjects.read(record.subject);
            subject = read.parsed;
            const message = readMessage(record, subject, rules, this.#shard);
            const settled = this.#fold(record, subject, message);
            this.#passRecord(record, read, message !== undefined);
            this.#comparison.check(record.seq, this.#tables.sums);
            return settled;
        }
        catch (error) {
            const cause = ensureError(error);
            if (cause.code === "BAD_CHECKSUM")
                throw cause;
            this.#failure = KNOWN_FAILURES.includes(cause.code)
                ? cause
                : foldFailed(this.#shard, record.seq, subject, cause);
            throw this.#failure;
        }
    }
    /**
     * Has the journal compared with checksums noted when it was folded before, ascending, while it is folded on.
     * Replaces those of earlier calls.
     */
    expect(noted) {
        this.#comparison.expect(noted, this.#tables.seq);
    }
    /** Whether all expected checksums have been compared. */
    get isCompared() {
        return this.#comparison.isDone;
    }
    /** Returns the block of this name; undefined if there is none. */
    block(parameter, index) {
        return this.#tables.blocks.get(parameter, index);
    }
    /** Returns the block that has this number now; undefined if there is none. */
    blockOfNumber(number) {
        return this.#tables.blocks.ofNumber(number);
    }
    /** Returns the name of the block that was declared under this number; undefined if there is none. */
    nameOfNumber(number) {
        const found = this.#tables.declarations.ofNumber(number);
        return found && { parameter: found.declared.name, index: found.index };
    }
    /** Lists all blocks, or those of one parameter, in no particular order. */
    blocks(parameter) {
        return parameter === undefined ? this.#tables.blocks.all() : this.#tables.blocks.of(parameter);
    }
    /**
     * Looks up the outcomes of a trainer's records, in the order of the request. The records must have been folded: an
     * unknown number is BAD_CHECKSUM, because its record was unreadable.
     */
    outcomes(trainer, request) {
        if (this.#failure !== undefined)
            throw this.#failure;
        const rules = this.#tables.rules;
        if (rules === undefined)
            return request.numbers.map((n) => noRules(n, this.#tables.seq));
        return request.numbers.map((n) => this.#tables.trainers.outcome(trainer, request.session, n, this.#tables.seq, rules));
    }
    /** The state without values and slots; equal shards give equal bytes. */
    saveState() {
        return this.#tables.save();
    }
    /** Computes the SHA-256, in hex, of the state, all values and slots: equal exactly if the shards are. */
    digest() {
        return this.#tables.digest();
    }
    /**
     * Continues with record 1 of a new journal; all else stays. Known outcomes stay valid and move to record 0: with a
     * sequence of the old journal, whoever asks for them would wait for that record in the new one.
     */
    restartJournal() {
        this.#tables.restartJournal();
        this.#comparison.restart(0);
    }
    /**
     * Turns this into the first state of another job's shard; see {@link FoldTables.detach} for what it drops and
     * returns.
     */
    detach() {
        this.#comparison.restart(0);
        return this.#tables.detach();
    }
    /**
     * Skips the records after {@link seq} up to `seq`, which the journal does not hold and nobody has
     * folded; all else stays.
     * @throws INTERNAL if record `seq` has been folded.
     */
    skipTo(seq) {
        if (this.#failure !== undefined)
            throw this.#failure;
        if (seq <= this.#tables.seq) {
            throw new PserverError("INTERNAL", `journal of shard ${this.#shard}: cannot skip to record ${seq}: record ${this.#tables.seq} is already applied`, { shard: this.#shard, expected: this.#tables.seq + 1, received: seq });
        }
        this.#tables.moveTo(seq);
    }
    /**
     * Restores the shard that {@link saveState} was called on. `readSlot` returns the bytes of each slot
     * of each block (slot 0: the values), which are copied. Calls `hooks.blockAdded` for every block.
     * @throws SNAPSHOT_DAMAGED if the state contradicts itself or the bytes.
     * @throws UNKNOWN_RULES if this program lacks the rules of the state.
     */
    static restore(options, state, readSlot) {
        const shard = Shard.restoreEmpty(options, state);
        for (const block of shard.blocks()) {
            for (let slot = 0; slot <= block.slots; slot++) {
                shard.loadSlot(block.parameter, block.index, slot, readSlot(block, slot));
            }
        }
        return shard;
    }
    /**
     * Restores like {@link restore}, but without bytes: {@link loadSlot} brings them. Until {@link checkLoaded} passes,
     * the shard must not be used for anything else.
     */
    static restoreEmpty(options, state) {
        const shard = Shard.create(options);
        shard.#tables.restore(state);
        return shard;
    }
    /** Continues a restored shard's journal checksum from the one in its manifest. */
    continueChecksum(checksum) {
        this.#tables.sums.set(checksum);
        this.#comparison.restart(this.#tables.seq);
    }
    /**
     * Copies bytes into a slot of a restored block.
     * @throws SNAPSHOT_DAMAGED if there is no such slot, or it has another length.
     */
    loadSlot(parameter, index, slot, bytes) {
        this.#tables.loadSlot(parameter, index, slot, bytes);
    }
    /** @throws SNAPSHOT_DAMAGED if a slot of a restored block has not been loaded. */
    checkLoaded() {
        this.#tables.unloaded.check();
    }
    #checkOrder(seq) {
        const expected = this.#tables.seq + 1;
        if (seq === expected)
            return;
        throw new PserverError("JOURNAL_DAMAGED", `journal of shard ${this.#shard}: expected record ${expected}; found ${seq}`, { shard: this.#shard, expected, found: seq });
    }
    #fold(record, subject, message) {
        let settled;
        if (subject?.shard !== this.#shard) {
            this.#foldUnreadable(record, undefined);
        }
        else if (message === undefined)
            this.#foldUnreadable(record, subject);
        else if (subject.by === "host")
            this.#foldHost(record, subject, message);
        else
            settled = this.#foldTrainer(record, subject, message);
        this.memory.unstage();
        this.#closeStep();
        return settled;
    }
    /** Moves the fold's place and the journal's checksum past a record. */
    #passRecord({ seq, payload }, { crc }, isRead) {
        const tables = this.#tables;
        tables.seq = seq;
        tables.crc = isRead ? readCrc(payload) : 0;
        tables.endsWithRecord = true;
        addRecord(tables.sums, seq, checksumOf(crc, payload, isRead));
    }
    #foldHost(journalRecord, subject, message) {
        const { seq, timeMs = 0 } = journalRecord;
        const { verb } = subject;
        const record = readable(() => parseHostRecord(verb, message));
        if (record === undefined) {
            this.#foldUnreadable(journalRecord, subject);
            return;
        }
        this.#observe({ kind: "host", seq, timeMs, record });
        foldHostRecord(this.#tables, record);
    }
    /** Counts a record that cannot be answered, for the trainer in its subject if there is one. */
    #foldUnreadable({ seq, payload, timeMs = 0 }, subject) {
        const trainer = subject === undefined || subject.by === "host" ? undefined : subject.trainer;
        const { unreadable, rules } = this.#tables;
        unreadable.count(trainer, rules?.unreadableTrainersMax ?? 0);
        this.#observe({ kind: "unreadable", seq, timeMs, subject, payloadBytes: payload.length });
    }
    /** Shows a record to the observer. Errors of the observer do not stop the fold. */
    #observe(record) {
        const { observer } = this;
        if (observer === undefined)
            return;
        try {
            observer.observe(record);
        }
        catch (error) {
            this.#observeFailed(observer, record, ensureError(error));
        }
    }
    #observeFailed(observer, record, error) {
        try {
            observer.failed(record, error);
        }
        catch {
            this.#unobserved += 1;
        }
    }
    #foldTrainer(record, subject, message) {
        const { trainer } = subject;
        const header = readable(() => parseRecordHeader(message.fields));
        if (header === undefined) {
            this.#foldUnreadable(record, subject);
            return undefined;
        }
        const isInbox = this.#subjects.isTrainerInbox(header.reply, trainer);
        const isAnswerable = isInbox || header.reply === "";
        const headerBytes = record.payload.length - message.data.length;
        const outcome = this.#settle(record, subject, { header, message, headerBytes, isAnswerable });
        return { trainer, session: header.session, reply: isInbox ? header.reply : "", outcome };
    }
    #settle({ seq, timeMs = 0 }, subject, received) {
        const { header, message } = received;
        const folded = foldTrainerRecord({ tables: this.#tables, memory: this.memory, measures: this.observer !== undefined }, seq, subject, received);
        if (this.observer !== undefined) {
            const kind = "trainer";
            const { outcome, change, runs, isRepeat, fault } = folded;
            const sent = { subject, header, message };
            this.#observe({ kind, seq, timeMs, ...sent, outcome, isRepeat, change, runs, fault });
        }
        return folded.outcome;
    }
    /** Applies the open step if the folded record has ended it. */
    #closeStep() {
        const closed = this.#tables.steps.close();
        if (closed === undefined)
            return;
        const { blocks } = this.#tables;
        closeStep({ memory: this.memory, blocks }, blocks.all(), closed.divisor);
    }
}
/** Returns the error for a record that the fold cannot pass; `subject` as far as it is known. */
function foldFailed(shard, seq, subject, cause) {
    const trainer = subject === undefined || subject.by === "host" ? undefined : subject.trainer;
    const verb = subject && ("verb" in subject ? subject.verb : subject.by);
    const sender = trainer === undefined ? "a host" : `trainer ${quoteName(trainer)}`;
    const what = verb === undefined ? "" : `, a ${verb} of ${sender},`;
    return new PserverError("FOLD_FAILED", `shard ${shard}: record ${seq}${what} cannot be folded: ${cause.code}: ${cause.message}`, { shard, seq, trainer, verb }, { cause });
}
/** Computes the SHA-256, in hex, of a shard's state without values and slots. */
export function stateDigest(shard) {
    return createHash("sha256").update(packValue(shard.saveState())).digest("hex");
}
/** Computes the SHA-256, in hex, of a block's values and slots. */
export function blockDigest(block) {
    const hash = createHash("sha256");
    for (let slot = 0; slot <= block.slots; slot++)
        hash.update(block.slotBytes(slot));
    return hash.digest("hex");
}
//# sourceMappingURL=shard.js.map