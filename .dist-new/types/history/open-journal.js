import { defined } from "../protocol/fields.js";
import { ArchiveSource } from "./archive/archive-source.js";
import { joinHistories } from "./archive/joined-source.js";
import { BrokerHistory } from "./broker-history.js";
import { parsePoint } from "./points.js";
import { readUpdates, resolveRange } from "./read-updates.js";
import { LocalReplayer, replayModel } from "./replay/replayer.js";
import { ThreadPool } from "./replay/thread-pool.js";
import { resolvePoint } from "./resolve-point.js";
/**
 * Opens the history of a job for reading; the caller closes it.
 * @throws NO_BROKER, DENIED, NO_JETSTREAM, TIMEOUT; BAD_NAME if there is no such job; BAD_ARCHIVE,
 * BAD_VERSION, IO for an archive.
 */
export async function openHistory(place) {
    switch (place.kind) {
        case "archive":
            return await ArchiveSource.open(place.archive);
        case "broker": {
            const { connection, job, archive } = place;
            const archived = archive === undefined ? undefined : await ArchiveSource.open(archive);
            const live = await BrokerHistory.open(connection, job);
            try {
                return archived === undefined ? live : joinHistories(archived, live);
            }
            catch (error) {
                await live.close();
                throw error;
            }
        }
    }
}
/** The journals of a job, open for reading. */
export class JournalHandle {
    source;
    #place;
    constructor(source, place) {
        this.source = source;
        this.#place = place;
    }
    /**
     * Returns the cut that a point means: `now`, `10m ago`, `2026-11-23T04:12:07Z`, `3:1200`, ….
     * @throws BAD_VALUE for a text that is no point or one after the end, HISTORY_LOST for one before what is kept.
     */
    async resolve(point, signal = NEVER) {
        return await resolvePoint(this.source, parsePoint(point, Date.now()), signal);
    }
    /**
     * The updates of the job, one after the other: each entry of a batch, each note, and each record of a host, in
     * the order of the times at which the broker stored them. Memory does not grow with their number.
     * @throws TAPE_DAMAGED, BAD_ARCHIVE at the end if no `onDamage` was there to be told of it; as {@link resolve}; what the source and the fold throw; the reason of the signal.
     * @example
     * for await (const update of journal.updates({ trainer: "trainer-2", since: "1h ago" })) console.log(update);
     */
    async *updates(options = {}) {
        const { since = "start", until = "now", follow = false, signal = NEVER, ...filter } = options;
        const nowMs = Date.now();
        const [from, to] = [parsePoint(since, nowMs), parsePoint(until, nowMs)];
        const range = await resolveRange(this.source, from, to, signal);
        const query = { ...filter, ...range, follow, signal };
        for await (const events of readUpdates(this.source, query))
            yield* events;
    }
    /**
     * Rebuilds the model as it was at a point, by the code that hosts fold with. The caller closes it.
     * @throws as {@link resolve}; SNAPSHOT_DAMAGED, JOURNAL_DAMAGED if what is kept cannot be read;
     * UNKNOWN_RULES if this version cannot fold it; the reason of the signal.
     * @example
     * const { model } = await journal.replayTo("10m ago");
     * const { data } = await model.tensor("w");
     */
    async replayTo(point, options = {}) {
        const { signal = NEVER, threads = true, onProgress } = options;
        const resolved = await this.resolve(point, signal);
        const replayer = threads
            ? ThreadPool.start(this.#place, this.source.shards, signal)
            : new LocalReplayer(this.source, signal);
        try {
            const model = await replayModel(replayer, resolved.cut, defined({ onProgress }));
            return { point: resolved, model, close: () => replayer.close() };
        }
        catch (error) {
            await replayer.close();
            throw error;
        }
    }
    /** Closes its source. Models that were rebuilt on threads stay until they are closed. */
    async close() {
        await this.source.close();
    }
    async [Symbol.asyncDispose]() {
        await this.close();
    }
}
const NEVER = new AbortController().signal;
/**
 * Opens the journals of a job for reading; needs no host, and changes nothing. The caller closes it.
 * @throws as `openHistory`.
 */
export async function openJournalAt(place) {
    return new JournalHandle(await openHistory(place), place);
}
//# sourceMappingURL=open-journal.js.map