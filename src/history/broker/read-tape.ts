import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  type JetStreamManager,
} from "@nats-io/jetstream";
import { type NatsConnection, nanos, nuid } from "@nats-io/transport-node";
import { brokerCall } from "../../actors/jetstream/broker-call.ts";
import { streamExists } from "../../actors/jetstream/streams.ts";
import { type JobSubjects, PserverError } from "../../protocol/index.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import type { StoredTapeMessage, TapeStart } from "../source.ts";

/** Messages that are asked for at one time; each has up to about 64 KiB. */
const FETCH_MESSAGES = 64;

/** How long to wait for a message that the stream has. */
const FETCH_MS = 5_000;

/** Dependencies of {@link readTapeMessages}. */
export interface ReadTapeDeps {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly subjects: JobSubjects;
  readonly shard: number;
}

/**
 * The messages of a shard's tape in the broker from `start` on, oldest first; none if the job has no tape.
 * @throws TIMEOUT, DENIED and the like; the reason of the signal.
 */
export async function* readTapeMessages(
  { connection, manager, subjects, shard }: ReadTapeDeps,
  start: TapeStart,
  signal: AbortSignal,
): AsyncGenerator<StoredTapeMessage, void, undefined> {
  const stream = subjects.tapeStream();
  const what = `reading the tape of shard ${shard}`;
  const info = await brokerCall(what, { shard }, async () => {
    if (!(await streamExists(manager, stream))) return undefined;
    return await manager.consumers.add(stream, {
      name: `tape-${nuid.next()}`,
      filter_subject: subjects.tape(shard),
      ...deliveryFrom(start),
      ack_policy: AckPolicy.None,
      inactive_threshold: nanos(60_000),
      mem_storage: true,
      num_replicas: 1,
    });
  });
  if (info === undefined) return;
  const consumer = openJetStream(connection).consumers.getConsumerFromInfo(info);
  try {
    let delivered = 0;
    for (let pending = info.num_pending; pending > 0; ) {
      signal.throwIfAborted();
      const wanted = Math.min(FETCH_MESSAGES, pending);
      const batch = await brokerCall(what, { shard }, () =>
        consumer.fetch({ max_messages: wanted, expires: FETCH_MS }),
      );
      // Taken at once: a batch that its reader lets wait would expire, and lose what had come.
      const messages: StoredTapeMessage[] = [];
      for await (const { info: delivery, data } of batch) {
        delivered += 1;
        if (delivery.deliverySequence !== delivered) throw lost(shard);
        pending = delivery.pending;
        const { streamSequence: seq, timestampNanos } = delivery;
        messages.push({ seq, timeMs: timestampNanos / 1e6, data });
      }
      if (messages.length === 0) throw silence(shard);
      yield* messages;
    }
  } finally {
    await manager.consumers.delete(stream, info.name).catch(() => undefined);
  }
}

function deliveryFrom(start: TapeStart): Partial<ConsumerConfig> {
  if (start.kind === "message") {
    return { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: start.seq };
  }
  if (start.timeMs <= 0) return { deliver_policy: DeliverPolicy.All };
  const time = new Date(Math.floor(start.timeMs)).toISOString();
  return { deliver_policy: DeliverPolicy.StartTime, opt_start_time: time };
}

function lost(shard: number): PserverError {
  return new PserverError("TIMEOUT", `tape of shard ${shard}: a message was lost on its way`, {
    shard,
  });
}

function silence(shard: number): PserverError {
  return new PserverError(
    "TIMEOUT",
    `tape of shard ${shard}: no message came within ${FETCH_MS} ms`,
    { shard },
  );
}
