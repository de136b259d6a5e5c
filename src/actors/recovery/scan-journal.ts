import { randomUUID } from "node:crypto";
import {
  AckPolicy,
  DeliverPolicy,
  type JetStreamClient,
  type JetStreamManager,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { fromBrokerError } from "../../transport/broker-error.ts";

/** Records asked for at one time; only their subjects travel. */
const BATCH_RECORDS = 1_000;

/** How long one request for records may take. */
const BATCH_MS = 5_000;

/** How long the broker keeps the place of a reader that has gone. */
const CONSUMER_MS = 30_000;

/**
 * Tells the sequence and subject of every record that a stream gives, from one sequence to another.
 * Records that it cannot give are passed over.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE, NO_JETSTREAM, DENIED if the broker does not answer.
 */
export async function scanJournal(
  {
    manager,
    client,
    stream,
  }: {
    readonly manager: JetStreamManager;
    readonly client: JetStreamClient;
    readonly stream: string;
  },
  { from, to }: { readonly from: number; readonly to: number },
  onRecord: (seq: number, subject: string) => void,
): Promise<void> {
  if (to < from) return;
  try {
    const name = `recover-${randomUUID()}`;
    await manager.consumers.add(stream, {
      name,
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: from,
      headers_only: true,
      inactive_threshold: nanos(CONSUMER_MS),
      mem_storage: true,
      num_replicas: 1,
    });
    const consumer = await client.consumers.get(stream, name);
    for (let told = from - 1, pending = 1; told < to && pending > 0; ) {
      const before = told;
      const batch = await consumer.fetch({ max_messages: BATCH_RECORDS, expires: BATCH_MS });
      for await (const { seq, subject, info } of batch) {
        if (seq <= to) onRecord(seq, subject);
        told = seq;
        pending = info.pending;
        if (seq >= to || pending === 0) break;
      }
      // What the consumer still counts it cannot give.
      if (told === before) return;
    }
  } catch (error) {
    throw fromBrokerError(error, `looking through the journal ${stream}`, { stream });
  }
}
