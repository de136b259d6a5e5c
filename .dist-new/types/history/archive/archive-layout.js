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
import { randomUUID } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { FILE_MODES, makeDirectories, writeFileAtomically, } from "../../model-files/atomic-write.js";
import { comparePositions, PserverError, synchronizationText, } from "../../protocol/index.js";
import { errnoCode, fileError } from "../../system/file-errors.js";
import { badArchive, ContainerReader, ContainerWriter } from "./container.js";
/** Name of the file that makes a directory an archive. */
const FACTS_FILE = "archive.pserver";
const SEGMENT = /^(\d+)-(\d+)-(\d+)\.segment$/;
const OPEN_SEGMENT = /^(\d+)-(\d+)\.(\d+)\.open$/;
const GAP = /^(\d+)-(\d+)-(\d+)\.gap$/;
const SNAPSHOT = /^(\d+)-(\d+)-(\d+)\.snapshot$/;
/** Digits of a sequence number in a name, so that names sort as numbers do. */
const DIGITS = 12;
/** Returns the directory of a shard's segments. */
export function journalDirectory(archive, shard) {
    return join(archive, `shard-${shard}`, "journal");
}
/** Returns the directory of the segments of a shard's tape. */
export function tapeDirectory(archive, shard) {
    return join(archive, `shard-${shard}`, "tape");
}
/** Returns the directory of a shard's snapshots. */
export function snapshotDirectory(archive, shard) {
    return join(archive, `shard-${shard}`, "snapshots");
}
/** Returns the files of a shard in the directory of an archive. */
export function directoryFiles(archive, shard) {
    return {
        journal: () => listSegments(journalDirectory(archive, shard)),
        gaps: () => listGaps(journalDirectory(archive, shard)),
        tape: () => listSegments(tapeDirectory(archive, shard)),
        snapshots: () => listSnapshots(snapshotDirectory(archive, shard)),
    };
}
/** Returns the path of a complete segment. */
export function segmentPath(directory, { generation, firstSeq, lastSeq }) {
    return join(directory, `${generation}-${padded(firstSeq)}-${padded(lastSeq)}.segment`);
}
/** Returns the path of a segment that a run is writing. No other run writes a file of this name. */
export function openSegmentPath(directory, { generation, seq }, run) {
    return join(directory, `${generation}-${padded(seq)}.${run}.open`);
}
/** Returns the path of a snapshot. */
export function snapshotPath(directory, { generation, seq }, storedSeq) {
    return join(directory, `${generation}-${padded(seq)}-${padded(storedSeq)}.snapshot`);
}
/** Lists the segments in a directory, by generation and contents, ascending; none if it is not there. */
export async function listSegments(directory) {
    const segments = [];
    for (const name of await namesIn(directory)) {
        const [complete, open] = [SEGMENT.exec(name), OPEN_SEGMENT.exec(name)];
        const [, generation, firstSeq, last] = complete ?? open ?? [];
        if (generation === undefined)
            continue;
        segments.push({
            path: join(directory, name),
            generation: Number(generation),
            firstSeq: Number(firstSeq),
            lastSeq: open === null ? Number(last) : undefined,
            run: open === null ? undefined : Number(last),
        });
    }
    return segments.sort((a, b) => a.generation - b.generation || a.firstSeq - b.firstSeq);
}
/** Lists the gaps in a directory of segments, by generation and contents, ascending; none if it is not there. */
async function listGaps(directory) {
    const gaps = [];
    for (const name of await namesIn(directory)) {
        const match = GAP.exec(name);
        if (match === null)
            continue;
        const [generation, firstSeq, lastSeq] = match.slice(1).map(Number);
        gaps.push({ path: join(directory, name), generation, firstSeq, lastSeq });
    }
    return gaps.sort((a, b) => a.generation - b.generation || a.firstSeq - b.firstSeq);
}
/**
 * Notes in the directory of a shard's segments which records the archive lacks.
 * @throws DISK_FULL, IO.
 */
export async function writeGap(directory, facts, shard, gap) {
    await makeDirectories(directory);
    const { generation, firstSeq, lastSeq } = gap;
    const name = `${generation}-${padded(firstSeq)}-${padded(lastSeq)}.gap`;
    await writeFileAtomically(join(directory, name), async (handle, file) => {
        const writer = ContainerWriter.begin(handle, file);
        await writer.append(jobFrame(facts));
        await writer.append({ kind: "gap", shard, generation, firstSeq, lastSeq });
        await writer.end();
    }, FILE_MODES.model);
}
/** Checks that the file of a gap says what its name says. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
export async function checkGap({ path, generation, firstSeq, lastSeq }, shard, { archive }) {
    const env_1 = { stack: [], error: void 0, hasError: false };
    try {
        const reader = __addDisposableResource(env_1, await ContainerReader.open(path), true);
        const expected = JSON.stringify({ kind: "gap", shard, generation, firstSeq, lastSeq });
        let place = 0;
        for await (const batch of reader.frames()) {
            for (const { frame, offset } of batch) {
                const isExpected = place === 0
                    ? requireJob(path, offset, frame).archive === archive
                    : place === 1 && JSON.stringify(frame) === expected;
                if (!isExpected)
                    throw badArchive(path, offset, "the gap is not the one of its name");
                place += 1;
            }
        }
        if (place < 2)
            throw badArchive(path, 0, "expected a gap; received nothing");
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
/** Lists the snapshots in a directory in the order in which they were stored; none if it is not there. */
export async function listSnapshots(directory) {
    const snapshots = [];
    for (const name of await namesIn(directory)) {
        const match = SNAPSHOT.exec(name);
        if (match === null)
            continue;
        const [generation, seq, storedSeq] = match.slice(1).map(Number);
        snapshots.push({ path: join(directory, name), generation, seq, storedSeq });
    }
    return snapshots.sort((a, b) => a.storedSeq - b.storedSeq);
}
async function namesIn(directory) {
    try {
        return await readdir(directory);
    }
    catch (error) {
        if (errnoCode(error) === "ENOENT")
            return [];
        throw fileError("read", directory, error);
    }
}
function padded(seq) {
    return String(seq).padStart(DIGITS, "0");
}
/**
 * Reads the facts of the archive in a directory.
 * @throws BAD_ARCHIVE if there is none or it is damaged, BAD_VERSION, IO.
 */
export async function readArchiveFacts(directory) {
    const env_2 = { stack: [], error: void 0, hasError: false };
    try {
        const path = join(directory, FACTS_FILE);
        if (!(await exists(path))) {
            throw new PserverError("BAD_ARCHIVE", `${directory}: expected an archive; it has no ${FACTS_FILE}`, {
                path: directory,
            });
        }
        const reader = __addDisposableResource(env_2, await ContainerReader.open(path), true);
        let facts;
        for await (const batch of reader.frames()) {
            for (const { frame, offset } of batch)
                facts = requireJob(path, offset, frame);
        }
        if (facts === undefined)
            throw badArchive(path, 0, "expected what it is of; received nothing");
        return facts;
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
/**
 * Reads the facts of the archive in a directory; makes an empty archive of `job` where there is nothing.
 * @throws BAD_ARCHIVE if it is of another job, or the directory holds something else; DISK_FULL, IO.
 */
export async function openArchive(directory, job) {
    if (await exists(join(directory, FACTS_FILE))) {
        const facts = await readArchiveFacts(directory);
        checkSameJob(directory, facts, job);
        return facts;
    }
    await makeDirectories(directory);
    const { job: name, shards, synchronization } = job;
    const facts = { job: name, shards, synchronization, archive: randomUUID() };
    const path = join(directory, FACTS_FILE);
    await writeFileAtomically(path, async (handle, file) => {
        const writer = ContainerWriter.begin(handle, file);
        await writer.append(jobFrame(facts));
        await writer.end();
    }, FILE_MODES.model);
    return facts;
}
/** Makes the first frame of every file of an archive. */
export function jobFrame({ job, shards, synchronization, archive }) {
    return { kind: "job", job, shards, synchronization, archive };
}
/** Checks that two histories are of one job. @throws BAD_ARCHIVE, which names the first by `path`. */
export function checkSameJob(path, archived, job) {
    const [expected, received] = [describe(job), describe(archived)];
    if (expected === received)
        return;
    throw new PserverError("BAD_ARCHIVE", `${path}: expected ${expected}; it is of ${received}`, {
        ...{ path, expected, received },
    });
}
/** Reads the facts of the archive from the first frame of a file. @throws BAD_ARCHIVE if it is another frame. */
export function requireJob(path, offset, frame) {
    if (frame.kind === "job")
        return frame;
    throw badArchive(path, offset, `expected the job; received a ${frame.kind}`);
}
function describe({ job, shards, synchronization }) {
    return `job ${job} with ${shards} shards, ${synchronizationText(synchronization)}`;
}
async function exists(path) {
    try {
        await stat(path);
        return true;
    }
    catch (error) {
        if (errnoCode(error) === "ENOENT")
            return false;
        throw fileError("read", path, error);
    }
}
/**
 * Returns the snapshots by generation and record, ascending; of several of one record only the one stored last: a
 * take-over commits the newest again.
 */
export function uniqueSnapshots(snapshots) {
    const unique = new Map();
    for (const snapshot of [...snapshots].sort((a, b) => a.seq - b.seq)) {
        const { generation, seq } = snapshot.manifest;
        unique.set(`${generation}:${seq}`, snapshot);
    }
    return [...unique.values()].sort((a, b) => comparePositions(a.manifest, b.manifest));
}
//# sourceMappingURL=archive-layout.js.map