import {
  DiscardPolicy,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
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
 * Creates a stream in files that refuses what is beyond its limits, unless it exists. An existing one is not requested
 * again: a broker that has less storage than it has promised would refuse that.
 * @throws the JetStream client's error if the broker does not create it.
 */
export async function ensureFileStream(
  manager: JetStreamManager,
  config: Pick<StreamConfig, "name" | "subjects" | "num_replicas"> & Partial<StreamConfig>,
): Promise<void> {
  if (await streamExists(manager, config.name)) return;
  await manager.streams.add({
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.New,
    allow_direct: true,
    ...config,
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
