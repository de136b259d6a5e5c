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
import { readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { FILE_MODES, syncDirectory, writeFileAtomically } from "../../model-files/atomic-write.js";
import { isTemporaryName } from "../../model-files/temporary-files.js";
import { isSealed } from "../../protocol/codec.js";
import { ensureError } from "../../protocol/index.js";
import { errnoCode, fileError, io } from "../../system/file-errors.js";
import { recordAt, } from "../source.js";
import { directoryFiles, journalDirectory, listSegments, listSnapshots, segmentPath, snapshotDirectory, tapeDirectory, writeGap, } from "./archive-layout.js";
import { ArchiveShard, isMissing, toTapeMessage } from "./archive-source.js";
import { ContainerReader, makeEndFrame } from "./container.js";
import { checkSameHistory, contradictsBroker, readTapeAfter } from "./joined-source.js";
import { gapsBetween, joinSpans, readTail, SegmentWriter, toRecordFrame, } from "./segment.js";
import { piecesOf, readSnapshotHeader, writeSnapshot } from "./snapshot-file.js";
/** Bytes and time after which the copier waits until the records are on disk. */
const SYNC_BYTES = 32 * 1024 ** 2;
const SYNC_MS = 2_000;
/** Copies the records of one shard into an archive. */
export class RecordCopier {
    #deps;
    /** Last record on disk, by generation. */
    #last;
    #bytes = 0;
    constructor(deps) {
        this.#deps = deps;
        this.#last = new Map(deps.archived.map(({ generation, lastSeq }) => [generation, lastSeq]));
    }
    /** The newest record on disk; undefined before the first. */
    get newest() {
        const generation = Math.max(0, ...this.#last.keys());
        return generation === 0 ? undefined : { generation, seq: this.#last.get(generation) ?? 0 };
    }
    /** Bytes of the payloads copied. */
    get bytes() {
        return this.#bytes;
    }
    /** Returns how many records of spans are not on disk yet. */
    behind(spans) {
        const missing = spans.map((span) => span.lastSeq - this.#nextSeq(span) + 1);
        return missing.reduce((sum, records) => sum + Math.max(0, records), 0);
    }
    /**
     * Copies the records of a span after those that are on disk. Where records are trimmed while it copies, or cannot be
     * read, it goes on with the next one that is there, and notes the gap in the archive.
     * @throws DISK_FULL, IO; errors of the source, for example NO_BROKER; the reason of `signal`.
     */
    async copy(span, signal) {
        const { generation, lastSeq } = span;
        let nextSeq = this.#nextSeq(span);
        while (nextSeq !== undefined && nextSeq <= lastSeq) {
            nextSeq = await this.#copyFrom({ generation, firstSeq: nextSeq, lastSeq }, signal);
        }
    }
    /**
     * Copies records one after the other.
     * @returns the next record that can be copied if one before it cannot; undefined at the end, or if none is known.
     */
    async #copyFrom({ generation, firstSeq, lastSeq }, signal) {
        const { source, writer } = this.#deps;
        let copied = firstSeq - 1;
        let [unsynced, syncedMs] = [0, performance.now()];
        const sync = async () => {
            await writer.sync();
            [unsynced, syncedMs] = [0, performance.now()];
            this.#synced(generation, copied, firstSeq);
        };
        try {
            const after = { generation, seq: firstSeq - 1 };
            for await (const batch of source.read(after, lastSeq, signal)) {
                const records = await this.#checked(generation, batch, signal);
                if (copied < firstSeq)
                    await this.#noteGapBefore(generation, firstSeq);
                await writer.append(records.map((record) => toRecordFrame(source.shard, generation, record)));
                copied = records.at(-1)?.seq ?? copied;
                unsynced += bytesOf(records);
                this.#bytes += bytesOf(records);
                if (unsynced >= SYNC_BYTES || performance.now() - syncedMs >= SYNC_MS)
                    await sync();
            }
        }
        catch (error) {
            const found = ensureError(error);
            if (found.code !== "JOURNAL_DAMAGED" && found.code !== "HISTORY_LOST")
                throw found;
            await sync();
            if (found.code === "JOURNAL_DAMAGED")
                this.#deps.onDamaged(found);
            const nextSeq = await this.#seqAfter(generation, copied + 1, found);
            return nextSeq !== undefined && nextSeq > copied + 1 ? nextSeq : undefined;
        }
        await sync();
        return undefined;
    }
    /** Returns the record with which copying goes on after an error at record `seq`; undefined if it is not known. */
    async #seqAfter(generation, seq, { code, details }) {
        const { found, seq: changedSeq } = details;
        if (code === "JOURNAL_DAMAGED" && typeof found === "number")
            return found;
        if (code === "JOURNAL_DAMAGED")
            return changedSeq === seq ? seq + 1 : undefined;
        const spans = await this.#deps.source.spans();
        return spans.find((span) => span.generation === generation && span.lastSeq >= seq)?.firstSeq;
    }
    async #noteGapBefore(generation, seq) {
        const firstSeq = (this.#last.get(generation) ?? 0) + 1;
        if (firstSeq === seq)
            return;
        await this.#deps.noteGap({ generation, firstSeq, lastSeq: seq - 1 });
    }
    /** Whether a span ends before a record that was copied: then its journal is another, or was cut off. */
    hasShrunk({ generation, lastSeq }) {
        return lastSeq < (this.#last.get(generation) ?? 0);
    }
    #synced(generation, seq, firstSeq) {
        if (seq < firstSeq)
            return;
        this.#last.set(generation, seq);
        this.#deps.onCopied();
    }
    #nextSeq({ generation, firstSeq }) {
        return Math.max(1, firstSeq, (this.#last.get(generation) ?? 0) + 1);
    }
    /**
     * Returns records as they are stored: one that does not match its checksum, and so may have been damaged in
     * transit, is read again.
     */
    async #checked(generation, batch, signal) {
        if (batch.every(({ payload }) => isSealed(payload)))
            return batch;
        const records = [];
        for (const record of batch) {
            records.push(isSealed(record.payload) ? record : await this.#readAgain(generation, record, signal));
        }
        return records;
    }
    async #readAgain(generation, record, signal) {
        const position = { generation, seq: record.seq };
        // If the record was trimmed since, the first reading is all that is left of it.
        return (await recordAt(this.#deps.source, position, signal)) ?? record;
    }
}
function bytesOf(records) {
    return records.reduce((sum, { payload }) => sum + payload.length, 0);
}
/** Copies the snapshots of one shard into an archive, in the order in which they were stored. */
export class SnapshotCopier {
    #deps;
    /** The manifest that was copied last; its pieces are in the archive. */
    #copied;
    /** Sequence of the manifest that was copied or left out last. */
    #lastSeq = 0;
    #newest;
    #bytes = 0;
    constructor(deps) {
        this.#deps = deps;
    }
    /** Goes on after the last snapshot in the archive. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
    static async open(deps) {
        const copier = new SnapshotCopier(deps);
        const { directory, facts, source } = deps;
        const last = (await listSnapshots(snapshotDirectory(directory, source.shard))).at(-1);
        if (last === undefined)
            return copier;
        const { snapshot } = await readSnapshotHeader(last, source.shard, facts);
        copier.#copied = snapshot.manifest;
        copier.#note(snapshot);
        return copier;
    }
    /** The record of the newest snapshot that was copied; undefined before the first. */
    get newest() {
        return this.#newest;
    }
    /** Bytes of the files written. */
    get bytes() {
        return this.#bytes;
    }
    /**
     * Copies the snapshots that came after the last one. Leaves out those that are removed in between.
     * @throws DISK_FULL, IO; errors of the source, for example NO_BROKER; the reason of `signal`.
     */
    async copy(signal) {
        const found = [...(await this.#deps.source.snapshots())].sort((a, b) => a.seq - b.seq);
        for (const snapshot of found) {
            signal.throwIfAborted();
            this.#checkJournal(snapshot.manifest);
            if (snapshot.seq <= this.#lastSeq)
                continue;
            // A take-over commits the newest snapshot again.
            if (!isSameCut(snapshot.manifest, this.#copied))
                await this.#copyOne(snapshot, signal);
            this.#note(snapshot);
        }
    }
    /** Checks that a snapshot is of the same journal as the last one copied of its generation. @throws BAD_ARCHIVE */
    #checkJournal({ generation, created }) {
        const copied = this.#copied;
        // A snapshot that was made before its journal does not know when that was created.
        const isOther = created !== "" && copied?.created !== "" && created !== copied?.created;
        if (copied?.generation !== generation || !isOther)
            return;
        const { directory, source } = this.#deps;
        const journal = `the journal of shard ${source.shard}, generation ${generation}`;
        throw contradictsBroker(directory, `${journal}, was created at ${copied.created}; now at ${created}`);
    }
    #note({ seq: storedSeq, manifest: { generation, seq } }) {
        this.#lastSeq = storedSeq;
        this.#newest = { generation, seq };
    }
    async #copyOne(snapshot, signal) {
        const { directory, facts, source, onDamaged } = this.#deps;
        try {
            // The pieces that the manifest before it names are in the archive.
            const before = this.#copied;
            const known = [...(before?.pieces ?? []), ...(before?.state ?? []).map(({ seq }) => seq)];
            const pieces = await piecesOf(source, snapshot, signal, known);
            this.#bytes += await writeSnapshot(directory, facts, source.shard, snapshot, pieces);
            this.#copied = snapshot.manifest;
        }
        catch (error) {
            const found = ensureError(error);
            if (found.code !== "SNAPSHOT_DAMAGED")
                throw found;
            const isKept = (await source.snapshots()).some(({ seq }) => seq === snapshot.seq);
            if (isKept)
                onDamaged(found);
        }
    }
}
/** Whether two manifests name the same state of the same journal. */
function isSameCut(a, b) {
    const key = ({ generation, created, seq, state }) => JSON.stringify([generation, created, seq, state.map((ref) => [ref.seq, ref.crc])]);
    return b !== undefined && key(a) === key(b);
}
/** Bytes of messages that are held in memory before they are written. */
const BATCH_BYTES = 1024 ** 2;
/** Copies the tape of one shard into an archive, from its beginning on: it is never trimmed. */
export class TapeCopier {
    #deps;
    #last;
    #messages = 0;
    #bytes = 0;
    constructor(deps) {
        this.#deps = deps;
    }
    /**
     * Goes on after the last message in the archive.
     * @throws BAD_VERSION, IO.
     */
    static async open(deps) {
        const copier = new TapeCopier(deps);
        const { directory, facts, source, onDamaged } = deps;
        const segments = await listSegments(tapeDirectory(directory, source.shard));
        for (const segment of segments.reverse()) {
            const tail = readTail("tape", segment, source.shard, facts);
            const { last, lastSeq, damage } = await tail.catch(damaged);
            if (damage !== undefined)
                onDamaged(damage);
            copier.#messages = Math.max(copier.#messages, segment.lastSeq ?? lastSeq);
            copier.#last = last && toTapeMessage(last);
            if (last !== undefined)
                break;
        }
        return copier;
    }
    /** Number of messages that the archive has, including those in damaged segments. */
    get messages() {
        return this.#messages;
    }
    /** Bytes of the messages copied. */
    get bytes() {
        return this.#bytes;
    }
    /**
     * Copies the messages that came after the last one.
     * @throws DISK_FULL, IO; errors of the source, for example NO_BROKER; the reason of `signal`.
     */
    async copy(signal) {
        const { source } = this.#deps;
        let batch = [];
        let batchBytes = 0;
        for await (const message of readTapeAfter(source, this.#last, signal)) {
            const number = this.#messages + batch.length + 1;
            batch.push({ kind: "tape", shard: source.shard, number, ...message });
            batchBytes += message.data.length;
            if (batchBytes < BATCH_BYTES)
                continue;
            await this.#write(batch);
            [batch, batchBytes] = [[], 0];
        }
        await this.#write(batch);
    }
    async #write(batch) {
        const last = batch.at(-1);
        if (last === undefined)
            return;
        const { writer } = this.#deps;
        await writer.append(batch);
        await writer.sync();
        this.#last = toTapeMessage(last);
        this.#messages = last.number;
        this.#bytes += batch.reduce((sum, { data }) => sum + data.length, 0);
    }
}
/** Returns the result for a segment of which nothing can be read. */
function damaged(error) {
    const damage = ensureError(error);
    if (damage.code !== "BAD_ARCHIVE")
        throw damage;
    return { last: undefined, lastSeq: 0, damage };
}
/** Removes the temporary files that an archiver which died has left in a directory. @throws IO */
async function removeLeftTemporaries(directory) {
    let names;
    try {
        names = await readdir(directory);
    }
    catch (error) {
        if (errnoCode(error) === "ENOENT")
            return;
        throw fileError("read", directory, error);
    }
    for (const name of names.filter(isTemporaryName)) {
        const path = join(directory, name);
        await io("remove", path, rm(path, { force: true }));
    }
}
/**
 * Completes a segment that an earlier run has left: a copy of its whole frames gets an end frame, and the file goes. It is
 * not changed, because its writer may only have been suspended: what that still writes, no later run has relied on. One
 * without contents goes. If it is damaged, the copy ends before the damage, and the file stays under another name.
 * @returns the damage.
 * @throws BAD_ARCHIVE if nothing of it can be read, BAD_VERSION, DISK_FULL, IO.
 */
async function sealSegment(kind, segment, shard, facts) {
    const { path, generation, firstSeq } = segment;
    const { lastSeq, sums, damage } = await readTail(kind, segment, shard, facts);
    if (lastSeq >= firstSeq) {
        const complete = segmentPath(dirname(path), { generation, firstSeq, lastSeq });
        await writeFileAtomically(complete, sealed(path, sums), FILE_MODES.model);
    }
    if (damage === undefined)
        await io("remove", path, rm(path, { force: true }));
    else
        await io("rename", path, rename(path, `${path}.damaged`));
    await syncDirectory(dirname(path));
    return damage;
}
/** Gives the frames of a file that `sums` adds up, and an end frame. */
async function* sealed(path, sums) {
    const env_1 = { stack: [], error: void 0, hasError: false };
    try {
        const reader = __addDisposableResource(env_1, await ContainerReader.open(path), true);
        yield* reader.bytesTo(sums.totals.bytes);
        yield makeEndFrame(sums);
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
/** After so many rounds without records, snapshots are listed. */
const IDLE_ROUNDS = 5;
/** After so many rounds the tape is read: nothing of it is ever trimmed. */
const TAPE_ROUNDS = 10;
const NOTHING = { generation: 0, seq: 0 };
/** What an archiver says of a shard before it knows what the archive has. */
export const NOTHING_ARCHIVED = { record: NOTHING, snapshot: NOTHING };
/** Archives one shard. */
export class ShardArchiver {
    #deps;
    #writer;
    #records;
    #snapshots;
    #tapeWriter;
    #tape;
    /** Spans that the archive had when this archiver began. */
    #archived;
    #seen = [];
    #isChecked = false;
    /** Number of rounds in a row without records. */
    #idleRounds = 0;
    #rounds = 0;
    constructor(deps, parts) {
        this.#deps = deps;
        const { archived, snapshots, tape, tapeWriter } = parts;
        this.#archived = archived;
        this.#snapshots = snapshots;
        this.#tape = tape;
        this.#tapeWriter = tapeWriter;
        const { source, onDamaged } = deps;
        const directory = journalDirectory(deps.directory, source.shard);
        this.#writer = new SegmentWriter({ ...deps, directory });
        const onCopied = () => deps.onCopied(source.shard, this.archived);
        const writer = this.#writer;
        const noteGap = (gap) => writeGap(directory, deps.facts, source.shard, gap);
        this.#records = new RecordCopier({ source, writer, archived, onCopied, noteGap, onDamaged });
    }
    /**
     * Tidies up after earlier runs, and goes on after their last record.
     * @throws BAD_ARCHIVE, BAD_VERSION, DISK_FULL, IO.
     */
    static async open(deps) {
        const { directory, facts, source } = deps;
        const { shard } = source;
        await removeLeftTemporaries(snapshotDirectory(directory, shard));
        await removeLeftTemporaries(journalDirectory(directory, shard));
        const tapeSegments = tapeDirectory(directory, shard);
        await sealSegments(deps, "record", journalDirectory(directory, shard));
        await sealSegments(deps, "tape", tapeSegments);
        const tapeWriter = new SegmentWriter({ ...deps, directory: tapeSegments });
        return new ShardArchiver(deps, {
            archived: await new ArchiveShard(directoryFiles(directory, shard), facts, shard).spans(),
            snapshots: await SnapshotCopier.open(deps),
            tape: await TapeCopier.open({ ...deps, writer: tapeWriter }),
            tapeWriter,
        });
    }
    /** The newest archived positions, for the hosts. */
    get archived() {
        return {
            record: this.#records.newest ?? NOTHING,
            snapshot: this.#snapshots.newest ?? NOTHING,
        };
    }
    /** Its progress. */
    get progress() {
        return {
            shard: this.#deps.source.shard,
            record: this.#records.newest,
            snapshot: this.#snapshots.newest,
            behindRecords: this.#records.behind(this.#seen),
            missing: gapsBetween(joinSpans([...this.#archived, ...this.#writer.spans])),
            tapeMessages: this.#tape.messages,
            copiedBytes: this.#records.bytes + this.#snapshots.bytes + this.#tape.bytes,
        };
    }
    /**
     * Copies what is in the source and not yet in the archive.
     * @throws BAD_ARCHIVE if the archive is of another life of the job; DISK_FULL, IO; errors of the source; the reason
     * of `signal`.
     */
    async copy(signal) {
        const { source, onCopied } = this.#deps;
        const spans = await source.spans();
        const last = newestOf(spans);
        // Of several spans of a generation only the last one tells where the journal ends.
        if (last.some((span) => this.#records.hasShrunk(span)))
            this.#isChecked = false;
        if (!this.#isChecked)
            await this.#check(signal);
        const isIdle = JSON.stringify(spans) === JSON.stringify(this.#seen);
        this.#idleRounds = isIdle ? this.#idleRounds + 1 : 0;
        // Listing the snapshots takes a request for each; few are made while no records come.
        if (this.#idleRounds % IDLE_ROUNDS === 0) {
            await this.#snapshots.copy(signal);
            onCopied(source.shard, this.archived);
        }
        this.#seen = spans;
        for (const span of spans)
            await this.#records.copy(span, signal);
        if (this.#rounds % TAPE_ROUNDS === 0)
            await this.#tape.copy(signal);
        this.#rounds += 1;
    }
    /** Completes the segments that are being written. @throws DISK_FULL, IO. */
    async close() {
        await this.#writer.close();
        await this.#tapeWriter.close();
    }
    /** Leaves the segments as they are: a later run completes them. */
    async abandon() {
        await this.#writer.abandon();
        await this.#tapeWriter.abandon();
    }
    async #check(signal) {
        const { directory, facts, source } = this.#deps;
        const files = directoryFiles(directory, source.shard);
        const own = new ArchiveShard(files, facts, source.shard);
        await checkSameHistory(directory, own, source, signal);
        this.#isChecked = true;
    }
}
/** Completes the segments that earlier runs have left in a directory. */
async function sealSegments({ facts, source, run, onDamaged }, kind, directory) {
    for (const segment of await listSegments(directory)) {
        // A later run has taken the archive over from this one, and may be writing its segment.
        if (segment.run === undefined || segment.run >= run)
            continue;
        try {
            const damage = await sealSegment(kind, segment, source.shard, facts);
            if (damage !== undefined)
                onDamaged(damage);
        }
        catch (error) {
            // Its writer goes on and has completed it.
            if (!isMissing(error))
                throw error;
        }
    }
}
/** Returns the last span of each generation. */
function newestOf(spans) {
    return spans.filter((span, i) => spans[i + 1]?.generation !== span.generation);
}
//# sourceMappingURL=shard-archiver.js.map