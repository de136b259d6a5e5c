import { setTimeout as delay } from "node:timers/promises";
import { type JetStreamManager, StorageType } from "@nats-io/jetstream";
import { JETSTREAM_ERRORS, type JobSubjects, PserverError } from "../../protocol/index.ts";
import { fromBrokerError, jetStreamErrorCode } from "../../transport/broker-error.ts";
import { deleteStream } from "./delete-stream.ts";
import { streamExists } from "./stream-exists.ts";

/** A probe stands for as long as two requests take: one that stands longer was left behind. */
const PROBE_MS_MAX = 10_000;

/** Pause while another host's probe stands. */
const RETRY_MS = 50;

const ACTION = "asking the broker for room";

/**
 * Whether the broker can reserve so many bytes: a stream is made with that limit, and removed. The
 * job has one such stream, so that of hosts that die in between no more than that one is left,
 * which the next that asks removes.
 * @throws TIMEOUT, NO_JETSTREAM and the like if the broker does not say.
 */
export async function hasRoom(
  manager: JetStreamManager,
  subjects: JobSubjects,
  storage: "file" | "memory",
  bytes: number,
  probeMsMax: number = PROBE_MS_MAX,
): Promise<boolean> {
  const name = subjects.roomStream();
  const started = performance.now();
  let refusals = 0;
  try {
    for (;;) {
      const waitedMs = performance.now() - started;
      try {
        await manager.streams.add({
          name,
          subjects: [subjects.room()],
          storage: storage === "file" ? StorageType.File : StorageType.Memory,
          max_bytes: bytes,
        });
        // Another host that asked for the same may have removed it already.
        await deleteStream(manager, name);
        return true;
      } catch (error) {
        const inTheWay =
          (waitedMs <= probeMsMax && isBeingRemoved(error)) ||
          (await isInTheWay(manager, name, error));
        // Another's probe may have gone just before it was looked for: so it must be said twice.
        refusals = inTheWay ? 0 : refusals + 1;
        if (refusals === 2) throw error;
      }
      if (waitedMs > 2 * probeMsMax) {
        const message = `other hosts of job ${subjects.job} ask for room all the time`;
        throw new PserverError("TIMEOUT", message, { timeoutMs: 2 * probeMsMax });
      }
      if (waitedMs > probeMsMax) await deleteStream(manager, name);
      else await delay(RETRY_MS);
    }
  } catch (error) {
    const found = fromBrokerError(error, ACTION);
    if (found.code === "NO_SPACE") return false;
    throw found;
  }
}

/**
 * Whether the attempt failed for a probe that stands: one with another limit, or one that takes up
 * the room. It is of a host that asks at this moment, or of one that died.
 * @throws `error` if it says something else.
 */
async function isInTheWay(
  manager: JetStreamManager,
  name: string,
  error: unknown,
): Promise<boolean> {
  if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.STREAM_NAME_IN_USE) return true;
  if (fromBrokerError(error, ACTION).code !== "NO_SPACE") throw error;
  return await streamExists(manager, name);
}

/** Whether a probe could not be made because another one's store was being removed, as it may be. */
function isBeingRemoved(error: unknown): boolean {
  return jetStreamErrorCode(error) === JETSTREAM_ERRORS.STREAM_NOT_MADE;
}
