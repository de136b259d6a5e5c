import {
  AckPolicy,
  type ConsumerConfig,
  type JetStreamClient,
  type JetStreamManager,
} from "@nats-io/jetstream";
import { nanos, nuid } from "@nats-io/transport-node";

/** Messages asked for at one time; only their subjects and headers travel. */
const BATCH_MESSAGES = 1_000;

/** A stream to look through, and where from. */
export interface StreamScan {
  readonly manager: JetStreamManager;
  readonly client: JetStreamClient;
  readonly stream: string;
  /** Which messages: of a subject, or from a sequence on. */
  readonly start: Pick<
    Partial<ConsumerConfig>,
    "filter_subject" | "deliver_policy" | "opt_start_seq"
  >;
  /** How long the broker may show no message; then what it has not shown counts as lost. */
  readonly patienceMs: number;
}

/**
 * Tells sequence and subject of every message that a stream can give, in order and without payloads,
 * until `onMessage` answers false. Messages that it cannot give are passed over.
 * @throws the JetStream client's errors.
 */
export async function scanStream(
  { manager, client, stream, start, patienceMs }: StreamScan,
  onMessage: (seq: number, subject: string) => boolean,
): Promise<void> {
  const info = await manager.consumers.add(stream, {
    ...start,
    // With a name its making needs no other permission than that of a journal's reader.
    name: `scan-${nuid.next()}`,
    headers_only: true,
    ack_policy: AckPolicy.None,
    inactive_threshold: nanos(2 * patienceMs),
    mem_storage: true,
    num_replicas: 1,
  });
  try {
    const consumer = client.consumers.getConsumerFromInfo(info);
    for (let pending = info.num_pending, isProgress = true; pending > 0 && isProgress; ) {
      isProgress = false;
      const batch = await consumer.fetch({ max_messages: BATCH_MESSAGES, expires: patienceMs });
      for await (const message of batch) {
        isProgress = true;
        pending = message.info.pending;
        if (!onMessage(message.seq, message.subject)) return;
        if (pending === 0) break;
      }
    }
  } finally {
    // One that cannot be deleted, for want of a connection or a permission, goes by itself soon.
    await manager.consumers.delete(stream, info.name).catch(() => undefined);
  }
}
