var __addDisposableResource = (this && this.__addDisposableResource) || function (env, value, async) {
    if (value !== null && value !== void 0) {
        if (typeof value !== "object" && typeof value !== "function") throw new TypeError("Object expected.");
        var dispose, inner;
        if (async) {
            if (!Symbol.asyncDispose) throw new TypeError("Symbol.asyncDispose is not defined.");
            dispose = value[Symbol.asyncDispose];
        }
        if (dispose === void 0) {
            if (!Symbol.dispose) throw new TypeError("Symbol.dispose is not defined.");
            dispose = value[Symbol.dispose];
            if (async) inner = dispose;
        }
        if (typeof dispose !== "function") throw new TypeError("Object not disposable.");
        if (inner) dispose = function() { try { inner.call(this); } catch (e) { return Promise.reject(e); } };
        env.stack.push({ value: value, dispose: dispose, async: async });
    }
    else if (async) {
        env.stack.push({ async: true });
    }
    return value;
};
var __disposeResources = (this && this.__disposeResources) || (function (SuppressedError) {
    return function (env) {
        function fail(e) {
            env.error = env.hasError ? new SuppressedError(e, env.error, "An error was suppressed during disposal.") : e;
            env.hasError = true;
        }
        var r, s = 0;
        function next() {
            while (r = env.stack.pop()) {
                try {
                    if (!r.async && s === 1) return s = 0, env.stack.push(r), Promise.resolve().then(next);
                    if (r.dispose) {
                        var result = r.dispose.call(r.value);
                        if (r.async) return s |= 2, Promise.resolve(result).then(next, function(e) { fail(e); return next(); });
                    }
                    else s |= 1;
                }
                catch (e) {
                    fail(e);
                }
            }
            if (s === 1) return env.hasError ? Promise.reject(env.error) : Promise.resolve();
            if (env.hasError) throw env.error;
        }
        return next();
    };
})(typeof SuppressedError === "function" ? SuppressedError : function (error, suppressed, message) {
    var e = new Error(message);
    return e.name = "SuppressedError", e.error = error, e.suppressed = suppressed, e;
});
import { open, rename, rm, stat } from "node:fs/promises";
import { journalDamaged } from "../../actors/journal/journal-check.js";
import { FILE_MODES, makeDirectories, syncDirectory } from "../../model-files/atomic-write.js";
import { ensureError } from "../../protocol/index.js";
import { io } from "../../system/file-errors.js";
import { jobFrame, requireJob, segmentPath, } from "./archive-layout.js";
import { badArchive, ContainerReader, ContainerWriter, PREAMBLE_BYTES, RunningTotals, } from "./container.js";
/** Joins spans that continue or cover each other; returns them by generation and record, ascending. */
export function joinSpans(spans) {
    const sorted = [...spans].sort((a, b) => a.generation - b.generation || a.firstSeq - b.firstSeq);
    const joined = [];
    for (const { generation, firstSeq, lastSeq } of sorted) {
        const last = joined.at(-1);
        if (last?.generation === generation && firstSeq <= last.lastSeq + 1) {
            joined[joined.length - 1] = { ...last, lastSeq: Math.max(last.lastSeq, lastSeq) };
        }
        else {
            joined.push({ generation, firstSeq, lastSeq });
        }
    }
    return joined;
}
/** Returns the records that spans lack between two that they have, and before the first of a first generation. */
export function gapsBetween(spans) {
    const gaps = [];
    for (const [i, { generation, firstSeq }] of spans.entries()) {
        const before = spans[i - 1];
        const nextSeq = before?.generation === generation ? before.lastSeq + 1 : 1;
        if (firstSeq > nextSeq)
            gaps.push({ generation, firstSeq: nextSeq, lastSeq: firstSeq - 1 });
    }
    return gaps;
}
/** Returns the place to which a frame of a segment belongs. */
export function placeOf(frame) {
    const { shard } = frame;
    return frame.kind === "tape"
        ? { shard, generation: TAPE_GENERATION, seq: frame.number }
        : { shard, generation: frame.generation, seq: frame.seq };
}
/** The generation in the names of a tape's segments. */
const TAPE_GENERATION = 0;
/** Checks that the frames of a segment are consecutive, and those that its name says. */
class SegmentCheck {
    #kind;
    #segment;
    #shard;
    #archive;
    #nextSeq;
    #isFirst = true;
    constructor(kind, segment, shard, archive) {
        this.#kind = kind;
        this.#segment = segment;
        this.#shard = shard;
        this.#archive = archive;
        this.#nextSeq = segment.firstSeq;
    }
    /** Sequence of the last frame. */
    get lastSeq() {
        return this.#nextSeq - 1;
    }
    /** Returns the frames that the segment consists of, from a batch that was read. @throws BAD_ARCHIVE */
    contents(batch) {
        const contents = [];
        for (const placed of batch) {
            if (this.#isFirst)
                this.#checkFirst(placed);
            else if (placed.frame.kind !== "end")
                contents.push(this.#checkNext(placed));
            this.#isFirst = false;
        }
        return contents;
    }
    /** Checks that the last frame is the one that the name says. @throws BAD_ARCHIVE */
    checkLast() {
        const { path, lastSeq } = this.#segment;
        if (lastSeq === undefined || lastSeq === this.lastSeq)
            return;
        const what = this.#kind === "tape" ? "messages" : "records";
        throw badArchive(path, 0, `expected ${what} up to ${lastSeq}; it has them up to ${this.lastSeq}`);
    }
    #checkFirst({ frame, offset }) {
        const { path } = this.#segment;
        const { archive } = requireJob(path, offset, frame);
        if (archive === this.#archive)
            return;
        throw badArchive(path, offset, "the file is of another archive");
    }
    #checkNext({ frame, offset }) {
        const { path, generation } = this.#segment;
        const kind = this.#kind;
        const expected = describePlace(kind, { shard: this.#shard, generation, seq: this.#nextSeq });
        if (!isOfKind(frame, kind)) {
            throw badArchive(path, offset, `expected ${expected}; received a ${frame.kind}`);
        }
        const received = describePlace(kind, placeOf(frame));
        if (received !== expected) {
            throw badArchive(path, offset, `expected ${expected}; received ${received}`);
        }
        this.#nextSeq++;
        return frame;
    }
}
function isOfKind(frame, kind) {
    return frame.kind === kind;
}
function describePlace(kind, { shard, generation, seq }) {
    return kind === "tape"
        ? `message ${seq} of the tape of shard ${shard}`
        : `record ${seq} of shard ${shard}, generation ${generation}`;
}
/** Reads the records of a segment of a journal, as {@link readFrames} does. */
export async function* readSegment(segment, shard, facts) {
    for await (const batch of readFrames("record", segment, shard, facts)) {
        yield batch.map(toTimedRecord);
    }
}
/**
 * Reads the frames of a segment, some at a time; the whole ones if it is being written.
 * @throws BAD_ARCHIVE, BAD_VERSION, IO.
 */
export async function* readFrames(kind, segment, shard, { archive }) {
    const env_1 = { stack: [], error: void 0, hasError: false };
    try {
        const isOpen = segment.lastSeq === undefined;
        if (isOpen && (await isNotBegun(segment.path)))
            return;
        const reader = __addDisposableResource(env_1, await ContainerReader.open(segment.path), true);
        const check = new SegmentCheck(kind, segment, shard, archive);
        for await (const batch of isOpen ? reader.wholeFrames() : reader.part(segment.offset)) {
            const contents = check.contents(batch);
            if (contents.length > 0)
                yield contents;
        }
        check.checkLast();
    }
    catch (e_1) {
        env_1.error = e_1;
        env_1.hasError = true;
    }
    finally {
        const result_1 = __disposeResources(env_1);
        if (result_1)
            await result_1;
    }
}
/**
 * Returns the contents of a segment, which may be one that is being written, up to the first damage.
 * @throws BAD_ARCHIVE if the preamble is damaged, BAD_VERSION, IO.
 */
export async function readTail(kind, segment, shard, { archive }) {
    const sums = new RunningTotals();
    const check = new SegmentCheck(kind, segment, shard, archive);
    let [isEnded, last, damage] = [
        false,
        undefined,
        undefined,
    ];
    if (!(await isNotBegun(segment.path))) {
        const env_2 = { stack: [], error: void 0, hasError: false };
        try {
            const reader = __addDisposableResource(env_2, await ContainerReader.open(segment.path), true);
            try {
                for await (const batch of reader.wholeFrames(sums)) {
                    last = check.contents(batch).at(-1) ?? last;
                    isEnded = batch.at(-1)?.frame.kind === "end";
                }
            }
            catch (error) {
                damage = ensureError(error);
                if (damage.code !== "BAD_ARCHIVE")
                    throw damage;
            }
        }
        catch (e_2) {
            env_2.error = e_2;
            env_2.hasError = true;
        }
        finally {
            const result_2 = __disposeResources(env_2);
            if (result_2)
                await result_2;
        }
    }
    return { lastSeq: check.lastSeq, isEnded: isEnded && damage === undefined, sums, last, damage };
}
/** Whether a file is empty, or holds a part of its preamble and nothing more. */
async function isNotBegun(path) {
    return (await io("examine", path, stat(path))).size < PREAMBLE_BYTES;
}
/** Cuts batches to the records after `afterSeq` up to `toSeq`. @throws JOURNAL_DAMAGED if one is missing. */
export async function* sliceRecords(batches, shard, afterSeq, toSeq) {
    let lastSeq = afterSeq;
    for await (const batch of batches) {
        const wanted = batch.filter(({ seq }) => seq > lastSeq && seq <= toSeq);
        const [first] = wanted;
        if (first === undefined)
            continue;
        if (first.seq !== lastSeq + 1)
            throw journalDamaged(shard, lastSeq + 1, first.seq);
        lastSeq = wanted.at(-1)?.seq ?? lastSeq;
        yield wanted;
        if (lastSeq >= toSeq)
            break;
    }
    return lastSeq;
}
/** Returns a record as all sources give it. */
function toTimedRecord({ seq, timeMs, subject, data }) {
    return { seq, timeMs, subject, payload: data };
}
/** Returns a record as a segment holds it. */
export function toRecordFrame(shard, generation, { seq, timeMs, subject, payload }) {
    return { kind: "record", shard, generation, seq, timeMs, subject, data: payload };
}
/**
 * Appends the records of a journal, or the messages of a tape, to the segments of one shard. After an error it must be closed; what was synced
 * stays readable.
 */
export class SegmentWriter {
    #deps;
    #open;
    #failed = false;
    #spans = [];
    constructor(deps) {
        this.#deps = deps;
    }
    /** Spans of the frames that were appended. */
    get spans() {
        return this.#spans;
    }
    /**
     * Appends consecutive frames of one generation. Where they do not follow those before, a new segment begins.
     * @throws DISK_FULL, IO.
     */
    async append(frames) {
        await this.#orFail(async () => {
            for (const frame of frames) {
                const { generation, seq } = placeOf(frame);
                const segment = await this.#segmentFor(generation, seq);
                await segment.writer.append(frame);
                segment.lastSeq = seq;
            }
        });
        const [first, last] = [frames[0], frames.at(-1)];
        if (first === undefined || last === undefined)
            return;
        const [{ generation, seq: firstSeq }, { seq: lastSeq }] = [placeOf(first), placeOf(last)];
        this.#spans = joinSpans([...this.#spans, { generation, firstSeq, lastSeq }]);
    }
    /** Waits until all is on disk. @throws DISK_FULL, IO. */
    async sync() {
        await this.#orFail(async () => {
            await this.#open?.writer.sync();
        });
    }
    /** Completes the segment; after an error, only cuts off the part of a frame at its end. */
    async close() {
        const segment = this.#open;
        this.#open = undefined;
        if (segment === undefined)
            return;
        const { handle, path, writer, generation, firstSeq, lastSeq } = segment;
        try {
            if (this.#failed) {
                await handle.truncate(writer.writtenBytes).catch(() => undefined);
                return;
            }
            await writer.end();
            await writer.sync();
        }
        finally {
            await handle.close();
        }
        const { directory } = this.#deps;
        const complete = segmentPath(directory, generation, firstSeq, lastSeq);
        await io("rename", path, rename(path, complete));
        await syncDirectory(directory);
    }
    /** Returns the segment that takes a frame: the present one, or a new one. */
    async #segmentFor(generation, seq) {
        const present = this.#open;
        if (present !== undefined) {
            const follows = present.generation === generation && present.lastSeq + 1 === seq;
            if (follows && present.writer.bytes < this.#deps.segmentBytes)
                return present;
            await this.close();
        }
        this.#open = await this.#begin(generation, seq);
        return this.#open;
    }
    async #begin(generation, firstSeq) {
        const { directory, facts } = this.#deps;
        await makeDirectories(directory);
        const path = segmentPath(directory, generation, firstSeq);
        const handle = await io("create", path, open(path, "wx", FILE_MODES.model));
        try {
            const writer = ContainerWriter.begin(handle, path);
            await writer.append(jobFrame(facts));
            await syncDirectory(directory);
            return { path, handle, writer, generation, firstSeq, lastSeq: firstSeq - 1 };
        }
        catch (error) {
            await handle.close();
            await rm(path, { force: true });
            throw error;
        }
    }
    async #orFail(work) {
        try {
            await work();
        }
        catch (error) {
            this.#failed = true;
            throw error;
        }
    }
}
//# sourceMappingURL=segment.js.map