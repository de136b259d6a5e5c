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
import { FILE_MODES, writeFileAtomically } from "../../model-files/atomic-write.js";
import { ensureError, PserverError } from "../../protocol/index.js";
import { basesBefore, basesOf, connectedUpTo, spanWith, takeInventory, } from "../source.js";
import { jobFrame, requireJob, } from "./archive-layout.js";
import { badArchive, ContainerReader, ContainerWriter } from "./container.js";
import { toRecordFrame } from "./segment.js";
import { appendSnapshot, piecesOf, toSnapshot } from "./snapshot-file.js";
/*
 * A recorded file is an archive of a span in one file: what would be segments and snapshots in a directory follow each
 * other in it, each of them begun by a frame with the job.
 */
/** Bytes of records at which a segment of a recorded file ends: each is read from its beginning. */
const SEGMENT_BYTES = 4 * 1024 ** 2;
/**
 * Writes a span of a history into one file: for each shard the newest snapshot at or before its beginning
 * and the records after it. The file appears whole or not at all.
 * @throws HISTORY_LOST, JOURNAL_DAMAGED if a record of the span is not kept; BAD_VALUE if the span ends
 * before it begins; SNAPSHOT_DAMAGED, DISK_FULL, IO; what the source throws; the reason of the signal.
 */
export async function writeRecording(path, source, { from, to }, { signal, onProgress }) {
    const { job, shards, synchronization } = source;
    const facts = { job, shards, synchronization, archive: "" };
    const parts = [];
    for (const [shard, position] of from.entries()) {
        parts.push(...(await planShard(source.shard(shard), position, to[shard] ?? position)));
    }
    const total = parts.reduce((sum, { bases: [base], to: end }) => sum + end.seq - base.seq, 0);
    let records = 0;
    const bytes = await writeFileAtomically(path, async (handle) => {
        const writer = ContainerWriter.begin(handle, path);
        await writer.append(jobFrame(facts));
        for (const part of parts) {
            for await (const count of writePart(writer, facts, part, signal)) {
                records += count;
                onProgress?.(records, total);
            }
        }
        await writer.end();
    }, FILE_MODES.model);
    const ranges = from.map((_, shard) => {
        const own = parts.filter(({ history }) => history.shard === shard);
        const [begin, end] = [own[0]?.bases[0], own.at(-1)?.to];
        const nothing = { generation: 1, seq: 0 };
        return { shard, from: toPosition(begin ?? nothing), to: toPosition(end ?? nothing) };
    });
    return { bytes, records, shards: ranges };
}
/** Plans the parts of a shard, one for each generation. */
async function planShard(history, from, to) {
    const { shard } = history;
    if (to.generation < from.generation || (to.generation === from.generation && to.seq < from.seq)) {
        const text = `shard ${shard}: the span ends at record ${to.seq}, before its beginning at ${from.seq}`;
        throw new PserverError("BAD_VALUE", text, { shard, expected: from, received: to });
    }
    const inventory = await takeInventory(history);
    const parts = [];
    for (let { generation } = from; generation <= to.generation; generation++) {
        const begin = generation === from.generation ? from : firstOf(inventory, generation);
        if (begin === undefined)
            continue;
        const end = generation === to.generation ? to : { generation, seq: connectedUpTo(inventory, begin) };
        parts.push({ history, inventory, bases: basesBefore(inventory, begin), to: end });
    }
    return parts;
}
/** Returns the position at which a later generation begins: that of its first snapshot. */
function firstOf(inventory, generation) {
    return basesOf(inventory).find((base) => base.generation === generation);
}
/** Writes a snapshot and the records after it; yields how many records were written. */
async function* writePart(writer, facts, { history, inventory, bases, to }, signal) {
    const { shard } = history;
    const { generation } = to;
    const base = await writeBase(writer, facts, history, bases, signal);
    // The record of the snapshot itself tells when the snapshot was up to date.
    const isKept = spanWith(inventory.spans, base) !== undefined;
    const after = { generation, seq: isKept ? base.seq - 1 : base.seq };
    let endsAt = 0;
    for await (const batch of history.read(after, to.seq, signal)) {
        for (const record of batch) {
            if (writer.bytes >= endsAt) {
                await writer.append(jobFrame(facts));
                endsAt = writer.bytes + SEGMENT_BYTES;
            }
            await writer.append(toRecordFrame(shard, generation, record));
        }
        yield batch.length;
    }
}
/**
 * Writes the nearest snapshot that can be read; a part of one that cannot be read stays in the file.
 * @throws SNAPSHOT_DAMAGED if none can.
 */
async function writeBase(writer, facts, history, bases, signal) {
    let failure;
    for (const base of bases) {
        const { snapshot } = base;
        if (snapshot === undefined)
            return base;
        try {
            const pieces = await piecesOf(history, snapshot, signal);
            await appendSnapshot(writer, facts, history.shard, snapshot, pieces);
            return base;
        }
        catch (error) {
            if (ensureError(error).code !== "SNAPSHOT_DAMAGED")
                throw error;
            failure ??= error;
        }
    }
    throw failure;
}
function toPosition({ generation, seq }) {
    return { generation, seq };
}
/** Reads a recorded file once, and checks every byte of it. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
export async function readRecording(path) {
    const env_1 = { stack: [], error: void 0, hasError: false };
    try {
        const reader = __addDisposableResource(env_1, await ContainerReader.open(path), true);
        let index;
        for await (const batch of reader.frames()) {
            for (const placed of batch) {
                index ??= new RecordingIndex(path, placed);
                index.add(placed);
            }
        }
        if (index === undefined)
            throw badArchive(path, 0, "expected what it is of; received nothing");
        const shards = index.shards.map(({ journal, snapshots }) => ({
            journal: () => Promise.resolve(journal),
            tape: () => Promise.resolve([]),
            snapshots: () => Promise.resolve(snapshots),
        }));
        return { facts: index.facts, shards };
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
/** Finds the segments and snapshots in a recorded file; their contents are checked where they are read. */
class RecordingIndex {
    facts;
    shards;
    #path;
    /** Offset at which the present part begins. */
    #offset = 0;
    /** The present part if it is a snapshot, and how many of its pieces have not come. */
    #snapshot;
    #piecesLeft = 0;
    constructor(path, { frame, offset }) {
        this.#path = path;
        this.facts = requireJob(path, offset, frame);
        if (this.facts.archive !== "") {
            throw badArchive(path, offset, "expected a recorded file; this is a part of an archive");
        }
        this.shards = Array.from({ length: this.facts.shards }, () => ({ journal: [], snapshots: [] }));
    }
    add({ frame, offset }) {
        if (frame.kind === "job") {
            this.#offset = offset;
            return;
        }
        if (frame.kind === "end" || frame.kind === "tape") {
            const problem = `expected a record or a snapshot; received a ${frame.kind}`;
            throw badArchive(this.#path, offset, problem);
        }
        const parts = this.shards[frame.shard];
        if (parts === undefined) {
            throw badArchive(this.#path, offset, `the job has no shard ${frame.shard}`);
        }
        const part = { path: this.#path, offset: this.#offset };
        const { journal, snapshots } = parts;
        if (frame.kind === "record") {
            const { generation, seq } = frame;
            const last = journal.at(-1);
            if (last?.offset === part.offset)
                journal[journal.length - 1] = { ...last, lastSeq: seq };
            else
                journal.push({ ...part, generation, firstSeq: seq, lastSeq: seq });
            return;
        }
        if (frame.kind === "manifest") {
            const { seq: storedSeq, manifest } = toSnapshot(this.#path, offset, frame);
            const { generation, seq } = manifest;
            this.#snapshot = { ...part, generation, seq, storedSeq };
            this.#piecesLeft = frame.pieces.length;
        }
        else
            this.#piecesLeft -= 1;
        // One that could not be read whole when it was recorded is left out.
        if (this.#piecesLeft === 0 && this.#snapshot !== undefined)
            snapshots.push(this.#snapshot);
    }
}
//# sourceMappingURL=recorded-file.js.map