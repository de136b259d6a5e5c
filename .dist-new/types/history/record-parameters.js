import { readable, readRecordMessage } from "../actors/fold/journal-record.js";
import { BATCH_ENTRIES_MAX, JobSubjects } from "../protocol/index.js";
import { parseBatch } from "../protocol/messages/batch-records.js";
import { replayShard } from "./replay/replay-shard.js";
/**
 * Tells which parameters records are about. A batch has only numbers of blocks, which a shard knows to which parameters
 * they belong: it is replayed to a cut behind the records, once.
 */
export class RecordParameters {
    #source;
    #cut;
    #signal;
    #subjects;
    #shards = new Map();
    /** `cut`: at or behind all records that are asked for. */
    constructor(source, cut, signal) {
        this.#source = source;
        this.#cut = cut;
        this.#signal = signal;
        this.#subjects = new JobSubjects(source.job);
    }
    /**
     * Returns the names, each once; none for a record that names none, and without those that the shard does not know
     * any more at the cut.
     * @throws what {@link replayShard} throws.
     */
    async of(shard, { subject, payload }) {
        const parsed = readable(() => this.#subjects.parseLog(subject));
        if (parsed?.by === "trainer")
            return [parsed.parameter];
        if (parsed?.by !== "batch")
            return [];
        const message = readRecordMessage(payload);
        const batch = message && readable(() => parseBatch(message, BATCH_ENTRIES_MAX));
        if (batch === undefined)
            return [];
        const replayed = await this.#replayed(shard);
        const numbers = batch.runs.flatMap((run) => [...run.numbers]);
        return [
            ...new Set(numbers.flatMap((number) => replayed.nameOfNumber(number)?.parameter ?? [])),
        ];
    }
    #replayed(shard) {
        const known = this.#shards.get(shard);
        if (known !== undefined)
            return known;
        const to = this.#cut[shard];
        if (to === undefined)
            throw new Error(`the cut lacks shard ${shard}`);
        const options = { subjects: this.#subjects, signal: this.#signal };
        const replayed = replayShard(this.#source.shard(shard), to, options);
        this.#shards.set(shard, replayed);
        return replayed;
    }
}
//# sourceMappingURL=record-parameters.js.map