import {
  AckPolicy,
  type ConsumerConfig,
  type JetStreamClient,
  type JetStreamManager,
} from "@nats-io/jetstream";
import { nanos, nuid } from "@nats-io/transport-node";

/** Messages per fetch; only their subjects and headers are sent. */
const BATCH_MESSAGES = 1_000;

/** Options of {@link scanStream}. */
export interface StreamScan {
  readonly manager: JetStreamManager;
  readonly client: JetStreamClient;
  readonly stream: string;
  /** The messages to scan: of a subject, or from a sequence on. */
  readonly start: Pick<
    Partial<ConsumerConfig>,
    "filter_subject" | "deliver_policy" | "opt_start_seq"
  >;
  /** How long to wait for a message; after that, those not delivered count as lost. */
  readonly graceMs: number;
}

/**
 * Reports sequence and subject of every message that a stream can deliver, in order and without payloads,
 * until `onMessage` returns false. Messages that it cannot deliver are skipped.
 * @throws the JetStream client's errors.
 */
export async function scanStream(
  { manager, client, stream, start, graceMs }: StreamScan,
  onMessage: (seq: number, subject: string) => boolean,
): Promise<void> {
  const info = await manager.consumers.add(stream, {
    ...start,
    // A named consumer needs no other permission than that of a journal's reader.
    name: `scan-${nuid.next()}`,
    headers_only: true,
    ack_policy: AckPolicy.None,
    inactive_threshold: nanos(2 * graceMs),
    mem_storage: true,
    num_replicas: 1,
  });
  try {
    const consumer = client.consumers.getConsumerFromInfo(info);
    for (let pending = info.num_pending, isProgress = true; pending > 0 && isProgress; ) {
      isProgress = false;
      const batch = await consumer.fetch({ max_messages: BATCH_MESSAGES, expires: graceMs });
      for await (const message of batch) {
        isProgress = true;
        pending = message.info.pending;
        if (!onMessage(message.seq, message.subject)) return;
        if (pending === 0) break;
      }
    }
  } finally {
    // If it cannot be deleted, for lack of a connection or a permission, it expires soon.
    await manager.consumers.delete(stream, info.name).catch(() => undefined);
  }
}
