import { randomUUID } from "node:crypto";
import { mapConcurrently } from "../../actors/concurrent.js";
import { forkOriginOf, hasRemovalFlag, LEASES_IN_KV, newSettings, SETTINGS_KEY, settingsChanged, withForkOrigin, } from "../../actors/job/job-settings.js";
import { openStoredJob } from "../../actors/job/open-job.js";
import { JobRemoval } from "../../actors/job/remove-job.js";
import { ensureSnapshots } from "../../actors/job/settings-copy.js";
import { findJournalBytes, JobSpace, openEntries, tapeBytesBeside, } from "../../actors/job/storage-plan.js";
import { BucketChain } from "../../actors/journal/bucket-chain.js";
import { replaceEntry } from "../../actors/journal/kv-bucket.js";
import { JOB_KEY, PARAMETER_KEYS, parameterKey } from "../../actors/lifecycle/lock.js";
import { toLifecycleEntry } from "../../actors/lifecycle/machine.js";
import { toParameterEntry } from "../../actors/lifecycle/parameter.js";
import { ensureError, PserverError } from "../../protocol/index.js";
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
/** Time limit for one request of the removal of a job. */
const REMOVE_MS = 10_000;
/** How often the settings are written again while the broker's answer is lost. */
const TRIES_MAX = 3;
/** The job is initialized: nobody is selected to do that again. */
const INITIALIZED = {
    state: "ready",
    context: { epoch: 1, trainer: "", session: 0, at: [], sealed: 0, revised: 0 },
};
/**
 * A job that is being made. From the first write to the last its settings say so, so that no host joins it before it
 * is complete. They hold a token of the run that makes it; a later run takes the job over with a token of its own.
 * Whatever the earlier run still writes into the bucket is refused from then on.
 */
export class NewJob {
    settings;
    /** Reserves the broker's space for the job's state, before that is written. */
    space;
    #job;
    #bucket;
    #origin;
    constructor({ job, settings, bucket, origin, space }) {
        this.settings = settings;
        this.space = space;
        this.#job = job;
        this.#bucket = bucket;
        this.#origin = origin;
    }
    /** Token of this run. */
    get token() {
        return this.#origin.pending ?? "";
    }
    /**
     * Begins to make the job, or takes it over from a run that was interrupted.
     * @throws JOB_EXISTS if there is a job of this name, unless it is an incomplete fork of the same job;
     * NO_SPACE if the broker has no space for its journals; BUSY if another run begins at the same time.
     */
    static async begin(deps, of, at, known) {
        const { connection, manager, subjects } = deps;
        const { job } = subjects;
        const bucket = await openEntries(connection, subjects, known.replicas);
        const stored = await bucket.read(SETTINGS_KEY);
        if (stored !== undefined)
            checkOwnFork(job, stored, of.job);
        const { shards, synchronization } = of;
        const wanted = { ...known, shards, synchronization, leases: LEASES_IN_KV };
        const { journal = "file" } = known;
        const bytesMax = await findJournalBytes(manager, subjects, journal, shards);
        const journalBytesMax = Math.min(known.journalBytesMax ?? bytesMax, bytesMax);
        const tapeLimit = tapeBytesBeside({ journalBytesMax: bytesMax, shards });
        const tapeBytesMax = Math.min(known.tapeBytesMax ?? tapeLimit, tapeLimit);
        const limits = { journalBytesMax, tapeBytesMax };
        const settings = await newSettings({ ...wanted, ...limits }, async () => bytesMax);
        const origin = { of: of.job, ...at, pending: randomUUID() };
        const value = withForkOrigin(settings, origin);
        const revision = await replaceEntry(bucket, SETTINGS_KEY, value, stored?.revision);
        if (revision === undefined)
            throw settingsChanged(job);
        const { pending: _pending, ...made } = origin;
        await ensureSnapshots(manager, subjects, settings, made);
        const space = new JobSpace({ manager, subjects, limits: settings });
        return new NewJob({ job, settings, bucket, origin, space });
    }
    /** Checks that no other run has taken the job over. @throws BUSY */
    async check() {
        const stored = await this.#bucket.read(SETTINGS_KEY);
        if (!this.#isOwn(stored?.value))
            throw this.#overtaken();
    }
    /**
     * Writes the entries of the parameters and of a job that is initialized, in place of any there are, and at last lets
     * hosts join the job. Each write is made directly after the one before. `onParameters` is called before the last.
     * @throws BUSY if another run has taken the job over: then nothing that this one may still write is stored.
     */
    async complete(parameters, onParameters = () => undefined) {
        const revision = await this.#renew();
        await this.#removeStale(parameters, revision);
        const chain = new BucketChain(this.#bucket, this.token, () => this.#overtaken());
        const entries = parameters.map((parameter) => {
            return [parameterKey(parameter.declaration.name), toParameterEntry(parameter)];
        });
        await chain.write([...entries, [JOB_KEY, toLifecycleEntry(INITIALIZED)]]);
        onParameters();
        const { pending: _pending, ...origin } = this.#origin;
        await chain.write([[SETTINGS_KEY, withForkOrigin(this.settings, origin)]]);
    }
    /**
     * Removes what there is of the job.
     * @throws BUSY, before anything is removed, if another run has taken the job over, or it is complete; the errors of
     * {@link JobRemoval.run}.
     */
    async remove(connection) {
        const isOwn = (settings) => this.#isOwn(settings);
        const options = { connection, job: this.#job, etcd: undefined, timeoutMs: REMOVE_MS, isOwn };
        await new JobRemoval(options).run(() => undefined);
    }
    /**
     * Writes the settings again: the first link of the chain, and the proof that the job is still this run's.
     * @returns their revision.
     */
    async #renew() {
        for (let tries = 1;; tries++) {
            const stored = await this.#bucket.read(SETTINGS_KEY);
            if (stored === undefined || !this.#isOwn(stored.value))
                throw this.#overtaken();
            try {
                const { value, revision: before } = stored;
                const id = BucketChain.firstId(this.token);
                const revision = await this.#bucket.update(SETTINGS_KEY, value, before, id);
                if (revision !== undefined)
                    return revision;
            }
            catch (error) {
                // Whether it was written or not: the entry is read again.
                if (ensureError(error).code !== "TIMEOUT" || tries === TRIES_MAX)
                    throw error;
            }
        }
    }
    /**
     * Removes parameters that an interrupted run has left and this one does not have. Only those that are older than
     * this run's settings: a later run writes or removes each of them, too, so that nothing of it can be lost.
     */
    async #removeStale(parameters, revision) {
        const wanted = new Set(parameters.map(({ declaration }) => parameterKey(declaration.name)));
        const stale = (await this.#bucket.keys(PARAMETER_KEYS)).filter((key) => !wanted.has(key));
        await mapConcurrently(stale, async (key) => {
            const stored = await this.#bucket.read(key);
            if (stored === undefined || stored.revision > revision)
                return;
            await this.#bucket.remove(key, stored.revision);
        });
    }
    /**
     * Whether settings hold the token of this run, which no other run writes, and the job is neither complete nor being
     * removed.
     */
    #isOwn(settings) {
        if (settings === undefined || hasRemovalFlag(settings))
            return false;
        return forkOriginOf(settings)?.pending === this.token;
    }
    #overtaken() {
        return settingsChanged(this.#job);
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
//# sourceMappingURL=new-job.js.map