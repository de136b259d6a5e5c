import { ensureError, type MembersRecord, type PserverError } from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { Owners } from "./settings.ts";

/** What a {@link MembersAnnouncer} works with. */
export interface MembersAnnouncerOptions {
  readonly owners: Pick<Owners, "append">;
  readonly shards: number;
  /** Told of each shard that could not be told. */
  readonly onError: (error: PserverError) => void;
}

/**
 * Tells the journals of all shards who keeps step. Of many that come and go at one time the journals
 * get the newest state, not every one. A journal that cannot be told at the moment holds nobody up: the
 * host that serves its shard tells it later.
 */
export class MembersAnnouncer {
  readonly #options: MembersAnnouncerOptions;
  #newest: MembersRecord | undefined;
  #round: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(options: MembersAnnouncerOptions) {
    this.#options = options;
  }

  /** Appends the members, or newer ones, to every journal; settles once each has been tried. */
  announce(record: MembersRecord): Promise<void> {
    if (record.revision >= (this.#newest?.revision ?? 0)) this.#newest = record;
    // A round under way has told some shards already, without this record.
    this.#next ??= this.#round.then(() => {
      this.#next = undefined;
      const all = Array.from({ length: this.#options.shards }, (_, shard) => shard);
      this.#round = this.announceTo(all, this.#newest ?? record);
      return this.#round;
    });
    return this.#next;
  }

  /** Appends the members to these journals; settles once each has been tried. */
  async announceTo(shards: readonly number[], record: MembersRecord): Promise<void> {
    const { owners, onError } = this.#options;
    await mapConcurrently(shards, async (shard) => {
      try {
        await owners.append(shard, record);
      } catch (error) {
        onError(ensureError(error));
      }
    });
  }
}
