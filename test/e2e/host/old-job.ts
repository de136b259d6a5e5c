import type { NatsConnection } from "@nats-io/transport-node";
import { openBucket } from "../../../src/actors/journal/kv-bucket.ts";

/** Settings of a job with these rules, as a host of before wrote them. */
export function oldSettings(rules: number, shards: number): object {
  return {
    format: rules === 1 ? 1 : 2,
    ...(rules === 1 ? {} : { rules }),
    shards,
    journal: "file",
    leaseMs: 1_000,
    leases: "kv",
    journalBytesMax: 64 * 1024 ** 2,
    replicas: 1,
    synchronization: { mode: "async" },
  };
}

/** Makes the job `j` of a broker, whose first host then serves it under these rules. */
export async function makeOldJob(
  connection: NatsConnection,
  rules: number,
  shards: number,
): Promise<void> {
  const records = await openBucket({ connection, bucket: "PS_j", storage: "file" });
  await records.create("settings", oldSettings(rules, shards));
}
