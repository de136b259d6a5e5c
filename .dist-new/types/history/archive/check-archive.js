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
import { ensureError, PserverError } from "../../protocol/index.js";
import { showPosition } from "../../protocol/messages/position.js";
import { checkGap, } from "./archive-layout.js";
import { ArchiveSource } from "./archive-source.js";
import { ContainerReader } from "./container.js";
import { gapsBetween, joinSpans, placeOf, readFrames, withoutSpans, } from "./segment.js";
import { readSnapshotHeader } from "./snapshot-file.js";
/**
 * Reads a whole archive and reports its contents and which files are damaged.
 * @throws BAD_ARCHIVE if there is no archive or the file with its facts is damaged, BAD_VERSION, IO; the reason of
 * `signal`.
 */
export async function checkArchive(directory, signal) {
    const archive = await ArchiveSource.open(directory);
    const { facts, shards } = archive;
    const damage = [];
    const found = [];
    for (let shard = 0; shard < shards; shard++) {
        const files = archive.files(shard);
        const deps = { facts, shard, signal, damage };
        const segments = await files.journal();
        const spans = await checkSegments(deps, "record", segments);
        const snapshots = await checkSnapshots(deps, await files.snapshots());
        const tape = await checkSegments(deps, "tape", await files.tape());
        const missing = gapsBetween(spans);
        const noted = await files.gaps();
        for (const gap of noted)
            await noteDamage(deps, () => checkGap(gap, shard, facts));
        const named = segments.map((each) => ({ ...each, lastSeq: each.lastSeq ?? each.firstSeq - 1 }));
        damage.push(...lostSegments(archive.name, shard, joinSpans([...spans, ...named]), noted));
        const ofTape = { messages: countOf(tape), missing: countOf(gapsBetween(tape)) };
        found.push({ shard, spans, snapshots, missing, tape: ofTape });
    }
    return { shards: found, damage };
}
/** Returns an error for each range between two spans that the archive neither holds nor says that it lacks. */
function lostSegments(path, shard, spans, noted) {
    const between = gapsBetween(spans).filter(({ generation, firstSeq }) => spans.some((span) => span.generation === generation && span.lastSeq < firstSeq));
    return withoutSpans(between, noted).map(({ generation, firstSeq, lastSeq }) => {
        const from = showPosition(shard, { generation, seq: firstSeq });
        const text = `${path}: records ${from} to ${lastSeq} are gone: their segment was lost`;
        return new PserverError("BAD_ARCHIVE", text, { path, shard, generation, firstSeq, lastSeq });
    });
}
/** Reads segments; returns the spans that they hold. */
async function checkSegments(deps, kind, segments) {
    const spans = [];
    for (const segment of segments) {
        await noteDamage(deps, () => checkSegment(deps, kind, segment, spans));
    }
    return joinSpans(spans);
}
/** Reads a segment, and adds its span to `spans`. */
async function checkSegment({ facts, shard, signal }, kind, segment, spans) {
    const { generation, firstSeq } = segment;
    for await (const batch of readFrames(kind, segment, shard, facts)) {
        signal.throwIfAborted();
        const last = batch.at(-1);
        if (last !== undefined)
            spans.push({ generation, firstSeq, lastSeq: placeOf(last).seq });
    }
}
function countOf(spans) {
    return spans.reduce((count, { firstSeq, lastSeq }) => count + lastSeq - firstSeq + 1, 0);
}
/** Reads all snapshots of a shard; returns how many are sound. */
async function checkSnapshots(deps, files) {
    const { facts, shard, signal } = deps;
    let sound = 0;
    for (const file of files) {
        await noteDamage(deps, async () => {
            const env_1 = { stack: [], error: void 0, hasError: false };
            try {
                await readSnapshotHeader(file, shard, facts);
                const reader = __addDisposableResource(env_1, await ContainerReader.open(file.path), true);
                for await (const _batch of reader.part(file.offset))
                    signal.throwIfAborted();
                sound++;
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
        });
    }
    return sound;
}
async function noteDamage({ damage }, check) {
    try {
        await check();
    }
    catch (error) {
        const found = ensureError(error);
        if (found.code !== "BAD_ARCHIVE")
            throw found;
        damage.push(found);
    }
}
//# sourceMappingURL=check-archive.js.map