import { setTimeout as delay } from "node:timers/promises";
import { foldDescribed } from "../actors/journal/describe-record.js";
import { comparePositions, ensureError, JobSubjects, PserverError, } from "../protocol/index.js";
import { showPosition } from "../protocol/messages/position.js";
import { foldUnlessDamaged, loadBase, nextTurn, readAgain } from "./replay/replay-shard.js";
import { findPointed, resolveFound, resolvePoint } from "./resolve-point.js";
import { basesOf, END_SEQ, isEndOfGap, rebuildableRanges, summarizeRecord, takeInventory, } from "./source.js";
import { admits, lastOf, mergeArrivals, mergeSorted, tapeUpdates, } from "./update-stream.js";
/** Time for which records are folded in one turn of the event loop. */
const TURN_MS = 20;
/**
 * Pause between two checks whether a shard, whose journal cannot be folded further, goes on under a new generation.
 */
const FAILED_PAUSE_MS = 1_000;
/** Makes the error for records of which neither tape nor journal says what happened. */
export function tapeDamaged(missing) {
    const { shard, generation, from, to } = missing;
    const count = to - from + 1;
    const what = count === 1 ? "1 record has" : `${count} records have`;
    const place = showPosition(shard, { generation, seq: from });
    const text = `shard ${shard}: ${what} no line, ${place} to ${to}: the tape lacks them, and so does the journal`;
    return new PserverError("TAPE_DAMAGED", text, { shard, generation, from, to });
}
/** Errors of records that cannot be read or folded on; what comes after the next snapshot can be. */
const UNREADABLE = ["JOURNAL_DAMAGED", "SNAPSHOT_DAMAGED", "HISTORY_LOST"];
/**
 * Updates of a shard in the order of its journal. The records are folded, so that the outcome of each is known. A
 * record that cannot be folded is one update, rejected with FOLD_FAILED: the last one of its generation that is
 * known.
 */
export class JournalUpdates {
    #history;
    #subjects;
    #signal;
    #shard;
    #generation = 0;
    /** Why the shard cannot be folded further. */
    #failure;
    constructor(history, subjects, signal) {
        this.#history = history;
        this.#subjects = subjects;
        this.#signal = signal;
    }
    /**
     * Reads the updates after a position up to another one, some at a time. What the source does not hold any more, or
     * cannot read, is left out and told to `onMissing`, if it is of the generation of `to`; records before the first one
     * that it holds only if they should be `known` to it. May be called again to go on.
     * @throws errors of the source and the fold; the reason of the signal.
     */
    async *between(after, to, onMissing = () => undefined, known = true) {
        const inventory = await takeInventory(this.#history);
        const { shard } = inventory;
        /** The last record of the generation of `to` that was read or told. */
        let reached = after.generation === to.generation ? after.seq : 0;
        let isKnown = known;
        const missingUpTo = (seq) => {
            const { generation } = to;
            if (seq > reached)
                onMissing({ shard, generation, from: reached + 1, to: seq });
            reached = Math.max(reached, seq);
        };
        for (const part of rebuildableRanges(inventory)) {
            const { generation, firstSeq, lastSeq } = part;
            const last = { generation, seq: lastSeq };
            if (generation > to.generation || comparePositions(last, after) <= 0)
                continue;
            let fromSeq = generation === after.generation ? Math.max(firstSeq, after.seq) : firstSeq;
            const isLast = generation === to.generation;
            const toSeq = isLast ? Math.min(lastSeq, to.seq) : lastSeq;
            if (fromSeq >= toSeq)
                continue;
            // Records that were never written have no lines either.
            if (isLast) {
                const isSkipped = isEndOfGap(inventory.spans, { generation, seq: fromSeq }, reached);
                if (isSkipped || !isKnown)
                    reached = fromSeq;
                missingUpTo(fromSeq);
                isKnown = true;
            }
            while (fromSeq < toSeq) {
                const readableFrom = yield* this.#readUpTo({ generation, seq: fromSeq }, toSeq, (seq) => {
                    if (isLast)
                        reached = seq;
                });
                if (readableFrom === undefined)
                    break;
                const next = basesOf(inventory).find((base) => base.generation === generation && base.seq >= readableFrom);
                fromSeq = Math.min(next?.seq ?? toSeq, toSeq);
                if (isLast)
                    missingUpTo(fromSeq);
            }
        }
        if (to.seq < END_SEQ && isKnown)
            missingUpTo(to.seq);
    }
    /**
     * Reads the updates after a position up to a record of its generation; tells `onReached` how far it came.
     * @returns the record after the first one that cannot be read; undefined if all could be, or the fold has failed.
     */
    async *#readUpTo(from, toSeq, onReached) {
        try {
            await this.#load(from);
            yield* this.#fold(from.seq, toSeq);
            onReached(toSeq);
        }
        catch (error) {
            const { code } = ensureError(error);
            // Where the fold has failed, the record at which it did is the last one that is known.
            if (code === "FOLD_FAILED")
                onReached(toSeq);
            else if (!UNREADABLE.includes(code))
                throw error;
            else {
                const seq = Math.max(from.seq, this.#shard?.seq ?? 0);
                onReached(seq);
                this.#shard = undefined;
                return seq + 1;
            }
        }
        return undefined;
    }
    /** Reads the updates after a position as they come, until the signal is aborted. @throws as {@link between}. */
    async *follow(after) {
        await this.#load(after);
        let afterSeq = after.seq;
        for (;;) {
            try {
                yield* this.#fold(afterSeq, END_SEQ);
            }
            catch (error) {
                const { code, retryable } = ensureError(error);
                this.#signal.throwIfAborted();
                const newer = await this.#newerGeneration();
                if (newer !== undefined) {
                    await this.#load({ generation: newer, seq: 0 });
                    afterSeq = 0;
                }
                else if (code === "FOLD_FAILED") {
                    await delay(FAILED_PAUSE_MS, undefined, { signal: this.#signal }).catch(() => undefined);
                }
                // A journal without news for a while, or a connection that was lost.
                else if (code !== "TIMEOUT" && !retryable)
                    throw error;
            }
        }
    }
    /** Loads the shard, unless it is loaded, folded up to a position or less. */
    async #load({ generation, seq }) {
        const present = this.#shard;
        const isUsable = this.#failure === undefined && present !== undefined && present.seq <= seq;
        if (this.#generation === generation && isUsable)
            return;
        const [subjects, signal] = [this.#subjects, this.#signal];
        this.#shard = await loadBase(this.#history, { generation, seq }, { subjects, signal });
        this.#generation = generation;
        this.#failure = undefined;
    }
    /** Returns the generation after the present one, if there is one. */
    async #newerGeneration() {
        const last = (await this.#history.spans()).at(-1)?.generation;
        return last !== undefined && last > this.#generation ? last : undefined;
    }
    /** Folds the records up to `toSeq`, and describes those after `afterSeq`. */
    async *#fold(afterSeq, toSeq) {
        const shard = this.#shard;
        if (shard === undefined)
            return;
        if (this.#failure !== undefined)
            throw this.#failure;
        const [history, signal, generation] = [this.#history, this.#signal, this.#generation];
        const place = { shard: history.shard, generation };
        const fold = (record) => foldDescribed(shard, record, place);
        let turnEndsAtMs = performance.now() + TURN_MS;
        for await (const batch of history.read({ generation, seq: shard.seq }, toSeq, signal)) {
            let events = [];
            for (const record of batch) {
                try {
                    const folded = foldUnlessDamaged(record, fold);
                    const { events: described } = folded
                        ? folded.result
                        : fold(await readAgain(history, { generation, seq: record.seq }, record, signal));
                    if (record.seq > afterSeq)
                        events.push(...described);
                }
                catch (error) {
                    const found = ensureError(error);
                    if (found.code !== "FOLD_FAILED") {
                        yield events;
                        throw error;
                    }
                    this.#failure = found;
                    yield [...events, this.#failedUpdate(record, found)];
                    throw found;
                }
                if (performance.now() < turnEndsAtMs)
                    continue;
                yield events;
                events = [];
                await nextTurn();
                signal.throwIfAborted();
                turnEndsAtMs = performance.now() + TURN_MS;
            }
            yield events;
        }
    }
    /** Describes a record that cannot be folded: only its place, its trainer and the error are known. */
    #failedUpdate(record, { code, message }) {
        const { seq, timeMs, payload } = record;
        const summary = summarizeRecord(this.#subjects.job, record);
        return {
            ...{ timeMs, shard: this.#history.shard, generation: this.#generation, seq },
            ...{ entry: 0, entries: 1, verb: summary?.verb ?? "unreadable" },
            outcome: { kind: "rejected", code, message },
            ...summary?.sender,
            bytes: payload.length,
        };
    }
}
/**
 * The updates of a shard after a position up to another one: from its tape, which reaches back
 * further than the journal and needs no fold, and what has no line there, or none yet, from its journal. `onDamage` is told of what
 * is in neither, but not of what was trimmed of a tape at its limit or of a shard without a tape, and of a damaged
 * file of an archived tape.
 * @throws as `tapeUpdates` and `JournalUpdates.between`.
 */
export async function* shardUpdates(history, journal, { after, to, fromMs }, onDamage, signal) {
    const onMissing = (missing) => onDamage(tapeDamaged(missing));
    let covered = after;
    let hasTape = false;
    try {
        for await (const part of tapeUpdates(history, after, to, fromMs, signal)) {
            const isTrimmed = !hasTape && ((await history.isTapeTrimmed?.()) ?? false);
            hasTape = true;
            const skipped = part.skipped && wantedOf(part.skipped, fromMs);
            if (skipped !== undefined)
                yield* journal.between(skipped.after, skipped.to, onMissing, !isTrimmed);
            covered = part.covered;
            if (part.events.length > 0)
                yield part.events;
        }
    }
    catch (error) {
        const found = ensureError(error);
        if (found.code !== "BAD_ARCHIVE")
            throw error;
        hasTape = true;
        onDamage(found);
    }
    if (comparePositions(covered, to) >= 0)
        return;
    yield* journal.between(covered, to, onMissing, hasTape);
}
/**
 * Returns which of the records without lines are listed: not those before the time from which the tape was read, and
 * not the end of a journal that was abandoned, which no owner has folded.
 */
function wantedOf({ after, to }, fromMs) {
    if (after.generation === to.generation)
        return { after, to };
    if (after.generation === 0)
        return fromMs === 0 ? { after, to } : undefined;
    return { after: { generation: to.generation, seq: 0 }, to };
}
const BEGINNING = { generation: 0, seq: 0 };
/**
 * Reads the updates of a job, some at a time, in the order of the times at which the broker stored them; between
 * shards that order is as good as the broker's clock. Followed ones come in the order of arrival. Memory does not
 * grow with the length of the history, but with `last`.
 * @throws TAPE_DAMAGED, BAD_ARCHIVE, see {@link UpdateQuery.onDamage}; errors of the source and the fold; the reason of the signal.
 */
export async function* readUpdates(source, query) {
    const subjects = new JobSubjects(source.job);
    const { since, until, sinceMs, untilMs, follow = false, last, signal } = query;
    const shards = Array.from({ length: source.shards }, (_, shard) => {
        const history = source.shard(shard);
        const journal = new JournalUpdates(history, subjects, signal);
        const span = { after: since?.[shard] ?? BEGINNING, to: until[shard] ?? BEGINNING };
        return { history, journal, ...span, fromMs: sinceMs };
    });
    // Where there is a cut, it is exact, and the time only spares reading.
    const leastMs = since === undefined ? sinceMs : 0;
    const wanted = (events) => events.filter((event) => admits(query, event) &&
        (leastMs === 0 || event.timeMs > leastMs) &&
        event.timeMs <= untilMs);
    let firstDamage;
    const onDamage = (error) => {
        firstDamage ??= error;
        query.onDamage?.(error);
    };
    const past = async function* () {
        const sources = shards.map(({ history, journal, ...span }) => shardUpdates(history, journal, span, onDamage, signal));
        for await (const events of mergeSorted(sources, ({ timeMs }) => timeMs))
            yield wanted(events);
    };
    yield* last === undefined ? past() : lastOf(past(), last);
    if (firstDamage !== undefined && query.onDamage === undefined)
        throw firstDamage;
    if (!follow)
        return;
    const present = shards.map(({ journal, to }) => journal.follow(to));
    for await (const events of mergeArrivals(present))
        yield wanted(events);
}
/**
 * Resolves the range between two points. A time, an update and a named note may lie before what the journals keep:
 * tapes reach back further.
 * @throws as `resolvePoint`.
 */
export async function resolveRange(source, since, until, signal) {
    const end = await resolveOrTime(source, until, signal);
    const { cut: newest } = await resolvePoint(source, { kind: "now" }, signal);
    const begin = since.kind === "start" ? undefined : await resolveOrTime(source, since, signal);
    return {
        since: begin?.cut,
        sinceMs: begin?.timeMs ?? 0,
        until: end.cut ?? newest,
        // The cut is exact.
        untilMs: end.cut === undefined ? (end.timeMs ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY,
    };
}
/** Resolves a point to its cut; if it is a time or a record before what the journals keep, to its time alone. */
async function resolveOrTime(source, point, signal) {
    switch (point.kind) {
        case "time":
            return await cutOrTime(resolvePoint(source, point, signal), point.timeMs);
        case "update":
        case "mark": {
            const found = await findPointed(source, point, signal);
            return await cutOrTime(resolveFound(source, point, found, signal), found.timeMs);
        }
        default:
            return await resolvePoint(source, point, signal);
    }
}
async function cutOrTime(resolving, timeMs) {
    try {
        return await resolving;
    }
    catch (error) {
        if (ensureError(error).code !== "HISTORY_LOST")
            throw error;
        return { cut: undefined, timeMs };
    }
}
//# sourceMappingURL=read-updates.js.map