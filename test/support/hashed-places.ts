import type { BlockPlaces } from "../../src/actors/owner/subscriptions.ts";
import { hashName } from "../../src/protocol/index.ts";

/** Places of parameters that all lie where the hashes of their names say. */
export const HASHED_PLACES: BlockPlaces = {
  shardOf: async (parameter, index, shards) => ((hashName(parameter) % shards) + index) % shards,
};
