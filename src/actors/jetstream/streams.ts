import type { JetStreamManager } from "@nats-io/jetstream";
import { JETSTREAM_ERRORS } from "../../protocol/index.ts";
import { jetStreamErrorCode } from "../../transport/broker-error.ts";

/**
 * Whether the broker holds a stream of this name.
 * @throws the JetStream client's error if the broker does not say.
 */
export async function streamExists(manager: JetStreamManager, stream: string): Promise<boolean> {
  return await unlessMissing(async () => {
    await manager.streams.info(stream);
    return true;
  });
}

/**
 * Deletes a stream unless it is gone already; returns whether it existed.
 * @throws the JetStream client's error if the broker does not delete it.
 */
export async function deleteStream(
  { streams }: { readonly streams: Pick<JetStreamManager["streams"], "delete"> },
  name: string,
): Promise<boolean> {
  return await unlessMissing(() => streams.delete(name));
}

/** The result of `request`; false if the broker says that there is no such stream. */
async function unlessMissing(request: () => Promise<boolean>): Promise<boolean> {
  try {
    return await request();
  } catch (error) {
    if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.STREAM_NOT_FOUND) return false;
    throw error;
  }
}
