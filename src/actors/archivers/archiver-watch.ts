import type { KvBucket } from "../jetstream/kv-bucket.ts";
import { type ArchivedShard, readArchivers } from "./archiver-record.ts";

/** Dependencies of {@link ArchiverWatch}. */
export interface ArchiverWatchDeps {
  readonly records: Pick<KvBucket, "keys" | "read" | "remove">;
  /** Milliseconds of a clock that never goes back. */
  readonly nowMs: () => number;
}

/** A version of an archiver's record, and when this host saw it first. */
interface Sighting {
  readonly revision: number;
  readonly sinceMs: number;
}

/**
 * Knows the archivers of a job. One whose record stays the same for longer than its grace time is taken to
 * be gone, and its record removed. Only this host's clock is used for that.
 */
export class ArchiverWatch {
  readonly #deps: ArchiverWatchDeps;
  #sightings: ReadonlyMap<string, Sighting> = new Map();

  constructor(deps: ArchiverWatchDeps) {
    this.#deps = deps;
  }

  /**
   * What each archiver that is alive has copied of a shard.
   * @throws TIMEOUT, JETSTREAM_UNAVAILABLE and the like.
   */
  async copied(shard: number): Promise<ArchivedShard[]> {
    const { records, nowMs } = this.#deps;
    const sightings = new Map<string, Sighting>();
    const copied: ArchivedShard[] = [];
    for (const { key, revision, record } of await readArchivers(records)) {
      const archived = record?.shards[shard];
      if (record === undefined || archived === undefined) continue;
      const before = this.#sightings.get(key);
      const sinceMs = before?.revision === revision ? before.sinceMs : nowMs();
      if (nowMs() - sinceMs > record.graceMs) {
        await records.remove(key, revision);
        continue;
      }
      sightings.set(key, { revision, sinceMs });
      copied.push(archived);
    }
    this.#sightings = sightings;
    return copied;
  }
}
