import { AckPolicy, DeliverPolicy, type JetStreamManager } from "@nats-io/jetstream";
import { nanos, nuid } from "@nats-io/transport-node";
import { brokerCall } from "../../actors/jetstream/broker-call.ts";

/** How long the broker keeps the consumer if it cannot be deleted. */
const CONSUMER_MS = 5_000;

/**
 * Sequence of the last message of a stream that was stored at or before `timeMs`; one less than the first
 * sequence if all were stored later. The broker searches; no message is read.
 * @throws TIMEOUT, DENIED, JETSTREAM_UNAVAILABLE and the like.
 */
export async function seqAt(
  manager: JetStreamManager,
  stream: string,
  timeMs: number,
): Promise<number> {
  return await brokerCall(`looking for a time in the stream ${stream}`, { stream }, async () => {
    const { name, delivered } = await manager.consumers.add(stream, {
      // A named consumer needs no other permission than that of a journal's reader.
      name: `time-${nuid.next()}`,
      deliver_policy: DeliverPolicy.StartTime,
      opt_start_time: timeText(timeMs),
      headers_only: true,
      ack_policy: AckPolicy.None,
      inactive_threshold: nanos(CONSUMER_MS),
      mem_storage: true,
      num_replicas: 1,
    });
    // If it cannot be deleted, for lack of a connection or a permission, it expires soon.
    await manager.consumers.delete(stream, name).catch(() => undefined);
    return delivered.stream_seq;
  });
}

/** The first nanosecond after `timeMs`, as the broker reads times. */
function timeText(timeMs: number): string {
  const wholeMs = Math.floor(timeMs);
  const nanoseconds = Math.round((timeMs - wholeMs) * 1e6) + 1;
  const seconds = new Date(Math.floor(wholeMs / 1000) * 1000).toISOString().slice(0, -5);
  const fraction = (wholeMs - Math.floor(wholeMs / 1000) * 1000) * 1e6 + nanoseconds;
  return `${seconds}.${String(fraction).padStart(9, "0")}Z`;
}
