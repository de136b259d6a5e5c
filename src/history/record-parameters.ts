import { readable, readRecordMessage } from "../actors/fold/journal-record.ts";
import type { Shard } from "../actors/fold/shard.ts";
import { BATCH_ENTRIES_MAX, JobSubjects } from "../protocol/index.ts";
import { parseBatch } from "../protocol/messages/batch-records.ts";
import type { Cut } from "./points.ts";
import { replayShard } from "./replay/replay-shard.ts";
import type { HistorySource, TimedRecord } from "./source.ts";

/**
 * Tells which parameters records are about. A batch or contribution has only numbers of blocks, which a shard knows to which parameters
 * they belong: it is replayed to a cut behind the records, once.
 */
export class RecordParameters {
  readonly #source: HistorySource;
  readonly #cut: Cut;
  readonly #signal: AbortSignal;
  readonly #subjects: JobSubjects;
  readonly #shards = new Map<number, Promise<Shard>>();

  /** `cut`: at or behind all records that are asked for. */
  constructor(source: HistorySource, cut: Cut, signal: AbortSignal) {
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
  async of(shard: number, { subject, payload }: TimedRecord): Promise<readonly string[]> {
    const parsed = readable(() => this.#subjects.parseLog(subject));
    if (parsed?.by === "trainer") return [parsed.parameter];
    if (parsed?.by !== "batch" && parsed?.by !== "contribute") return [];
    const message = readRecordMessage(payload);
    const batch = message && readable(() => parseBatch(message, BATCH_ENTRIES_MAX));
    if (batch === undefined) return [];
    const replayed = await this.#replayed(shard);
    const numbers = batch.runs.flatMap((run) => [...run.numbers]);
    return [
      ...new Set(numbers.flatMap((number) => replayed.nameOfNumber(number)?.parameter ?? [])),
    ];
  }

  #replayed(shard: number): Promise<Shard> {
    const known = this.#shards.get(shard);
    if (known !== undefined) return known;
    const to = this.#cut[shard];
    if (to === undefined) throw new Error(`the cut lacks shard ${shard}`);
    const options = { subjects: this.#subjects, signal: this.#signal };
    const replayed = replayShard(this.#source.shard(shard), to, options);
    this.#shards.set(shard, replayed);
    return replayed;
  }
}
