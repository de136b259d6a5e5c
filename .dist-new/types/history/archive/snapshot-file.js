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
import { decodeManifest, encodeManifest } from "../../actors/journal/manifest.js";
import { readSnapshotState } from "../../actors/journal/snapshot-store.js";
import { FILE_MODES, makeDirectories, writeFileAtomically, } from "../../model-files/atomic-write.js";
import { ensureError } from "../../protocol/index.js";
import { jobFrame, requireJob, snapshotDirectory, snapshotPath, } from "./archive-layout.js";
import { badArchive, ContainerReader, ContainerWriter, PREAMBLE_BYTES } from "./container.js";
/**
 * Returns the pieces of a snapshot and the parts of its state, each once, without those in `known`.
 * @throws SNAPSHOT_DAMAGED if its state cannot be read; reading a piece throws the errors of `history.piece`, or the
 * reason of `signal`.
 */
export async function piecesOf(history, { manifest }, signal, known = []) {
    const store = { read: (ref) => history.piece(ref) };
    const { pieces } = await readSnapshotState(store, manifest);
    const refs = new Map();
    for (const ref of [...manifest.state, ...pieces.flatMap(({ slots }) => slots)]) {
        refs.set(ref.seq, ref);
    }
    for (const seq of known)
        refs.delete(seq);
    return [...refs.values()].map((ref) => ({
        seq: ref.seq,
        read: () => {
            signal.throwIfAborted();
            return history.piece(ref);
        },
    }));
}
/**
 * Writes a snapshot's file, whole or not at all: its manifest and the pieces that no earlier file has.
 * @returns the file's bytes.
 * @throws DISK_FULL, IO; errors of reading a piece.
 */
export async function writeSnapshot(directory, facts, shard, snapshot, pieces) {
    const files = snapshotDirectory(directory, shard);
    await makeDirectories(files);
    const path = snapshotPath(files, snapshot.manifest, snapshot.seq);
    return await writeFileAtomically(path, async (handle) => {
        const writer = ContainerWriter.begin(handle, path);
        await appendSnapshot(writer, facts, shard, snapshot, pieces);
        await writer.end();
    }, FILE_MODES.model);
}
/** Appends the frames of a snapshot. @throws as {@link writeSnapshot}; some frames are written then. */
export async function appendSnapshot(writer, facts, shard, { seq: storedSeq, timeMs, manifest }, pieces) {
    await writer.append(jobFrame(facts));
    await writer.append({
        ...{ kind: "manifest", shard, seq: storedSeq, timeMs },
        pieces: pieces.map(({ seq }) => seq),
        data: encodeManifest(manifest),
    });
    for (const { seq, read } of pieces) {
        await writer.append({ kind: "piece", shard, seq, data: await read() });
    }
}
/** Returns the snapshot that a manifest's frame holds. @throws BAD_ARCHIVE if the manifest cannot be read. */
export function toSnapshot(path, offset, frame) {
    const { seq, timeMs, data } = frame;
    try {
        return { seq, timeMs, manifest: decodeManifest(data) };
    }
    catch (cause) {
        throw badArchive(path, offset, `the manifest is damaged: ${ensureError(cause).message}`, cause);
    }
}
/** Reads the header of a snapshot's file. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
export async function readSnapshotHeader({ path, offset: at = PREAMBLE_BYTES, generation, seq, storedSeq }, shard, { archive }) {
    const env_1 = { stack: [], error: void 0, hasError: false };
    try {
        const reader = __addDisposableResource(env_1, await ContainerReader.open(path), true);
        const job = await reader.frameAt(at);
        if (requireJob(path, job.offset, job.frame).archive !== archive) {
            throw badArchive(path, job.offset, "the file is of another archive");
        }
        const { frame, offset, endOffset } = await reader.frameAt(job.endOffset);
        if (frame.kind !== "manifest" || frame.shard !== shard || frame.seq !== storedSeq) {
            throw badArchive(path, offset, `expected manifest ${storedSeq} of shard ${shard}`);
        }
        const snapshot = toSnapshot(path, offset, frame);
        const { manifest } = snapshot;
        if (manifest.generation !== generation || manifest.seq !== seq) {
            throw badArchive(path, offset, `expected a snapshot of record ${seq}, generation ${generation}`);
        }
        return { snapshot, pieces: frame.pieces, piecesAt: endOffset };
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
/** Returns the offsets of the pieces of a snapshot, by sequence. @throws BAD_ARCHIVE, IO. */
export async function placesOfPieces({ path }, { pieces, piecesAt }) {
    const env_2 = { stack: [], error: void 0, hasError: false };
    try {
        const reader = __addDisposableResource(env_2, await ContainerReader.open(path), true);
        const places = new Map();
        let offset = piecesAt;
        for (const seq of pieces) {
            places.set(seq, offset);
            offset = await reader.offsetAfter(offset);
        }
        return places;
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
/** Reads the piece at an offset. @throws BAD_ARCHIVE if another one is there, IO. */
export async function readPieceAt(path, offset, seq) {
    const env_3 = { stack: [], error: void 0, hasError: false };
    try {
        const reader = __addDisposableResource(env_3, await ContainerReader.open(path), true);
        const { frame } = await reader.frameAt(offset);
        if (frame.kind === "piece" && frame.seq === seq)
            return frame.data;
        throw badArchive(path, offset, `expected piece ${seq}; received a ${frame.kind}`);
    }
    catch (e_3) {
        env_3.error = e_3;
        env_3.hasError = true;
    }
    finally {
        const result_3 = __disposeResources(env_3);
        if (result_3)
            await result_3;
    }
}
//# sourceMappingURL=snapshot-file.js.map