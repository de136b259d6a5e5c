import { setTimeout as delay } from "node:timers/promises";
import { asMap, ensureError, integerField, PserverError } from "../../protocol/index.ts";
import type { OwnersClient } from "../requests/owners-client.ts";

/** How long an owner may take to take its shard over again, besides two lease times. */
const GRACE_MS = 5_000;

/** Time limit for the reply of an owner. */
const OWNER_MS = 2_000;

/** Pause before an owner that does not serve the shard yet is asked again. */
const RETRY_MS = 100;

/** A shard as its next owner must serve it. */
interface ExpectedOwner {
  readonly shard: number;
  /** The lowest generation that counts. */
  readonly generation: number;
  /** Whether a host answered for the shard before, if only with an error. */
  readonly hadHost: boolean;
  readonly leaseMs: number;
  readonly signal: AbortSignal;
}

/** How long running hosts may take to serve a shard again that goes on under a new generation. */
export function takeOverMs(leaseMs: number): number {
  return 2 * leaseMs + GRACE_MS;
}

/** The generation under which a shard is served. @throws the error of its owner; NO_OWNER if none answers. */
export async function servedGeneration(
  owners: Pick<OwnersClient, "ask">,
  shard: number,
): Promise<number> {
  const { fields } = await owners.ask(shard, "status", {}, OWNER_MS);
  return integerField(asMap(fields["status"], "status"), "generation");
}

/**
 * Waits until a host serves a shard under a generation: hosts that run take it over again by themselves.
 * Returns undefined then, and else why it is not served: NO_OWNER, soon, if no host answers for the shard at
 * first and none did before; the last error of its owner once {@link takeOverMs} have passed.
 * @throws the reason of `signal`.
 */
export async function awaitOwner(
  owners: Pick<OwnersClient, "ask">,
  expected: ExpectedOwner,
): Promise<PserverError | undefined> {
  const { leaseMs, hadHost, signal } = expected;
  const deadline = performance.now() + takeOverMs(leaseMs);
  for (let hasHost = hadHost; ; ) {
    const problem = await problemOf(owners, expected);
    hasHost ||= problem?.code !== "NO_OWNER";
    if (problem === undefined || !hasHost || performance.now() >= deadline) return problem;
    await delay(RETRY_MS);
    signal.throwIfAborted();
  }
}

/** Why a shard is not served under its generation; undefined if it is. */
async function problemOf(
  owners: Pick<OwnersClient, "ask">,
  { shard, generation }: ExpectedOwner,
): Promise<PserverError | undefined> {
  try {
    const received = await servedGeneration(owners, shard);
    if (received >= generation) return undefined;
    const text = `shard ${shard}: expected generation ${generation} to be served; received ${received}`;
    return new PserverError("NOT_OWNER", text, { shard, expected: generation, received });
  } catch (error) {
    return ensureError(error);
  }
}
