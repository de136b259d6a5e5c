import { defined, ensureError, PserverError, quoteName, } from "../../protocol/index.js";
import { majorityLastSeq } from "../journal/journal.js";
import { lastRecordSeq, ObservedEnd } from "../journal/journal-check.js";
import { JournalReader } from "../journal/journal-reader.js";
import { TapeWriter } from "../journal/tape/tape-writer.js";
import { ShardAnswers, shardUpdates } from "./answers.js";
import { BACKLOG_BYTES_MAX, BacklogWatch } from "./backlog-watch.js";
import { FoldLoop } from "./fold-loop.js";
import { OwnedJournal } from "./owned-journal.js";
import { PositionQueue, StepQueue, } from "./pending-reads.js";
import { OutgoingOutcomes } from "./responder.js";
import { ShardSnapshots, } from "./shard-snapshots.js";
import { refusingHandler, ShardSubscriptions } from "./subscriptions.js";
/** How long a shard that is saved waits for its fold before it asks for the end of the journal again. */
const FOLD_WAIT_MS = 2_000;
/**
 * A shard that was recovered and is served: it folds, answers requests and makes snapshots. It makes its parts, in
 * the order in which they need each other, and receives the reports of all of them.
 */
export class ServingShard {
    number;
    shard;
    positions;
    steps;
    #context;
    #owner;
    #tape;
    #snapshots;
    #journal;
    #core;
    #subscriptions;
    #loop;
    #outcomes;
    #backlogs = new BacklogWatch();
    /** The last record that its snapshot holds. */
    #baseSeq;
    #isStopped = false;
    #isMarking = false;
    #hasFoldEnded = false;
    /** Records of trainers rejected since it began to serve. */
    #rejected = 0;
    constructor(context, owner, recovered, kept) {
        const { worker, shard: number, journal, watermarks, listener } = context;
        const { host, settings, manager, inboxPrefix, coalescer, responder } = worker;
        const { shard } = recovered;
        const journalEnd = new ObservedEnd(number);
        this.number = number;
        this.shard = shard;
        this.#baseSeq = shard.seq;
        this.#context = context;
        this.#owner = owner;
        this.#tape = this.#makeTape();
        this.#snapshots = new ShardSnapshots(context, { recovered, kept, tape: this.#tape }, this);
        this.#journal = new OwnedJournal({
            ...{ host, owner: owner.token, journal, storage: settings.journalStorage },
            ...{ shard, snapshots: this.#snapshots, watermarks, journalEnd },
            onReplaced: () => this.#positionChanged(),
            onFellBack: (manifest) => listener.fellBack(manifest),
            onGapRemains: (error) => this.onSnapshotFailed(error),
            onReplicaDamaged: (damage) => owner.replicaDamaged(damage),
        });
        this.positions = new PositionQueue({
            shard: number,
            fallbacks: () => this.fallbacks,
            lastSeq: (wanted, tell) => {
                majorityLastSeq(journal, wanted).then(tell, () => tell(undefined));
            },
            onLost: (error, wanted) => owner.lossFound(error, wanted),
        });
        this.steps = new StepQueue(number);
        this.#core = new OwnerCore({
            shard,
            journalEnd,
            positions: this.positions,
            steps: this.steps,
        });
        const answers = new ShardAnswers(this, responder);
        this.#subscriptions = new ShardSubscriptions(number, worker, () => owner.mayAnswer, answers);
        const { credit } = context;
        const connection = worker.journalConnection;
        const { isReplicated } = journal;
        const reader = new JournalReader({ connection, manager, inboxPrefix, credit, isReplicated });
        for (const broker of owner.differingBrokers)
            reader.avoid(broker);
        this.#loop = new FoldLoop({ number, shard, reader, coalescer, events: this });
        this.#outcomes = new OutgoingOutcomes(worker.dataConnection, number);
    }
    /**
     * Prepares a recovered shard for serving: removes what the former owner has left and creates the journal of a new
     * shard. {@link start} follows.
     */
    static async open(context, owner, recovered) {
        const serving = new ServingShard(context, owner, recovered, await context.store.manifests());
        await serving.#tape?.open();
        serving.#observe();
        await serving.#snapshots.tidy();
        if (recovered.manifest === undefined)
            await serving.#journal.replace();
        return serving;
    }
    /** Makes the tape writer of the shard; undefined if its job has no tape. */
    #makeTape() {
        const { tape: store, tapeBytesMax: bytesMax, shard, listener } = this.#context;
        if (store === undefined)
            return undefined;
        return new TapeWriter({
            ...{ store, shard, bytesMax, folded: this.shard },
            generation: () => this.position.generation,
            onProgress: () => this.onProgress(),
            onFailed: (error) => listener.trouble("tape-failed", error),
            onIncomplete: (error) => listener.trouble("tape-incomplete", error),
        });
    }
    /** Has the parts observe what the fold does to blocks. */
    #observe() {
        const snapshots = this.#snapshots;
        this.shard.observer = this.#tape;
        this.shard.hooks = {
            blockAdded: (block) => this.#subscriptions.blockAdded(block),
            blockRemoved: (block) => {
                this.#subscriptions.blockRemoved(block);
                snapshots.blockRemoved(block);
            },
            beforeChange: (block) => snapshots.beforeChange(block),
        };
    }
    /** Starts to fold. */
    start() {
        return this.#loop.start();
    }
    /** Reads the journal again after the connection was lost. */
    async reconnected() {
        this.#snapshots.abort();
        await this.#loop.reconnected();
    }
    /** Whether it has caught up and answers. */
    get isServing() {
        return this.#core.isServing && !this.#isStopped;
    }
    /** Records that it has to fold before it answers, and how many of them it has folded. */
    get catchUp() {
        const { seq } = this.#core.journalEnd;
        const records = Math.max(0, seq - this.#baseSeq);
        return { folded: Math.min(Math.max(0, this.shard.seq - this.#baseSeq), records), records };
    }
    get position() {
        return { generation: this.#snapshots.newest?.manifest.generation ?? 0, seq: this.shard.seq };
    }
    get fallbacks() {
        return this.#snapshots.newest?.manifest.fallbacks ?? [];
    }
    /** The last record folded; undefined if the fold does not end with a record. */
    get foldProgress() {
        const manifest = this.#snapshots.newest?.manifest;
        const { noted, lastCrc: recordCrc, endsWithRecord } = this.shard;
        if (manifest === undefined || !endsWithRecord)
            return undefined;
        const { term, generation } = manifest;
        return { term, generation, ...noted, recordCrc };
    }
    status() {
        return this.#owner.status();
    }
    memory() {
        const { host, memory } = this.#context.worker;
        return { host, freeBytes: Math.max(0, Math.floor(memory.freeBytes)) };
    }
    /** Makes its part of the reply to `status`. */
    statusEntries() {
        const manifest = this.#snapshots.newest?.manifest;
        return {
            ...this.position,
            term: manifest?.term ?? 0,
            snapshotSeq: manifest?.seq ?? 0,
            oldestSeq: this.#snapshots.oldestSeq,
            blocks: [...this.shard.blocks()].length,
            valueBytes: this.shard.valueBytes,
            updates: { applied: shardUpdates(this.shard), rejected: this.#rejected },
            journalBytes: this.#snapshots.journalBytes,
            ...defined({ lastRecordMs: this.#loop.lastRecordMs }),
            ...(this.#tape && { tape: this.#tapeGaps(this.#tape.gaps) }),
        };
    }
    #tapeGaps(gaps) {
        return { ...gaps, leftOut: gaps.leftOut + this.shard.unobserved };
    }
    /** Requests that were not answered because their reply subject was outside the asker's inbox. */
    get refusedRequests() {
        return this.#subscriptions.refused;
    }
    async snapshot(at) {
        const { manifest } = await this.#snapshots.make(at);
        return { shard: this.number, generation: manifest.generation, seq: manifest.seq };
    }
    /**
     * Folds up to the present end of the journal, then nothing more, and makes a snapshot of that. Reads are still
     * answered.
     * @throws TIMEOUT while the fold has not come so far.
     */
    async save() {
        // Records that came after the fold has ended are never folded.
        if (!this.#hasFoldEnded)
            await this.#foldToEnd();
        this.#hasFoldEnded = true;
        this.#loop.stop();
        await this.#snapshots.make(this.position);
    }
    async #foldToEnd() {
        const { journal, worker } = this.#context;
        const { host } = worker;
        const { generation } = this.position;
        const info = await journal.info(generation);
        const seq = info === undefined ? 0 : lastRecordSeq(info);
        await new Promise((resolve, reject) => {
            const wanted = { generation, seq, asker: host };
            const read = { from: host, wanted, waitMs: FOLD_WAIT_MS, run: resolve, refuse: reject };
            this.positions.at(this.position, read);
        });
    }
    /** Has the broker confirm that no other host has taken the shard over. @throws NOT_OWNER if one has. */
    async confirm() {
        await this.#snapshots.renew();
    }
    /** Stops folding and making snapshots. */
    stop() {
        this.#isStopped = true;
        this.#loop.stop();
        this.#journal.close();
        this.#snapshots.close();
        this.#tape?.close();
        this.#outcomes.clear();
    }
    /** Refuses pending requests, and further ones by {@link ShardSubscriptions.openFailed}. */
    fail(error) {
        this.#core.refuseAll(error());
        this.#subscriptions.openFailed(refusingHandler(error));
    }
    /** Refuses pending requests and receives no further ones. */
    close(error) {
        this.#subscriptions.close();
        this.#core.refuseAll(error);
    }
    async locate() {
        const place = await this.#journal.locate();
        this.#catchUp();
        return place;
    }
    mayFold() {
        if (this.#snapshots.holdsUp || this.#tape?.holdsUp === true)
            return false;
        return this.#core.isServing || this.#owner.fits(this.shard);
    }
    onSettled(settled, { payload, timeMs = 0 }) {
        if (!this.isServing)
            return;
        const { trainer, session } = settled;
        const payloadBytes = payload.length;
        const times = { storedMs: timeMs, foldedMs: Date.now() };
        if (this.#backlogs.isTooFarAhead({ trainer, session, payloadBytes, ...times })) {
            void this.#endSession(trainer, session);
        }
        this.#outcomes.add(settled);
        if (settled.outcome.code !== undefined)
            this.#rejected += 1;
    }
    /** Ends a session that does not wait for its outcomes, so that others do not wait for its records. */
    async #endSession(trainer, session) {
        const { journal, listener } = this.#context;
        const { number: shard } = this;
        try {
            await journal.append({ verb: "end", trainer, session });
            const text = `shard ${shard}: session ${session} of trainer ${quoteName(trainer)} was ended: ` +
                `it sent ${BACKLOG_BYTES_MAX} bytes ahead of the fold without waiting for outcomes`;
            listener.trouble("flooded", new PserverError("QUOTA", text, { shard, trainer, session }));
        }
        catch (error) {
            listener.trouble("flooded", ensureError(error));
        }
    }
    onAdvanced(bytes) {
        if (this.#isStopped)
            return;
        this.#catchUp();
        if (this.#owner.mayAnswer)
            this.#outcomes.flush(this.position.generation);
        else
            this.#outcomes.clear();
        this.#core.advanced(this.position);
        this.#snapshots.advanced(bytes, this.shard.isCompared);
    }
    async onGap(gap) {
        await this.#journal.skipGap(gap);
        this.#positionChanged();
    }
    onReplicaDamaged(damage) {
        this.#owner.replicaDamaged(damage);
    }
    onFailure(error, copy) {
        this.#owner.fail(error, copy);
    }
    onProgress() {
        this.#loop.poke();
    }
    onDeposed(error) {
        this.#owner.fail(error);
    }
    onArchiverBehind(error) {
        this.#context.listener.trouble("archiver-behind", error);
    }
    onSnapshotFailed(error) {
        this.#context.listener.trouble("snapshot-failed", error);
    }
    /** Answers pending requests after a gap was skipped or the journal was replaced. */
    #positionChanged() {
        this.positions.advance(this.position);
    }
    /**
     * Begins to answer once the fold has caught up. What it answers from is noted first: if the next owner finds other
     * records, it does not answer from those.
     */
    #catchUp() {
        if (this.#isMarking || this.#core.isServing || !this.#core.hasCaughtUp)
            return;
        this.#isMarking = true;
        void this.#owner.mark().then(() => {
            this.#isMarking = false;
            if (this.#isStopped || !this.#core.catchUp())
                return;
            this.#owner.caughtUp();
            this.#subscriptions.open(this.shard.blocks());
            this.#context.listener.serving();
        });
    }
}
/**
 * Decides when the owner of a shard answers. Does no I/O.
 *
 * Until it has folded up to the journal end of its take-over it answers nothing: the senders of these records were
 * answered by former owners, or ask.
 */
export class OwnerCore {
    shard;
    journalEnd;
    positions;
    steps;
    #isServing = false;
    constructor(parts) {
        this.shard = parts.shard;
        this.journalEnd = parts.journalEnd;
        this.positions = parts.positions;
        this.steps = parts.steps;
    }
    /** Whether it has caught up and answers. */
    get isServing() {
        return this.#isServing;
    }
    /** Whether the fold has reached the journal end of the take-over. */
    get hasCaughtUp() {
        return this.shard.seq >= this.journalEnd.seq;
    }
    /** Starts to serve if the fold has reached the journal end of the take-over; returns whether it did so just now. */
    catchUp() {
        if (this.#isServing || !this.hasCaughtUp)
            return false;
        this.#isServing = true;
        return true;
    }
    /** Answers pending requests after records have been folded or skipped. */
    advanced(position) {
        this.positions.advance(position);
        this.steps.advance();
    }
    /** Refuses all pending requests. */
    refuseAll(error) {
        this.positions.refuseAll(error);
        this.steps.refuseAll(error);
    }
}
//# sourceMappingURL=serving-shard.js.map