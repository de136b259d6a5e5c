import { createHash } from "node:crypto";
import { packValue } from "../../protocol/codec.ts";
import type { Block } from "./block.ts";
import type { Shard } from "./shard.ts";

/** SHA-256, in hex, of a shard's state without values and slots. */
export function stateDigest(shard: Pick<Shard, "saveState">): string {
  return createHash("sha256").update(packValue(shard.saveState())).digest("hex");
}

/** SHA-256, in hex, of a block's values and slots. */
export function blockDigest(block: Pick<Block, "slots" | "slotBytes">): string {
  const hash = createHash("sha256");
  for (let slot = 0; slot <= block.slots; slot++) hash.update(block.slotBytes(slot));
  return hash.digest("hex");
}
