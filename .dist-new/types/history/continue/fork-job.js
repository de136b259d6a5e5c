import { journalSettings } from "../../actors/job/job-settings.js";
import { configBytesOf } from "../../actors/job/storage-plan.js";
import { Journal } from "../../actors/journal/journal.js";
import { continueShard } from "../../actors/journal/next-generation.js";
import { SnapshotStore } from "../../actors/journal/snapshot-store.js";
import { ensureError, JobSubjects, PserverError, } from "../../protocol/index.js";
import { dataBytesMaxOf } from "../../transport/bulk-transport.js";
import { openJetStream, StreamPublisher } from "../../transport/jetstream.js";
import { replayShard } from "../replay/replay-shard.js";
import { NewJob } from "./new-job.js";
/**
 * The parameters of a job as the states of its shards show them. The job's own entries say how it is now, not how it
 * was at a point; the states do. A parameter is ready if all of its blocks exist under the epoch that was granted
 * last. The initialization of any other has not been finished: the parameter keeps its epoch, so that the next
 * initialization has a higher one.
 */
export class FoundParameters {
    #found = new Map();
    /** Adds the parameters that one shard knows. To be called once for each shard. */
    add({ blocks, declared = [] }) {
        for (const each of declared)
            this.#take(each);
        for (const { parameter, epoch } of blocks) {
            const found = this.#found.get(parameter);
            if (found?.epoch === epoch)
                found.present += 1;
        }
    }
    /** Returns the parameters as entries of a job whose shards have begun with these states, in no order. */
    parameters() {
        return [...this.#found.values()].map(({ declaration, layout, firstNumber, blocksMax, ...found }) => {
            const { epoch, trainer, present } = found;
            const lifecycle = {
                state: present === layout.blocks ? "ready" : "uninitialized",
                context: { epoch, trainer, session: 0, at: [], sealed: 0, revised: 0 },
            };
            const placed = { layout, firstNumber, blocksMax };
            return { declaration, ...placed, jobEpoch: 0, lifecycle, revision: 0 };
        });
    }
    /** Number of names, and bytes of their configurations. */
    get usage() {
        let configBytes = 0;
        for (const { declaration } of this.#found.values())
            configBytes += configBytesOf(declaration.config);
        return { parameters: this.#found.size, configBytes };
    }
    /** Keeps the declaration of the higher epoch, and the most blocks that any of them had. */
    #take(declared) {
        const { name, dtype, shape, config, epoch, layout, firstNumber, trainer } = declared;
        const known = this.#found.get(name);
        const blocksMax = Math.max(known?.blocksMax ?? 0, layout.blocks);
        if (known !== undefined && known.epoch >= epoch) {
            this.#found.set(name, { ...known, blocksMax });
            return;
        }
        const declaration = { name, dtype, shape, config };
        const placed = { layout, firstNumber, blocksMax };
        this.#found.set(name, { epoch, declaration, ...placed, trainer, present: 0 });
    }
}
/**
 * Makes a job that begins with the state of another one. No host joins it before it is complete. If it fails,
 * what there is of the job is removed, unless another run has gone on with it. If the process ends, or the broker cannot be reached, repeating the fork
 * completes the job, and removing the job removes what there is.
 * @throws JOB_EXISTS if there is a job of this name, unless it is an incomplete fork of the same job; EMPTY if
 * there is no parameter at that point; BUSY, NOT_OWNER if the same fork runs elsewhere; NO_SPACE; the errors of
 * `rebuild`; ABORTED.
 */
export async function forkJob(options) {
    const { connection, job, of, at, known, rebuild } = options;
    const subjects = new JobSubjects(job);
    const manager = await openJetStream(connection).jetstreamManager(false);
    // Rebuilt before anything is made: if the history does not reach back so far, no job is left behind.
    const first = await rebuild(0, at[0]);
    const origin = { at, madeMs: Date.now() };
    const fork = await NewJob.begin({ connection, manager, subjects }, of, origin, known);
    try {
        return await writeJob(options, fork, first);
    }
    catch (error) {
        // The error that ended the fork says more; "pserver remove" removes what stays.
        await fork.remove(connection).catch(() => undefined);
        throw error;
    }
}
/** Writes all of the job but its settings, which hosts wait for, and completes it. */
async function writeJob(options, fork, first) {
    const { connection, host, job, of, at, rebuild, signal, onStage } = options;
    onStage?.("begun");
    const found = new FoundParameters();
    const publisher = StreamPublisher.open(connection, new JobSubjects(job).hostInbox(host));
    const sum = { bytes: 0, openBlocks: 0 };
    let shard = first;
    for (let number = 0; number < of.shards; number++) {
        signal.throwIfAborted();
        shard ??= await rebuild(number, at[number]);
        sum.openBlocks += shard.detach();
        sum.bytes += shard.valueBytes;
        found.add(shard.saveState());
        await fork.space.reserve({ ...found.usage, heldBytes: sum.bytes });
        await writeShard(options, fork, { publisher, number, shard });
        onStage?.(`shard ${number}`);
        // Its memory is freed before the next one is rebuilt.
        shard = undefined;
    }
    const parameters = found.parameters();
    const ready = parameters.filter(isReady);
    if (ready.length === 0)
        throw nothingThere(of.job);
    await fork.complete(parameters, () => onStage?.("parameters"));
    onStage?.("complete");
    const unfinished = parameters.filter((parameter) => !isReady(parameter));
    const names = unfinished.map(({ declaration }) => declaration.name).sort();
    return { job, parameters: ready.length, ...sum, unfinished: names };
}
/** Attempts to store a shard while an earlier run, which has been overtaken, still writes. */
const TRIES_MAX = 4;
/**
 * Stores a state with which one shard of the new job begins, in place of whatever an interrupted run has left of it.
 * @throws BUSY if another run has taken the job over; NOT_OWNER if somebody else writes the shard's manifests.
 */
async function writeShard({ connection, host, job }, fork, { publisher, number, shard }) {
    const client = openJetStream(connection);
    const manager = await client.jetstreamManager(false);
    const place = { manager, client, subjects: new JobSubjects(job), shard: number };
    const store = new SnapshotStore({ ...place, publisher });
    const { journal: storage } = fork.settings;
    const journal = new Journal({ ...place, settings: journalSettings(fork.settings) });
    for (let tries = 1;; tries++) {
        const left = await store.manifestEntries();
        const newest = left.at(-1);
        // Whoever takes the job over after this check replaces these writes, or makes them fail.
        await fork.check();
        try {
            await continueShard({ ...place, store, journal, storage, partBytesMax: dataBytesMaxOf(connection) }, {
                ...{ shard, stored: new Map(), host, owner: fork.token },
                replaced: { seq: newest?.seq ?? 0, term: newest?.manifest?.term ?? 0 },
                // Generation 1 of a shard always begins with the empty state: whoever reads history relies on it.
                ...{ generation: 1, fallbacks: [], keepsPast: false },
            });
            // They may be of another cut, and nobody must take them for earlier snapshots of this journal.
            await store.remove(left.map(({ seq }) => seq));
            return;
        }
        catch (error) {
            // An earlier run had passed its own check before this one began, and has written one more manifest.
            if (ensureError(error).code !== "NOT_OWNER" || tries === TRIES_MAX)
                throw error;
        }
    }
}
function isReady({ lifecycle }) {
    return lifecycle.state === "ready";
}
function nothingThere(job) {
    const message = `job ${job}: no parameter was initialized at that point`;
    return new PserverError("EMPTY", message, { job });
}
/**
 * Returns a function that rebuilds the shards of a source. `onProgress` is called now and then with a shard, and with
 * the number of records folded of those to fold.
 */
export function rebuildFrom(source, signal, onProgress = () => undefined) {
    const subjects = new JobSubjects(source.job);
    return (shard, at) => replayShard(source.shard(shard), at, {
        ...{ subjects, signal },
        onProgress: (done, total) => onProgress(shard, done, total),
    });
}
//# sourceMappingURL=fork-job.js.map