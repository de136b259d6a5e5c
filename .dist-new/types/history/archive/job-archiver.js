import { hostname } from "node:os";
import { mapConcurrently } from "../../actors/concurrent.js";
import { archiverKey, toArchiverJson, } from "../../actors/journal/archivers.js";
import { replaceEntry } from "../../actors/journal/kv-bucket.js";
import { ensureError } from "../../protocol/index.js";
import { BrokerHistory } from "../broker-history.js";
import { openArchive } from "./archive-layout.js";
import { ShardArchiver } from "./shard-archiver.js";
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
     * Opens the archive, or makes it, and tidies up after an archiver that died.
     * @throws BAD_ARCHIVE if the directory holds the archive of another job, BAD_VERSION, DISK_FULL, IO.
     */
    static async open(options) {
        const { source, directory, segmentBytes = SEGMENT_BYTES } = options;
        const { onCopied = () => undefined, onDamaged = () => undefined } = options;
        const facts = await openArchive(directory, source);
        const numbers = Array.from({ length: source.shards }, (_, shard) => shard);
        const shards = await mapConcurrently(numbers, (shard) => {
            const deps = { directory, facts, segmentBytes, onCopied, onDamaged };
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
}
/** How often an archiver renews its registration, at least in its grace time. */
const RENEWALS_PER_GRACE = 10;
/** The longest time between two renewals. */
const RENEW_MS_MAX = 2_000;
/** Tells the hosts of a job how much an archiver has copied, so that they do not trim the rest. */
export class ArchiverRegistration {
    #deps;
    #key;
    #timer;
    /** The renewal that is under way: with a slow broker only one must be. */
    #writing;
    #revision;
    constructor(deps) {
        this.#deps = deps;
        this.#key = archiverKey(deps.archive);
    }
    /** Registers, and renews the registration from then on. @throws the errors of {@link KvBucket}. */
    async start() {
        await this.#write();
        const renewMs = Math.min(RENEW_MS_MAX, this.#deps.graceMs / RENEWALS_PER_GRACE);
        this.#timer = setInterval(() => this.#renew(), renewMs);
    }
    /** Ends the renewals; the registration stays until hosts have waited for its grace time. */
    stop() {
        clearInterval(this.#timer);
    }
    /** Removes the registration. @throws the errors of {@link KvBucket}. */
    async end() {
        this.stop();
        await this.#writing;
        const stored = await this.#deps.bucket.read(this.#key);
        if (stored !== undefined)
            await this.#deps.bucket.remove(this.#key, stored.revision);
    }
    #renew() {
        this.#writing ??= this.#write()
            .catch((error) => {
            this.#revision = undefined;
            this.#deps.onFailure(ensureError(error));
        })
            .finally(() => {
            this.#writing = undefined;
        });
    }
    /** Writes the entry over whatever is there; hosts may have removed it. */
    async #write() {
        const { bucket, archive, graceMs, archived } = this.#deps;
        const record = {
            ...{ archiver: archive, machine: hostname(), pid: process.pid, graceMs },
            writtenMs: Date.now(),
            shards: archived(),
        };
        const json = toArchiverJson(record);
        for (;;) {
            this.#revision = await replaceEntry(bucket, this.#key, json, this.#revision);
            if (this.#revision !== undefined)
                return;
            this.#revision = (await bucket.read(this.#key))?.revision;
        }
    }
}
/** Archives a job from the broker, registered with its hosts. */
export class JobArchiver {
    #source;
    #archiver;
    #registration;
    constructor(source, archiver, registration) {
        this.#source = source;
        this.#archiver = archiver;
        this.#registration = registration;
    }
    /**
     * Connects as a host does, without joining the job, opens the archive and registers; needs no host.
     * @throws NO_BROKER, DENIED, NO_JETSTREAM, JETSTREAM_UNAVAILABLE, TIMEOUT; BAD_NAME if there is no such
     * job; BAD_ARCHIVE if the directory holds the archive of another; BAD_VERSION, DISK_FULL, IO.
     */
    static async open(options) {
        const { job, directory, graceMs, onDamaged, onUnregistered: onFailure } = options;
        const source = await BrokerHistory.open(options.connection, job, "archive");
        try {
            await options.lock();
            const archiver = await Archiver.open({ source, directory, onDamaged });
            const registration = new ArchiverRegistration({
                ...{ bucket: source.bucket, archive: archiver.facts.archive, graceMs, onFailure },
                archived: () => archiver.archived,
            });
            await registration.start();
            return new JobArchiver(source, archiver, registration);
        }
        catch (error) {
            await source.close();
            throw error;
        }
    }
    /** Progress of the shards, by their numbers. */
    get progress() {
        return this.#archiver.progress;
    }
    /** Copies what is there now. @throws as {@link Archiver.copy}. */
    async copy(signal) {
        await this.#archiver.copy(signal);
    }
    /**
     * Completes the files, takes the registration back and closes the connection.
     * @throws DISK_FULL, IO; NO_BROKER and the like if the registration cannot be taken back.
     */
    async end() {
        try {
            await this.#archiver.close();
            await this.#registration.end();
        }
        finally {
            await this.abandon();
        }
    }
    /** Closes the connection and leaves the rest as it is: hosts wait for the grace time. */
    async abandon() {
        this.#registration.stop();
        await this.#source.close();
    }
}
//# sourceMappingURL=job-archiver.js.map