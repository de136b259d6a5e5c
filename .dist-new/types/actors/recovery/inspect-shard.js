import { DeliverPolicy } from "@nats-io/jetstream";
import { PserverError, } from "../../protocol/index.js";
import { changedRecordsOf } from "../fold/journal-checksum.js";
import { readBatch, recordCrc } from "../fold/journal-record.js";
import { journalDamaged, journalLost, lastRecordSeq } from "../journal/journal-check.js";
import { blockKey } from "../journal/snapshot-store.js";
import { readStream } from "../journal/streams.js";
import { choicesOf, newestWhole, } from "./findings.js";
import { inspectArchive, inspectSnapshots, } from "./inspect-snapshots.js";
import { failedRecord, findRest } from "./rebuild-from-broker.js";
/**
 * Returns those of the lacked blocks that none of these batches initializes. The subjects of batches do not name
 * blocks, so batches are read one after the other, until no block is lacked. A batch that cannot be read initializes
 * nothing.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE or DENIED if the broker does not answer.
 */
export async function lackedAfterBatches(journal, generation, seqs, lacked) {
    let left = [...lacked];
    for (const seq of seqs) {
        if (left.length === 0)
            break;
        const record = await journal.record(generation, seq);
        const initialized = new Set(record === undefined ? [] : initializedBy(record.payload));
        left = left.filter(({ number }) => !initialized.has(number));
    }
    return left;
}
function initializedBy(payload) {
    const { runs } = readBatch(payload) ?? { runs: [] };
    return runs.filter(({ verb }) => verb === "init").flatMap(({ numbers }) => [...numbers]);
}
/**
 * Collects the gaps of a journal while its records are scanned in order, and counts the records after each place that
 * a shard may go back to.
 */
export class JournalTally {
    #subjects;
    #missing;
    #counts = [];
    #gaps = [];
    #baseSeq;
    #changedFrom;
    #foldableEnd;
    #initialized = new Set();
    #batches = [];
    #next;
    #hasEnd = false;
    /**
     * `baseSeq`: the readable prefix starts after it; `places`: sequences that the shard may go back to, besides the
     * end of the prefix; `missing`: sequences without records according to the stream; `changed`: a range in which a
     * record is not the one that was folded, which ends the prefix, too; `failedSeq`: the first record that cannot be
     * folded, if there is one.
     */
    constructor(options) {
        this.#subjects = options.subjects;
        this.#missing = new Set(options.missing);
        this.#baseSeq = options.baseSeq;
        this.#changedFrom = options.changed?.from ?? Number.POSITIVE_INFINITY;
        this.#foldableEnd = (options.failedSeq ?? Number.POSITIVE_INFINITY) - 1;
        if (options.failedSeq !== undefined)
            this.#count(this.#foldableEnd);
        // Records purged before the base are no loss.
        this.#next = Math.min(options.firstSeq, options.baseSeq + 1);
        for (const seq of options.places)
            this.#count(seq);
        if (options.changed !== undefined)
            this.#count(this.#changedFrom - 1);
    }
    /** Counts the next record. */
    record(seq, subject) {
        this.#pass(seq - 1);
        this.#next = seq + 1;
        const sender = this.#sender(subject, seq);
        for (const count of this.#counts) {
            if (seq <= count.afterSeq)
                continue;
            if (sender === undefined)
                count.hostRecords += 1;
            else
                count.trainers.set(sender, (count.trainers.get(sender) ?? 0) + 1);
        }
    }
    /** Ends the scan. `lastSeq`: the last record that should be there. */
    end(lastSeq) {
        this.#pass(lastSeq);
        if (!this.#hasEnd)
            this.#countEnds();
    }
    /** Gaps, ascending. */
    get gaps() {
        return this.#gaps;
    }
    /** Last record before the first gap after the base, or before the first range that has changed. */
    get readableEnd() {
        const first = this.#gaps.find(({ to }) => to > this.#baseSeq);
        const end = Math.min(first?.from ?? this.#next, this.#changedFrom) - 1;
        return Math.max(this.#baseSeq, end);
    }
    /** Last record up to which the journal can be folded from the base. */
    get prefixEnd() {
        return Math.min(this.readableEnd, this.#foldableEnd);
    }
    /** Batches of the prefix after the base, ascending: their subjects do not tell what they initialize. */
    get batches() {
        return this.#batches;
    }
    /** Returns the lacked blocks that no record of the prefix initializes, apart from batches; reads subjects only. */
    stillLacked(lacked) {
        return lacked.filter(({ parameter, index }) => !this.#initialized.has(blockKey(parameter, index)));
    }
    /** Counts the records after a place. */
    behind(afterSeq) {
        const count = this.#counts.find((each) => each.afterSeq === afterSeq);
        const trainers = [...(count?.trainers ?? [])]
            .map(([trainer, records]) => ({ trainer, records }))
            .sort((a, b) => b.records - a.records || (a.trainer < b.trainer ? -1 : 1));
        return { trainers, hostRecords: count?.hostRecords ?? 0 };
    }
    #pass(upTo) {
        if (upTo < this.#next)
            return;
        for (let from = this.#next; from <= upTo;) {
            const isEmpty = this.#missing.has(from);
            let to = from;
            while (to < upTo && this.#missing.has(to + 1) === isEmpty)
                to += 1;
            this.#gaps.push({ from, to, kind: isEmpty ? "empty" : "unreadable" });
            from = to + 1;
        }
        this.#next = upTo + 1;
        if (!this.#hasEnd && upTo > this.#baseSeq) {
            this.#hasEnd = true;
            this.#countEnds();
        }
    }
    #countEnds() {
        this.#count(this.prefixEnd);
        this.#count(this.readableEnd);
    }
    #count(afterSeq) {
        if (this.#counts.some((count) => count.afterSeq === afterSeq))
            return;
        this.#counts.push({ afterSeq, trainers: new Map(), hostRecords: 0 });
    }
    #noteBlocks(parsed, seq) {
        if (parsed.by === "batch" && seq > this.#baseSeq)
            this.#batches.push(seq);
        const isInit = parsed.by === "trainer" && parsed.verb === "init";
        if (isInit)
            this.#initialized.add(blockKey(parsed.parameter, parsed.index));
    }
    /** Returns the trainer of a record; undefined for a host's. */
    #sender(subject, seq) {
        try {
            const parsed = this.#subjects.parseLog(subject);
            if (seq <= this.prefixEnd)
                this.#noteBlocks(parsed, seq);
            return parsed.by === "host" ? undefined : parsed.trainer;
        }
        catch {
            // A subject that is not one of the journal's names no trainer.
            return undefined;
        }
    }
}
/** Errors of a stopped shard that an operator can accept. */
const LOSSES = [
    "JOURNAL_DAMAGED",
    "JOURNAL_LOST",
    "SNAPSHOT_DAMAGED",
    "FOLD_FAILED",
    // The mark of its owners is damaged: the newest records may be lost unnoticed.
    "JOB_DAMAGED",
];
/** Longest wait for the next record while a journal is scanned. */
const SILENCE_MS = 5_000;
/**
 * Finds out whether a shard can be served, what is lost, and from which states it can go on; changes
 * nothing.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE, NO_JETSTREAM, DENIED if the broker does not answer.
 */
export async function inspectShard(deps) {
    const { shard, subjects, ownerError, initialized } = deps;
    const found = await find(deps);
    const { entries, generation, snapshots, base, info } = found;
    const toldSeq = lastKnown(deps, found);
    const changed = ownerError && changedRecordsOf(ownerError);
    const failed = failedOf(ownerError, generation);
    const tally = new JournalTally({
        subjects,
        firstSeq: info?.firstSeq ?? 1,
        baseSeq: base?.seq ?? 0,
        places: snapshots.map(({ seq }) => seq),
        missing: info?.missing ?? [],
        changed,
        failedSeq: failed?.seq,
    });
    const journal = info && (await inspectJournal(deps, found, info, tally));
    const lacked = tally.stillLacked(base?.lacks ?? initialized);
    const error = ownerError ?? problemOf(deps, found, journal, tally.prefixEnd, toldSeq);
    const condition = conditionOf(error);
    const archive = condition === "stopped" && deps.archive !== undefined
        ? await inspectArchive(deps.archive, shard, initialized)
        : undefined;
    const lastKnownSeq = archive?.generation === generation ? Math.max(toldSeq, archive.seq) : toldSeq;
    const rest = failed && (await inspectRest(deps, found, journal, failed, tally.readableEnd));
    const choices = choicesOf({
        generation,
        snapshots,
        ...{ journal, archive, rest },
        prefixEnd: tally.prefixEnd,
        prefixLacks: await lackedAfterBatches(deps.journal, generation, tally.batches, lacked),
        lastKnownSeq,
        lostFrom: lostFrom(ownerError),
        behind: (seq) => tally.behind(seq),
    });
    return {
        ...{ shard, condition },
        ...(error && { error: error.toWire() }),
        generation,
        manifestSeq: entries.at(-1)?.seq ?? 0,
        snapshots,
        ...(journal && { journal: { ...journal, ...(changed && { changed }) } }),
        ...(archive && { archive }),
        ...(rest && { rest }),
        lastKnownSeq,
        choices,
    };
}
async function find({ store, journal, watermark, initialized }) {
    const entries = await store.manifestEntries();
    const newest = entries.findLast(({ manifest }) => manifest !== undefined)?.manifest;
    const generation = newest?.generation ?? Math.max(await journal.newestGeneration(), watermark?.generation ?? 0);
    const snapshots = await inspectSnapshots(store, entries, initialized);
    const base = newestWhole(snapshots.filter((each) => each.generation === generation));
    const created = entries.find(({ seq }) => seq === base?.manifestSeq)?.manifest?.created ?? "";
    const info = generation === 0 ? undefined : await journal.info(generation);
    return { entries, newest, generation, snapshots, base, created, info };
}
/** Returns the record of the newest journal that the owner cannot fold, if the owner has stopped for that reason. */
function failedOf(error, generation) {
    return error?.details["generation"] === generation ? failedRecord(error) : undefined;
}
/** Returns the rest of the journal without the record that cannot be folded; undefined if it need not be read. */
async function inspectRest(deps, { entries, generation, base }, journal, failed, seq) {
    if (journal === undefined || journal.problem !== undefined)
        return undefined;
    const manifest = entries.find((entry) => entry.seq === base?.manifestSeq)?.manifest;
    // Only the first journal of a shard begins with an empty state.
    const isWhole = generation === 1 && journal.firstSeq === 1;
    if (manifest === undefined && !isWhole)
        return undefined;
    const stored = manifest && { seq: base?.manifestSeq ?? 0, manifest };
    return await findRest(deps, failed, { generation, seq }, stored);
}
/** Returns the last record of the generation that is known to have existed. */
function lastKnown({ ownerError, watermark }, found) {
    const { entries, generation, info, created } = found;
    const manifests = entries.flatMap(({ manifest }) => manifest?.generation === generation ? [manifest.seq] : []);
    const isSame = info !== undefined && (created === "" || created === info.created);
    const to = ownerError?.details["to"];
    return Math.max(0, ...manifests, isSame ? lastRecordSeq(info) : 0, watermark?.generation === generation ? watermark.seq : 0, typeof to === "number" ? to : 0);
}
/** Reads through the journal's records and has `tally` count them; skips those that cannot be delivered. */
async function inspectJournal({ manager, client, journal }, found, info, tally) {
    const stream = journal.stream(found.generation);
    const { firstSeq, bytes } = info;
    const lastSeq = lastRecordSeq(info);
    const from = { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: firstSeq };
    const batches = readStream({
        ...{ manager, client, stream, select: { ...from, headers_only: true } },
        ...{ timeoutMs: SILENCE_MS, isLossy: true },
        ...{ action: `looking through the journal ${stream}`, details: { stream } },
    });
    for await (const batch of firstSeq <= lastSeq ? batches : []) {
        for (const { seq, subject } of batch)
            if (seq <= lastSeq)
                tally.record(seq, subject);
        if ((batch.at(-1)?.seq ?? 0) >= lastSeq)
            break;
    }
    tally.end(lastSeq);
    const problem = await mismatchOf(journal, found, info);
    return { stream, firstSeq, lastSeq, bytes, gaps: tally.gaps, ...(problem && { problem }) };
}
/** Returns why a journal is not the one that a snapshot belongs to; undefined if it is. */
async function mismatchOf(journal, { generation, base, created }, info) {
    if (created !== "" && created !== info.created) {
        return `the stream was made at ${created} and again at ${info.created}`;
    }
    if (base === undefined || base.seq === 0)
        return undefined;
    const record = await journal.record(generation, base.seq);
    const crc = record === undefined ? 0 : recordCrc(record.payload);
    // A lost or damaged record says nothing about those after it; one that differs from the folded one does.
    if (crc === 0 || base.recordCrc === 0 || crc === base.recordCrc)
        return undefined;
    return `record ${base.seq} is another than the one in the snapshot`;
}
/** Returns the first lost record according to the owner's error. */
function lostFrom(ownerError) {
    if (ownerError?.code !== "JOURNAL_LOST")
        return undefined;
    const { from } = ownerError.details;
    return typeof from === "number" ? from : undefined;
}
function conditionOf(error) {
    if (error === undefined)
        return "whole";
    return LOSSES.includes(error.code) ? "stopped" : "failed";
}
/** Returns the error that would stop a new owner; undefined if it could serve the shard. */
function problemOf({ shard, storage, watermark }, { newest, snapshots, base }, journal, prefixEnd, lastKnownSeq) {
    const details = { shard };
    if (newest === undefined && snapshots.length === 0 && journal === undefined) {
        // A shard that was never created has no watermark either.
        return watermark && journalLost(shard, 1, watermark.seq, "and all snapshots are gone");
    }
    if (base === undefined) {
        const text = `shard ${shard}: no whole snapshot is left`;
        return new PserverError("SNAPSHOT_DAMAGED", text, details);
    }
    if (journal === undefined) {
        if (storage === "memory" || newest?.created === "")
            return undefined;
        return new PserverError("JOURNAL_LOST", `shard ${shard}: the journal stream is gone`, details);
    }
    // An owner replaces one in memory that is not the one that was folded, or ends before that.
    const isOther = journal.problem !== undefined || lastKnownSeq > journal.lastSeq;
    if (storage === "memory" && isOther)
        return undefined;
    if (journal.problem !== undefined) {
        return new PserverError("JOURNAL_LOST", `shard ${shard}: ${journal.problem}`, details);
    }
    const gap = journal.gaps.find(({ to }) => to > base.seq);
    if (gap !== undefined)
        return journalDamaged(shard, gap.from, gap.to + 1);
    if (lastKnownSeq <= prefixEnd)
        return undefined;
    return journalLost(shard, prefixEnd + 1, lastKnownSeq, "ends too early");
}
//# sourceMappingURL=inspect-shard.js.map