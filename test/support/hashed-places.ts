import type { BlockPlaces } from "../../src/actors/owner/subscriptions.ts";
import { hashName } from "../../src/protocol/index.ts";

/** Returns the places of parameters that all lie where the hashes of their names say, on so many shards. */
export function hashedPlaces(shards: number): BlockPlaces {
  return {
    shardOf: async (parameter, index) => ((hashName(parameter) % shards) + index) % shards,
  };
}
