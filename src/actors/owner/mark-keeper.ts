import { PserverError } from "../../protocol/index.ts";
import type { KvBucket } from "../jetstream/kv-bucket.ts";
import { type HeadMark, headKey, parseMark, saysMore, toMarkRecord } from "./head-mark.ts";

/** Attempts to write a mark that others write at the same time; there are two owners at most. */
const TRIES_MAX = 4;

/**
 * Keeps the mark of one shard in the job's bucket, for one owner of it. A mark only ever rises, and
 * each write names the revision that this owner has read or written: one that was deposed cannot
 * take back what its successor has noted.
 *
 * The methods throw as those of {@link KvBucket} do.
 */
export class MarkKeeper {
  readonly #records: Pick<KvBucket, "read" | "create" | "update">;
  readonly #shard: number;
  #mark: HeadMark | undefined;
  #revision: number | undefined;

  constructor(records: Pick<KvBucket, "read" | "create" | "update">, shard: number) {
    this.#records = records;
    this.#shard = shard;
  }

  /** The mark as it was last read or written. */
  get last(): HeadMark | undefined {
    return this.#mark;
  }

  /**
   * The mark as it stands; undefined if there is none.
   * @throws BAD_VERSION, INTERNAL if it cannot be read.
   */
  async read(): Promise<HeadMark | undefined> {
    const key = headKey(this.#shard);
    const stored = await this.#records.read(key);
    this.#mark = stored && parseMark(stored.value, key);
    this.#revision = stored?.revision;
    return this.#mark;
  }

  /**
   * Notes how far the shard is folded, unless as much is noted already or by a later owner. The mark
   * must have been read before; of several calls at one time all but one may write in vain.
   * @throws BUSY if others write at the same time again and again.
   */
  async raise(mark: HeadMark): Promise<void> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      if (!saysMore(mark, this.#mark) || mark.term < (this.#mark?.term ?? 0)) return;
      const revision = await this.#write(mark);
      if (revision !== undefined) {
        this.#mark = mark;
        this.#revision = revision;
        return;
      }
      // Another owner has written since, or this one in a request whose answer was lost.
      await this.read();
    }
    const text = `mark of shard ${this.#shard}: changed by others ${TRIES_MAX} times in a row`;
    throw new PserverError("BUSY", text, { shard: this.#shard });
  }

  async #write(mark: HeadMark): Promise<number | undefined> {
    const key = headKey(this.#shard);
    const value = toMarkRecord(mark);
    if (this.#revision === undefined) return await this.#records.create(key, value);
    return await this.#records.update(key, value, this.#revision);
  }
}
