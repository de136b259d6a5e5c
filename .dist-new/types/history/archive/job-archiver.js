import { mapConcurrently } from "../../actors/concurrent.js";
import { ensureError } from "../../protocol/index.js";
import { openArchive } from "./archive-layout.js";
import { ArchiverRegistration } from "./archiver-registration.js";
import { NOTHING_ARCHIVED, ShardArchiver } from "./shard-archiver.js";
/** Bytes of a segment by default. */
const SEGMENT_BYTES = 64 * 1024 ** 2;
/** Shards copied at one time. */
const SHARDS_AT_ONCE = 4;
/** Copies the history of a job into a directory, again and again, from where it stopped. */
export class Archiver {
    facts;
    #shards;
    constructor(facts, shards) {
        this.facts = facts;
        this.#shards = shards;
    }
    /**
     * Opens the archive, or makes it, and tidies up after earlier runs.
     * @throws BAD_ARCHIVE if the directory holds the archive of another job, BAD_VERSION, DISK_FULL, IO.
     */
    static async open(options) {
        const { source, directory, run, segmentBytes = SEGMENT_BYTES } = options;
        const { onCopied = () => undefined, onDamaged = () => undefined } = options;
        const facts = await openArchive(directory, source);
        const numbers = Array.from({ length: source.shards }, (_, shard) => shard);
        const shards = await mapConcurrently(numbers, (shard) => {
            const deps = { directory, facts, run, segmentBytes, onCopied, onDamaged };
            return ShardArchiver.open({ ...deps, source: source.shard(shard) });
        }, SHARDS_AT_ONCE);
        return new Archiver(facts, shards);
    }
    /** The newest archived positions, by shard. */
    get archived() {
        return this.#shards.map(({ archived }) => archived);
    }
    /** Progress of the shards, by their numbers. */
    get progress() {
        return this.#shards.map(({ progress }) => progress);
    }
    /**
     * Copies what is in the source and not yet in the archive. After an error, everything copied before it is in the
     * archive.
     * @throws BAD_ARCHIVE if the archive is of another life of the job; DISK_FULL, IO; errors of the source; the reason
     * of `signal`.
     */
    async copy(signal) {
        await mapConcurrently(this.#shards, (shard) => shard.copy(signal), SHARDS_AT_ONCE);
    }
    /** Completes the segments that are being written. To be called once. @throws DISK_FULL, IO. */
    async close() {
        await mapConcurrently(this.#shards, (shard) => shard.close());
    }
    /** Leaves the segments that are being written as they are: a later run completes them. */
    async abandon() {
        await mapConcurrently(this.#shards, (shard) => shard.abandon());
    }
}
/** Archives a job from the broker, registered with its hosts. */
export class JobArchiver {
    #options;
    #registration;
    #archiver;
    /** Whether the archiver is that of the run that is registered. */
    #hasBegun = false;
    /** When the archive had all that the job had, by the wall clock; undefined before the first complete copy. */
    #completeMs;
    constructor(options, { archive }) {
        this.#options = options;
        const { source, graceMs, directory, onUnregistered: onFailure } = options;
        this.#registration = new ArchiverRegistration({
            ...{ bucket: source.bucket, archive, directory, graceMs, onFailure },
            archived: () => this.#archived,
            completeMs: () => this.#completeMs,
        });
    }
    /**
     * Registers, also in place of a run that goes on elsewhere, and opens the archive; needs no host.
     * @throws what `lock` throws; NO_BROKER, DENIED, JETSTREAM_UNAVAILABLE, TIMEOUT; BAD_ARCHIVE if the directory holds
     * the archive of another; BAD_VERSION, DISK_FULL, IO.
     */
    static async open(options) {
        const { source, directory, lock } = options;
        try {
            await lock();
            const opened = new JobArchiver(options, await openArchive(directory, source));
            await opened.#begin();
            return opened;
        }
        catch (error) {
            await source.close();
            throw error;
        }
    }
    /** Progress of the shards, by their numbers. */
    get progress() {
        return this.#archiver?.progress ?? [];
    }
    /**
     * Copies what is there now. Begins anew if hosts have waited in vain for this archiver.
     * @throws STORE_IN_USE if a later run has taken the archive over; as {@link Archiver.copy}.
     */
    async copy(signal) {
        for (;;) {
            if (!this.#hasBegun || this.#registration.isForgotten)
                await this.#begin();
            const beganMs = Date.now();
            try {
                await this.#copyRegistered(signal);
                this.#completeMs = beganMs;
                return;
            }
            catch (error) {
                if (signal.aborted || !this.#registration.isForgotten)
                    throw error;
            }
        }
    }
    /**
     * Completes the files, takes the registration back and closes the connection.
     * @throws STORE_IN_USE if a later run has taken the archive over; DISK_FULL, IO; NO_BROKER and the like if the
     * registration cannot be taken back.
     */
    async end() {
        try {
            await this.#registration.renew().catch(async (error) => {
                if (!this.#registration.isForgotten)
                    throw error;
                await this.#begin();
            });
            await this.#archiver?.close();
            await this.#registration.end();
        }
        finally {
            await this.#leave();
        }
    }
    /**
     * Says in the registration why the archiver ends, if the broker can be reached, closes the connection and leaves the
     * rest as it is: hosts wait for the grace time.
     */
    async abandon(reason) {
        // The reason is reported by whoever ends the archiver, too.
        await this.#registration.fail(reason).catch(() => undefined);
        await this.#leave();
    }
    /** Lets go of the registration, the files and the broker as they are. */
    async #leave() {
        this.#registration.stop();
        await this.#archiver?.abandon();
        await this.#options.source.close();
    }
    /**
     * Begins a run. It registers before it touches the files: from then on hosts believe no earlier run any more, and this
     * one may take over what those have left.
     */
    async #begin() {
        this.#hasBegun = false;
        await this.#archiver?.abandon();
        const { source, directory, onDamaged } = this.#options;
        const run = await this.#registration.start();
        try {
            this.#archiver = await Archiver.open({ source, directory, run, onDamaged });
        }
        catch (error) {
            // The reason is reported by whoever begins.
            await this.#registration.fail(ensureError(error)).catch(() => undefined);
            throw error;
        }
        this.#hasBegun = true;
        await this.#registration.renew();
    }
    /** What hosts are told; nothing before the run knows what the archive has. */
    get #archived() {
        if (this.#hasBegun && this.#archiver !== undefined)
            return this.#archiver.archived;
        return Array.from({ length: this.#options.source.shards }, () => NOTHING_ARCHIVED);
    }
    /** Copies until there is no more, or the registration is lost, which is thrown then. */
    async #copyRegistered(signal) {
        const { lost } = this.#registration;
        const either = new AbortController();
        const abort = () => either.abort(lost.aborted ? lost.reason : signal.reason);
        for (const each of [lost, signal])
            each.addEventListener("abort", abort);
        if (lost.aborted || signal.aborted)
            abort();
        try {
            await this.#archiver?.copy(either.signal);
            lost.throwIfAborted();
        }
        finally {
            for (const each of [lost, signal])
                each.removeEventListener("abort", abort);
        }
    }
}
//# sourceMappingURL=job-archiver.js.map