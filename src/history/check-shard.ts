import { PserverError } from "../protocol/index.ts";
import type { JobFacts } from "./source.ts";

/** @throws BAD_VALUE for a shard that the job does not have. */
export function checkShard({ job, shards }: JobFacts, shard: number): void {
  if (Number.isSafeInteger(shard) && shard >= 0 && shard < shards) return;
  throw new PserverError(
    "BAD_VALUE",
    `shard: job ${job} has shards 0 to ${shards - 1}; received ${shard}`,
    { expected: shards - 1, received: shard },
  );
}
