import type { JetStreamManager } from "@nats-io/jetstream";
import { JETSTREAM_ERRORS } from "../../protocol/index.ts";
import { jetStreamErrorCode } from "../../transport/broker-error.ts";

/**
 * Whether the broker holds a stream of this name.
 * @throws the JetStream client's error if the broker does not say.
 */
export async function streamExists(manager: JetStreamManager, stream: string): Promise<boolean> {
  try {
    await manager.streams.info(stream);
    return true;
  } catch (error) {
    if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.STREAM_NOT_FOUND) return false;
    throw error;
  }
}
