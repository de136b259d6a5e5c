import type { HostOptions } from "../../../src/actors/host/host.ts";
import { TestHost } from "../../support/host.ts";

/** How long a request of such a host to a broker may take. */
export const BROKER_TIMEOUT_MS = 5_000;

/** A host of job "j" in a cluster of three brokers, with every stream kept three times. */
export function startReplicatedHost(
  servers: readonly string[],
  options: Partial<HostOptions> & { readonly shards: number; readonly leaseMs: number },
): TestHost {
  return new TestHost({
    connection: { servers: [...servers], timeoutMs: BROKER_TIMEOUT_MS },
    job: "j",
    workers: 1,
    replicas: 3,
    journalBytesMax: 16 * 1024 ** 2,
    ...options,
  });
}
