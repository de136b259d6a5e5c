import { TestHost } from "../../support/host.ts";

/** A host of job "j" in a cluster of three brokers, with every stream kept three times. */
export function startReplicatedHost(
  servers: readonly string[],
  options: {
    readonly shards: number;
    readonly leaseMs: number;
    readonly journal?: "file" | "memory";
  },
): TestHost {
  return new TestHost({
    connection: { servers: [...servers], timeoutMs: 5_000 },
    job: "j",
    workers: 1,
    replicas: 3,
    journalBytesMax: 16 * 1024 ** 2,
    ...options,
  });
}
