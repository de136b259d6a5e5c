import { asMap, integerField } from "../../protocol/fields.ts";
import type { ListedShard } from "./participants.ts";

/** What became of the records that change blocks. */
export interface Updates {
  /** Changes of blocks since their `init`, of all shards that tell. */
  readonly applied: number;
  /** Records refused since the present owners serve their shards. */
  readonly refused: number;
  /** Shards that do not serve, or whose hosts do not tell: how much was applied there is not known. */
  readonly silent: readonly number[];
}

/** The updates of a job, as its shards tell them; @throws BAD_MESSAGE if one is malformed. */
export function updatesOf(shards: readonly ListedShard[]): Updates {
  let [applied, refused] = [0, 0];
  const silent: number[] = [];
  for (const listed of shards) {
    const { shard, state, updates } = listed;
    // A shard that is catching up has not yet come to what was acknowledged before.
    if (state !== "serving" || updates === undefined) silent.push(shard);
    else {
      const counts = asMap(updates, "updates");
      applied += integerField(counts, "applied");
      refused += integerField(counts, "refused");
    }
  }
  return { applied, refused, silent };
}
