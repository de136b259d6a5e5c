/** Adds up the progress of several shards. */
export class ProgressSum {
  readonly #onProgress: (doneRecords: number, totalRecords: number) => void;
  readonly #shards: Map<number, readonly [done: number, total: number]> = new Map();

  constructor(onProgress: (doneRecords: number, totalRecords: number) => void) {
    this.#onProgress = onProgress;
  }

  /** Notes the progress of a shard, and tells the sum. */
  readonly note = (shard: number, doneRecords: number, totalRecords: number): void => {
    this.#shards.set(shard, [doneRecords, totalRecords]);
    let [allDone, allTotal] = [0, 0];
    for (const [done, total] of this.#shards.values()) {
      allDone += done;
      allTotal += total;
    }
    this.#onProgress(allDone, allTotal);
  };
}
