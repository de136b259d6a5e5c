import { ensureError, PserverError } from "../../protocol/index.ts";
import { type KvBucket, replaceEntry } from "./kv-bucket.ts";
import {
  type FoldProgress,
  isLater,
  nextWatermark,
  parseWatermark,
  toWatermarkEntry,
  type Watermark,
  watermarkKey,
} from "./watermark.ts";

/** Attempts to write a mark that another owner changes at the same time. */
const TRIES_MAX = 4;

/** Where marks are kept. */
type WatermarkBucket = Pick<KvBucket, "created" | "read" | "create" | "update">;

/**
 * The mark of one shard in the job's bucket, for one of its owners. A mark never goes back: each write
 * names the revision that this owner has read or written, so a deposed owner cannot overwrite the mark
 * of its successor.
 *
 * The methods throw the errors of {@link KvBucket}.
 */
export class WatermarkKeeper {
  readonly #bucket: WatermarkBucket;
  readonly #shard: number;
  #watermark: Watermark | undefined;
  #revision: number | undefined;

  constructor(records: WatermarkBucket, shard: number) {
    this.#bucket = records;
    this.#shard = shard;
  }

  /** The mark last read or written. */
  get last(): Watermark | undefined {
    return this.#watermark;
  }

  /**
   * Reads the mark; undefined if there is none. What an owner has written whose broker was emptied meanwhile, into
   * the bucket that was made anew, says nothing about the shard that is there now.
   * @throws BAD_VERSION, INTERNAL if it cannot be read.
   */
  async read(): Promise<Watermark | undefined> {
    const key = watermarkKey(this.#shard);
    const stored = await this.#bucket.read(key);
    const found = stored && parseWatermark(stored.value, key);
    this.#watermark =
      found?.bucket === (await this.#bucket.created()) ? found.watermark : undefined;
    this.#revision = stored?.revision;
    return this.#watermark;
  }

  /**
   * Writes the mark of a head, with what earlier ones have noted, unless the present one is as late or of a
   * later owner. {@link read} must have been called before.
   * @throws BUSY if others keep changing it at the same time.
   */
  async raise(head: FoldProgress): Promise<void> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      if (!isLater(head, this.#watermark) || head.term < (this.#watermark?.term ?? 0)) return;
      const watermark = nextWatermark(head, this.#watermark);
      const key = watermarkKey(this.#shard);
      const record = toWatermarkEntry({
        watermark: watermark,
        bucket: await this.#bucket.created(),
      });
      const revision = await replaceEntry(this.#bucket, key, record, this.#revision);
      if (revision !== undefined) {
        this.#watermark = watermark;
        this.#revision = revision;
        return;
      }
      // Another owner has written since, or the answer to an earlier write of this one was lost.
      await this.read();
    }
    const text = `mark of shard ${this.#shard}: changed by others ${TRIES_MAX} times in a row`;
    throw new PserverError("BUSY", text, { shard: this.#shard });
  }
}

/** Writes the marks of one owner, one at a time, and reports failures. */
export class WatermarkWriter {
  readonly #keeper: Pick<WatermarkKeeper, "raise">;
  readonly #onFailed: (error: PserverError) => void;
  #writing: Promise<void> | undefined;
  #hasToldFailure = false;

  /** `onFailed` is called for the first failure after a success. */
  constructor(marks: Pick<WatermarkKeeper, "raise">, onFailed: (error: PserverError) => void) {
    this.#keeper = marks;
    this.#onFailed = onFailed;
  }

  /** Writes a mark, unless a write is under way: the next call will write a later mark. */
  write(head: FoldProgress | undefined): Promise<void> {
    if (head === undefined) return Promise.resolve();
    this.#writing ??= this.#raise(head).finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  /** Writes the last mark of this owner, after a write under way. */
  async finish(head: FoldProgress | undefined): Promise<void> {
    await this.#writing;
    await this.write(head);
  }

  async #raise(head: FoldProgress): Promise<void> {
    try {
      await this.#keeper.raise(head);
      this.#hasToldFailure = false;
    } catch (error) {
      if (!this.#hasToldFailure) this.#onFailed(ensureError(error));
      this.#hasToldFailure = true;
    }
  }
}
