import { setTimeout as delay } from "node:timers/promises";
import { type JetStreamManager, StorageType } from "@nats-io/jetstream";
import { JETSTREAM_ERRORS, type JobSubjects, PserverError } from "../../protocol/index.ts";
import { fromBrokerError, jetStreamErrorCode } from "../../transport/broker-error.ts";
import { deleteStream, streamExists } from "./streams.ts";

/** A probe exists for as long as two requests take; one that is older was left behind. */
const PROBE_MS_MAX = 10_000;

/** Pause while another host's probe exists. */
const RETRY_MS = 50;

const ACTION = "asking the broker for space";

/**
 * Tells whether the broker can reserve so many bytes, by creating a stream with that limit and deleting
 * it. All hosts of a job use one stream name, so a host that dies in between leaves at most this one
 * stream behind, and the next probe deletes it.
 * @throws TIMEOUT, NO_JETSTREAM and the like if the broker does not say.
 */
export async function probeStorage(
  manager: JetStreamManager,
  subjects: JobSubjects,
  storage: "file" | "memory",
  bytes: number,
  probeMsMax: number = PROBE_MS_MAX,
): Promise<boolean> {
  const name = subjects.storageProbeStream();
  const started = performance.now();
  let refusals = 0;
  let hasRemoved = false;
  try {
    for (;;) {
      const waitedMs = performance.now() - started;
      try {
        await manager.streams.add({
          name,
          subjects: [subjects.storageProbe()],
          storage: storage === "file" ? StorageType.File : StorageType.Memory,
          max_bytes: bytes,
        });
        // Another host with the same question may have deleted it already.
        await deleteStream(manager, name);
        return true;
      } catch (error) {
        const isBlocked =
          (waitedMs <= probeMsMax && isBeingDeleted(error)) ||
          (await isBlockedByProbe(manager, name, error));
        // Another probe may have been deleted before this host looked for it: two refusals are needed.
        refusals = isBlocked ? 0 : refusals + 1;
        if (refusals === 2) throw error;
      }
      // A slow broker alone is no reason: what was left behind must have been removed.
      if (hasRemoved && waitedMs > 2 * probeMsMax) {
        const message = `other hosts of job ${subjects.job} ask for space all the time`;
        throw new PserverError("TIMEOUT", message, { timeoutMs: 2 * probeMsMax });
      }
      if (waitedMs > probeMsMax) {
        await deleteStream(manager, name);
        hasRemoved = true;
      } else await delay(RETRY_MS);
    }
  } catch (error) {
    const found = fromBrokerError(error, ACTION);
    if (found.code === "NO_SPACE") return false;
    throw found;
  }
}

/**
 * Whether the attempt failed because of an existing probe: one with another limit, or one that takes up
 * the space. It belongs to a host that probes at this moment, or to one that died.
 * @throws `error` if it has another reason.
 */
async function isBlockedByProbe(
  manager: JetStreamManager,
  name: string,
  error: unknown,
): Promise<boolean> {
  if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.STREAM_NAME_IN_USE) return true;
  if (fromBrokerError(error, ACTION).code !== "NO_SPACE") throw error;
  return await streamExists(manager, name);
}

/** Whether the broker could not create the stream because it may still be deleting another probe's files. */
function isBeingDeleted(error: unknown): boolean {
  return jetStreamErrorCode(error) === JETSTREAM_ERRORS.STREAM_NOT_MADE;
}
