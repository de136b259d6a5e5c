import { ensureError, PserverError, } from "../../protocol/index.js";
import { KeptSnapshots } from "../journal/snapshot-store.js";
import { Snapshotter } from "../journal/snapshotter.js";
/** Removes the snapshots of a shard that need not be kept, and the journal before the oldest kept. */
export class Retention {
    #journal;
    #store;
    #kept;
    #archived;
    /** Whether the records before a skipped gap may still be there. */
    #isBeforeGapLeft = false;
    constructor({ journal, store, kept, archived }) {
        this.#journal = journal;
        this.#store = store;
        this.#kept = kept;
        this.#archived = archived;
    }
    /** Oldest position from which the shard can be rebuilt. */
    get oldestSeq() {
        return this.#kept.oldestSeq;
    }
    /**
     * Adds a new snapshot and removes what need not be kept any more.
     * @returns the journal's state afterwards; undefined if it is gone.
     */
    async committed(snapshot) {
        this.#kept.add(snapshot);
        return await this.enforce();
    }
    /**
     * Does as {@link committed} for a snapshot after a skipped gap: removes all before it, records once the archivers
     * have them.
     */
    async committedAcrossGap(snapshot) {
        this.#kept.restartAt(snapshot);
        this.#isBeforeGapLeft = true;
        return await this.enforce();
    }
    /** Notes that the newest snapshot has another manifest, and removes the former one. */
    async renewed(newest, formerSeq) {
        this.#kept.renew(newest);
        await this.#store.remove([formerSeq]);
    }
    /** Removes what need not be kept, including what an owner that died has left. */
    async enforce() {
        this.#kept.dropEarlierGenerations();
        const { generation } = this.#kept;
        if (generation === undefined)
            return undefined;
        const archived = await this.#archived();
        let info = await this.#journal.info(generation);
        if (info !== undefined && this.#isBeforeGapLeft && !this.#kept.holdsBefore(info, archived)) {
            await this.#journal.purgeBelow(generation, this.oldestSeq);
            this.#isBeforeGapLeft = false;
            info = await this.#journal.info(generation);
        }
        while (info !== undefined && this.#kept.dropOldest(info, archived)) {
            await this.#journal.purgeBelow(generation, this.oldestSeq);
            info = await this.#journal.info(generation);
        }
        await this.#store.remove(this.#kept.unneeded(await this.#store.list()));
        return info;
    }
}
/** Pause after a snapshot that failed. */
const RETRY_MS = 500;
/** Share of a journal's limit from which on snapshots are made early. */
const EARLY_SHARE = 0.5;
/** Makes the snapshots of one shard when they are due. */
export class ShardSnapshots {
    #number;
    #shard;
    #settings;
    #events;
    #snapshotter;
    #retention;
    #manifest;
    #making;
    #retryTimer;
    #closed = false;
    #bytesSinceSnapshot = 0;
    #journalBytes = 0;
    #journalBytesMax = 0;
    constructor({ shard, journal, store, worker }, { recovered, kept, tape }, events) {
        const { subjects, archivers, snapshotBudget: budget, settings } = worker;
        const { partBytesMax, retainBytes } = settings;
        this.#number = shard;
        this.#shard = recovered.shard;
        this.#settings = settings;
        this.#events = events;
        this.#manifest = recovered.manifest;
        this.#snapshotter = new Snapshotter({
            ...{ store, subjects, shard, partBytesMax, budget, stored: recovered.stored },
            onProgress: () => events.onProgress(),
            ...(tape && { beforeCommit: (position) => tape.flush(position) }),
        });
        this.#retention = new Retention({
            ...{ journal, store, kept: new KeptSnapshots(retainBytes, kept) },
            archived: () => archivers.copied(shard),
        });
    }
    /** The newest manifest. */
    get newest() {
        return this.#manifest;
    }
    /** Oldest position from which the shard can be rebuilt. */
    get oldestSeq() {
        return this.#retention.oldestSeq;
    }
    /** Bytes of the journal: its size when it was last checked, and what was folded since. */
    get journalBytes() {
        return this.#journalBytes;
    }
    /** Whether the fold has to wait until copies are released. */
    get holdsUp() {
        return this.#snapshotter.holdsUp;
    }
    /** Returns what the newest manifest begins with. @throws NOT_OWNER if there is no manifest yet. */
    manifestHeader() {
        const { term, host, owner, generation, created, fallbacks, past } = this.#newest().manifest;
        const kept = past === undefined ? {} : { past };
        return { term, host, owner, generation, created, fallbacks, ...kept };
    }
    /** Removes what the former owner has left. A failure is reported; the shard is served all the same. */
    async tidy() {
        try {
            await this.#retention.enforce();
        }
        catch (error) {
            this.#events.onSnapshotFailed(ensureError(error));
        }
    }
    /** Notes the size of the journal. */
    journalIs({ bytes, bytesMax }) {
        this.#journalBytes = bytes;
        this.#journalBytesMax = bytesMax;
    }
    /**
     * Counts folded bytes of the journal, and makes a snapshot if one is due. `isCompared`: whether the records are
     * known to be those that were folded before; no snapshot is made of others.
     */
    advanced(bytes, isCompared) {
        this.#bytesSinceSnapshot += bytes;
        this.#journalBytes += bytes;
        if (isCompared)
            this.#makeIfDue();
    }
    /** Must be called before a block's bytes change or are freed. */
    beforeChange(block) {
        this.#snapshotter.beforeChange(block);
    }
    /** Must be called when a block is gone. */
    blockRemoved(block) {
        this.#snapshotter.blockRemoved(block);
    }
    /** Ends a snapshot or a renewal under way, because its connection was lost. */
    abort() {
        const reason = new PserverError("NO_BROKER", "the broker was lost meanwhile");
        this.#snapshotter.abort(reason);
    }
    /** Starts no further snapshot. */
    close() {
        this.#closed = true;
        clearTimeout(this.#retryTimer);
    }
    /** Returns the newest snapshot if it is of `at` or later, else makes a new one; waits for one under way. */
    async make(at) {
        await this.#making?.catch(() => undefined);
        const newest = this.#manifest;
        if (newest !== undefined && isAtOrAfter(newest.manifest, at))
            return newest;
        return await this.#start();
    }
    /** Commits the shard as it is when `head` is called, between two records. */
    async commit(header) {
        const manifest = await this.#cut(header);
        await this.#retain((retention) => retention.committed(manifest));
        return manifest;
    }
    /** Does as {@link commit} for a shard that has skipped a gap: no earlier record is needed then. */
    async commitAcrossGap(header) {
        await this.#making?.catch(() => undefined);
        const manifest = await this.#cut(header);
        await this.#retain((retention) => retention.committedAcrossGap(manifest));
    }
    /**
     * Writes the newest manifest again under the next term. If the broker takes it, no other host has taken the shard
     * over since it was first written.
     * @throws NOT_OWNER if one has.
     */
    async renew() {
        let renewed = this.#newest();
        const formerSeq = await this.#snapshotter.renew(() => this.#newest(), (stored) => {
            this.#manifest = stored;
            renewed = stored;
        });
        try {
            await this.#retention.renewed(renewed, formerSeq);
        }
        catch (error) {
            // The next snapshot removes it.
            this.#events.onSnapshotFailed(ensureError(error));
        }
    }
    async #cut(header) {
        return await this.#snapshotter.cut(this.#shard, header, () => this.#manifest?.seq ?? 0, (stored) => {
            this.#manifest = stored;
        });
    }
    #newest() {
        if (this.#manifest !== undefined)
            return this.#manifest;
        throw new PserverError("NOT_OWNER", `shard ${this.#number} is not taken over yet`);
    }
    async #retain(forget) {
        const info = await forget(this.#retention);
        if (info !== undefined)
            this.#journalBytes = info.bytes;
    }
    #makeIfDue() {
        if (this.#closed || this.#making !== undefined || !this.#isDue())
            return;
        // A failure is reported and retried.
        this.#start().catch(() => undefined);
    }
    #isDue() {
        if (this.#bytesSinceSnapshot === 0)
            return false;
        if (this.#bytesSinceSnapshot >= this.#settings.snapshotBytes)
            return true;
        const early = this.#journalBytesMax > 0 && this.#journalBytes > EARLY_SHARE * this.#journalBytesMax;
        // Early snapshots are at least a sixteenth of the limit apart.
        return early && this.#bytesSinceSnapshot > this.#journalBytesMax / 16;
    }
    #start() {
        if (this.#making !== undefined)
            return this.#making;
        const result = this.#makeOrRetry().finally(() => {
            this.#making = undefined;
            this.#events.onProgress();
        });
        this.#making = result;
        // The journal may be full by now: then no further record triggers the next snapshot.
        void result.then(() => this.#makeIfDue(), () => undefined);
        return result;
    }
    async #makeOrRetry() {
        let bytes = 0;
        try {
            return await this.commit(() => {
                // Records that were folded while the cut waited are in it.
                bytes = this.#bytesSinceSnapshot;
                this.#bytesSinceSnapshot = 0;
                return this.manifestHeader();
            });
        }
        catch (error) {
            const found = ensureError(error);
            this.#bytesSinceSnapshot += bytes;
            if (this.#closed)
                throw found;
            if (found.code === "NOT_OWNER")
                this.#events.onDeposed(found);
            else {
                this.#events.onSnapshotFailed(found);
                // Retried by a timer: a full journal gets no record that could trigger it.
                this.#retryTimer = setTimeout(() => this.#makeIfDue(), RETRY_MS);
            }
            throw found;
        }
    }
}
/** Whether a snapshot includes a position. */
function isAtOrAfter({ generation, seq }, at) {
    return generation > at.generation || (generation === at.generation && seq >= at.seq);
}
//# sourceMappingURL=shard-snapshots.js.map