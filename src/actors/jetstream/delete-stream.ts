import type { JetStreamManager } from "@nats-io/jetstream";
import { JETSTREAM_ERRORS } from "../../protocol/index.ts";
import { jetStreamErrorCode } from "../../transport/broker-error.ts";

/**
 * Deletes a stream unless it is gone already; whether it was there.
 * @throws the JetStream client's error if the broker does not delete it.
 */
export async function deleteStream(
  { streams }: { readonly streams: Pick<JetStreamManager["streams"], "delete"> },
  name: string,
): Promise<boolean> {
  try {
    return await streams.delete(name);
  } catch (error) {
    if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.STREAM_NOT_FOUND) return false;
    throw error;
  }
}
