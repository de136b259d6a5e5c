import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { mapConcurrently } from "../actors/concurrent.js";
import { forkOriginOf, hasRemovalFlag, isPendingFork, journalSettings, LEASES_IN_KV, newSettings, SETTINGS_KEY, settingsChanged, withForkOrigin, } from "../actors/job/job-settings.js";
import { findJournalBytes, openStoredJob } from "../actors/job/open-job.js";
import { JobRemoval } from "../actors/job/remove-job.js";
import { Journal } from "../actors/journal/journal.js";
import { openBucket, replaceEntry, } from "../actors/journal/kv-bucket.js";
import { continueShard } from "../actors/journal/next-generation.js";
import { ensureSnapshotStream, SnapshotStore } from "../actors/journal/snapshot-store.js";
import { PARAMETER_KEYS, parameterKey } from "../actors/lifecycle/lock.js";
import { jobEntry } from "../actors/lifecycle/machine.js";
import { changeParameter } from "../actors/lifecycle/parameter.js";
import { ensureError, JobSubjects, PserverError, } from "../protocol/index.js";
import { dataBytesMaxOf } from "../transport/bulk-transport.js";
import { openJetStream, StreamPublisher } from "../transport/jetstream.js";
import { replayShard } from "./replay/replay-shard.js";
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
        return [...this.#found.values()].map(({ declaration, layout, blocksMax, ...found }) => {
            const { epoch, trainer, present } = found;
            const lifecycle = {
                state: present === layout.blocks ? "ready" : "uninitialized",
                context: { epoch, trainer, session: 0, at: [], sealed: 0, revised: 0 },
            };
            return { declaration, layout, blocksMax, jobEpoch: 0, lifecycle, revision: 0 };
        });
    }
    /** Keeps the declaration of the higher epoch, and the most blocks that any of them had. */
    #take({ name, dtype, shape, config, epoch, layout, trainer }) {
        const known = this.#found.get(name);
        const blocksMax = Math.max(known?.blocksMax ?? 0, layout.blocks);
        if (known !== undefined && known.epoch >= epoch) {
            this.#found.set(name, { ...known, blocksMax });
            return;
        }
        const declaration = { name, dtype, shape, config };
        this.#found.set(name, { epoch, declaration, layout, trainer, blocksMax, present: 0 });
    }
}
/**
 * A job that is being made. From the first write to the last its settings say so, so that no host joins it before it
 * is complete. They hold a token of the run that makes it; a later run takes the job over with a token of its own.
 */
class NewJob {
    settings;
    bucket;
    #subjects;
    #origin;
    /** Revision of the settings, as this run has written them. */
    revision;
    constructor(options) {
        this.settings = options.settings;
        this.bucket = options.bucket;
        this.#subjects = options.subjects;
        this.#origin = options.origin;
        this.revision = options.revision;
    }
    /** Token of this run. */
    get token() {
        return this.#origin.pending ?? "";
    }
    /**
     * Begins to make the job, or takes it over from a run that was interrupted.
     * @throws JOB_EXISTS if there is a job of this name, unless it is an incomplete fork of the same job;
     * NO_SPACE if the broker has no space for its journals.
     */
    static async begin(deps, of, origin, known) {
        const { connection, manager, subjects } = deps;
        const replicas = known.replicas === undefined ? {} : { replicas: known.replicas };
        const name = subjects.bucket();
        const bucket = await openBucket({ connection, bucket: name, storage: "file", ...replicas });
        const stored = await bucket.read(SETTINGS_KEY);
        if (stored !== undefined)
            checkOwnFork(subjects.job, stored, of.job);
        const { shards, synchronization } = of;
        const wanted = { ...known, shards, synchronization, leases: LEASES_IN_KV };
        const { journal = "file" } = known;
        const bytesMax = await findJournalBytes(manager, subjects, journal, shards);
        const journalBytesMax = Math.min(known.journalBytesMax ?? bytesMax, bytesMax);
        const settings = await newSettings({ ...wanted, journalBytesMax }, async () => bytesMax);
        const pending = { of: of.job, ...origin, pending: randomUUID() };
        const value = withForkOrigin(settings, pending);
        const revision = await replaceEntry(bucket, SETTINGS_KEY, value, stored?.revision);
        if (revision === undefined)
            throw settingsChanged(subjects.job);
        await ensureSnapshotStream(manager, subjects, settings.replicas);
        return new NewJob({ settings, bucket, subjects, origin: pending, revision });
    }
    /** Checks that no other run has taken the job over. @throws BUSY */
    async check() {
        const stored = await this.bucket.read(SETTINGS_KEY);
        if (stored?.revision !== this.revision)
            throw settingsChanged(this.#subjects.job);
    }
    /** Lets hosts join the job. @throws BUSY if another run has taken it over. */
    async complete() {
        const { pending: _pending, ...origin } = this.#origin;
        const value = withForkOrigin(this.settings, origin);
        if ((await this.bucket.update(SETTINGS_KEY, value, this.revision)) !== undefined)
            return;
        // The answer to an earlier try may have been lost.
        const stored = await this.bucket.read(SETTINGS_KEY);
        if (stored === undefined || isPendingFork(stored.value))
            throw settingsChanged(this.#subjects.job);
    }
}
/** Checks that these are the settings of an incomplete fork of job `of`. @throws JOB_EXISTS if they are not. */
function checkOwnFork(job, { value }, of) {
    const origin = forkOriginOf(value);
    if (!hasRemovalFlag(value) && origin?.pending !== undefined && origin.of === of)
        return;
    const state = hasRemovalFlag(value)
        ? "is being removed"
        : origin?.pending === undefined
            ? "exists"
            : `is an incomplete fork of job ${origin.of}`;
    throw new PserverError("JOB_EXISTS", `job ${job} ${state}: choose another name with --as`, {
        job,
    });
}
/** Writes the entries of the parameters and of a job that is initialized, in place of any there are. */
export async function writeEntries(bucket, parameters) {
    const names = parameters.map(({ declaration }) => parameterKey(declaration.name));
    const wanted = new Set(names);
    const stale = (await bucket.keys(PARAMETER_KEYS)).filter((key) => !wanted.has(key));
    await mapConcurrently(stale, async (key) => {
        const stored = await bucket.read(key);
        if (stored !== undefined)
            await bucket.remove(key, stored.revision);
    });
    const deps = { bucket, pause: delay };
    // An interrupted run may have left an entry. An entry that is not known to be there is created first.
    await mapConcurrently(parameters, (parameter) => changeParameter(deps, parameter.declaration.name, () => parameter, { known: undefined }));
    await jobEntry.change(deps, () => INITIALIZED);
}
/** The job is initialized: nobody is selected to do that again. */
const INITIALIZED = {
    state: "ready",
    context: { epoch: 1, trainer: "", session: 0, at: [], sealed: 0, revised: 0 },
};
/** Time limit for one request of the removal of a job. */
const REMOVE_MS = 10_000;
/**
 * Makes a job that begins with the state of another one. No host joins it before it is complete. If it fails,
 * what there is of the job is removed. If the process ends, or the broker cannot be reached, repeating the fork
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
        await removeQuietly(connection, job, fork.revision);
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
        await writeShard(options, fork, { publisher, number, shard });
        onStage?.(`shard ${number}`);
        // Its memory is freed before the next one is rebuilt.
        shard = undefined;
    }
    await fork.check();
    const parameters = found.parameters();
    const ready = parameters.filter(isReady);
    if (ready.length === 0)
        throw nothingThere(of.job);
    await writeEntries(fork.bucket, parameters);
    onStage?.("parameters");
    await fork.complete();
    onStage?.("complete");
    const unfinished = parameters.filter((parameter) => !isReady(parameter));
    const names = unfinished.map(({ declaration }) => declaration.name).sort();
    return { job, parameters: ready.length, ...sum, unfinished: names };
}
/**
 * Stores a state with which one shard of the new job begins, in place of whatever an interrupted run has left of it.
 */
async function writeShard({ connection, host, job }, fork, { publisher, number, shard }) {
    const client = openJetStream(connection);
    const manager = await client.jetstreamManager(false);
    const place = { manager, client, subjects: new JobSubjects(job), shard: number };
    const store = new SnapshotStore({ ...place, publisher });
    const left = await store.lastManifest();
    // Whoever takes the job over after this check replaces these writes, or makes them fail.
    await fork.check();
    const { journal: storage } = fork.settings;
    const journal = new Journal({ ...place, settings: journalSettings(fork.settings) });
    await continueShard({ ...place, store, journal, storage, partBytesMax: dataBytesMaxOf(connection) }, {
        ...{ shard, stored: new Map(), host, owner: fork.token },
        replaced: { seq: left?.seq ?? 0, term: left?.manifest.term ?? 0 },
        ...{ generation: 0, fallbacks: [], keepsPast: false },
    });
}
/**
 * Removes what there is of the job, as far as the broker can be reached. Removes nothing if the settings are no
 * longer of this revision: then another run has taken the job over, or the job is complete.
 */
async function removeQuietly(connection, job, revision) {
    const options = { connection, job, etcd: undefined, timeoutMs: REMOVE_MS, revision };
    const removal = new JobRemoval(options);
    // The error that ended the fork says more; "pserver remove" removes what stays.
    await removal.run(() => undefined).catch(() => undefined);
}
function isReady({ lifecycle }) {
    return lifecycle.state === "ready";
}
function nothingThere(job) {
    const message = `job ${job}: no parameter was initialized at that point`;
    return new PserverError("EMPTY", message, { job });
}
/** Reads the settings of a job that the broker holds; none if it holds no such job. @throws DENIED, TIMEOUT, …. */
export async function knownSettings(connection, job) {
    try {
        const { settings } = await openStoredJob(connection, job);
        const { format: _format, rules: _rules, leases: _leases, ...rest } = settings;
        const { shards: _shards, synchronization: _synchronization, ...known } = rest;
        return known;
    }
    catch (error) {
        // A history may be all that is left of a job.
        if (ensureError(error).code === "BAD_NAME")
            return {};
        throw error;
    }
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