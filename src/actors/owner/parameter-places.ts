import type { KvBucket } from "../jetstream/kv-bucket.ts";
import { parameterRecord } from "../lifecycle/parameter-record.ts";

/** Look-ups under way at most: pulls may name parameters that nobody has declared. */
const LOOK_UPS_MAX = 64;

/** Where blocks lie, as the records of their parameters say. */
export class ParameterPlaces {
  readonly #bucket: Pick<KvBucket, "read">;
  /** First shards, which never change. */
  readonly #firstShards: Map<string, number> = new Map();
  readonly #lookUps: Map<string, Promise<number | undefined>> = new Map();

  constructor(bucket: Pick<KvBucket, "read">) {
    this.#bucket = bucket;
  }

  /**
   * The shard, of `shards`, of a parameter's block `index`; undefined if there is no such parameter, the broker does
   * not say, or too many others are looked up. It does not throw.
   */
  async shardOf(parameter: string, index: number, shards: number): Promise<number | undefined> {
    const firstShard = this.#firstShards.get(parameter) ?? (await this.#lookUp(parameter));
    return firstShard === undefined ? undefined : (firstShard + index) % shards;
  }

  #lookUp(parameter: string): Promise<number | undefined> | undefined {
    const underWay = this.#lookUps.get(parameter);
    if (underWay !== undefined || this.#lookUps.size >= LOOK_UPS_MAX) return underWay;
    const lookUp = this.#read(parameter).finally(() => this.#lookUps.delete(parameter));
    this.#lookUps.set(parameter, lookUp);
    return lookUp;
  }

  async #read(parameter: string): Promise<number | undefined> {
    try {
      const known = await parameterRecord(parameter).read({ bucket: this.#bucket });
      if (known !== undefined) this.#firstShards.set(parameter, known.layout.firstShard);
      return known?.layout.firstShard;
    } catch {
      // The asker repeats its request.
      return undefined;
    }
  }
}
