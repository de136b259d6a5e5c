import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { readable } from "../../actors/fold/journal-record.js";
import { archiverKey, parseArchiverEntry, requireArchiverPlace, stoppedArchiverKey, toArchiverJson, } from "../../actors/journal/archivers.js";
import { replaceEntry } from "../../actors/journal/kv-bucket.js";
import { visible } from "../../protocol/errors.js";
import { defined } from "../../protocol/fields.js";
import { ensureError, PserverError } from "../../protocol/index.js";
/** How often an archiver renews its registration, at least in its grace time. */
const RENEWALS_PER_GRACE = 10;
/** The longest time between two renewals. */
const RENEW_MS_MAX = 2_000;
/**
 * Tells the hosts of a job how much an archiver has copied, so that they do not trim the rest. The newest run of an
 * archive has the registration: a run writes only over an entry of its own, so that one that was suspended changes
 * nothing once another one has taken over.
 */
export class ArchiverRegistration {
    #deps;
    #key;
    #timer;
    /** The renewal that is under way: with a slow broker only one must be. */
    #writing;
    /** Tells the entries of a run from those of others. */
    #run = "";
    #revision;
    #isForgotten = false;
    #lost = new AbortController();
    #failure;
    constructor(deps) {
        this.#deps = deps;
        this.#key = archiverKey(deps.archive);
    }
    /**
     * Aborted once this run has the registration no more. The reason is STORE_IN_USE if a later run has taken it over, and
     * TIMEOUT if hosts have waited for the grace time in vain.
     */
    get lost() {
        return this.#lost.signal;
    }
    /** Whether hosts have removed the registration: then {@link start} begins another run. */
    get isForgotten() {
        return this.#isForgotten;
    }
    /**
     * Begins a run: registers in place of whoever is registered for the archive, and renews the registration from then on.
     * @returns the number of the run, which is higher than those of all runs before.
     * @throws QUOTA if the job has as many archivers as it may; the errors of {@link KvBucket}.
     */
    async start() {
        this.stop();
        await this.#writing;
        await requireArchiverPlace(this.#deps.bucket, this.#deps.archive);
        this.#run = randomUUID();
        this.#lost = new AbortController();
        this.#isForgotten = false;
        this.#failure = undefined;
        this.#revision = undefined;
        const { bucket, graceMs } = this.#deps;
        let taken;
        for (let former; taken === undefined;) {
            taken = await replaceEntry(bucket, this.#key, this.#entry(), former);
            if (taken === undefined)
                former = (await bucket.read(this.#key))?.revision;
        }
        this.#revision = taken;
        // Whoever has written the former entry may have stopped.
        await this.#forgetStopped();
        const renewMs = Math.min(RENEW_MS_MAX, graceMs / RENEWALS_PER_GRACE);
        this.#timer = setInterval(() => this.#renewInTime(), renewMs);
        return taken;
    }
    /** Ends the renewals; the registration stays until hosts have waited for its grace time. */
    stop() {
        clearInterval(this.#timer);
    }
    /** Renews the registration now. @throws the reason of {@link lost}; the errors of {@link KvBucket}. */
    async renew() {
        while (this.#writing !== undefined)
            await this.#writing;
        this.#lost.signal.throwIfAborted();
        const writing = this.#write();
        // Whoever waits for it to end does not get its error.
        const ended = () => {
            this.#writing = undefined;
        };
        this.#writing = writing.then(ended, ended);
        await writing;
    }
    /**
     * Ends the renewals, and says why the archiver has ended; hosts wait for its grace time.
     * @throws as {@link renew}.
     */
    async fail(error) {
        this.stop();
        this.#failure = error;
        await this.renew();
    }
    /**
     * Removes the registration, unless this run has it no more.
     * @throws the errors of {@link KvBucket}.
     */
    async end() {
        this.stop();
        await this.#writing;
        const stored = await this.#read();
        if (stored?.run === this.#run)
            await this.#deps.bucket.remove(this.#key, stored.revision);
    }
    #renewInTime() {
        if (this.#writing !== undefined)
            return;
        this.renew().catch((error) => {
            const isTakenOver = this.#lost.signal.aborted && !this.#isForgotten;
            // That another run has taken over ends this one.
            if (!isTakenOver)
                this.#deps.onFailure(ensureError(error));
        });
    }
    /** Writes the entry over the one that this run has written. @throws the reason of {@link lost} if there is none. */
    async #write() {
        const { bucket } = this.#deps;
        for (;;) {
            const known = this.#revision;
            // If the answer is lost, the entry is looked at again.
            this.#revision = undefined;
            if (known !== undefined) {
                this.#revision = await bucket.update(this.#key, this.#entry(), known);
                if (this.#revision !== undefined)
                    return;
            }
            const stored = await this.#read();
            if (stored?.run !== this.#run)
                throw this.#lose(stored);
            this.#revision = stored.revision;
        }
    }
    #entry() {
        const { archive, graceMs, archived, completeMs } = this.#deps;
        const { code, message } = this.#failure ?? {};
        const entry = {
            ...{ archiver: archive, run: this.#run, machine: hostname(), pid: process.pid, graceMs },
            writtenMs: Date.now(),
            ...defined({ completeMs: completeMs() }),
            ...(code !== undefined && message !== undefined && { failure: { code, message } }),
            shards: archived(),
        };
        return toArchiverJson(entry);
    }
    /** Reads what is registered for the archive: whose it is, unless it cannot be read, and its revision. */
    async #read() {
        const stored = await this.#deps.bucket.read(this.#key);
        if (stored === undefined)
            return undefined;
        const { value, revision } = stored;
        return { ...readable(() => parseArchiverEntry(value, this.#key)), revision };
    }
    /** Notes that this run has the registration no more; returns why. */
    #lose(stored) {
        const { directory, graceMs } = this.#deps;
        this.stop();
        this.#isForgotten = stored === undefined;
        const { pid, machine = "" } = stored ?? {};
        const reason = this.#isForgotten
            ? new PserverError("TIMEOUT", `hosts have waited ${graceMs} ms for this archiver in vain`)
            : new PserverError("STORE_IN_USE", `process ${pid} on ${visible(machine)} has taken the archive in ${directory} over`, { dir: directory, pid, machine });
        this.#lost.abort(reason);
        return reason;
    }
    async #forgetStopped() {
        const { bucket, archive } = this.#deps;
        const key = stoppedArchiverKey(archive);
        const stored = await bucket.read(key);
        if (stored !== undefined)
            await bucket.remove(key, stored.revision);
    }
}
//# sourceMappingURL=archiver-registration.js.map