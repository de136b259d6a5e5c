import {
  AckPolicy,
  type Consumer,
  DeliverPolicy,
  type JetStreamClient,
  type JetStreamManager,
} from "@nats-io/jetstream";
import { nanos, nuid, TimeoutError } from "@nats-io/transport-node";

/** Messages asked for at a time. */
const BATCH_MESSAGES = 4_096;

/** The messages to read, of a stream that keeps the last one on each subject. */
export interface Changes {
  readonly manager: JetStreamManager;
  readonly client: JetStreamClient;
  readonly stream: string;
  /** Subjects with a wildcard. */
  readonly filter: string;
  readonly afterSeq: number;
  /** How long the broker may send nothing. */
  readonly timeoutMs: number;
}

type OnMessage = (subject: string, seq: number, text: string) => void;

/**
 * Reports the messages that were stored after a sequence, in order, at least up to the last one that was stored when
 * the call began; returns the sequence up to which all have been reported. None may be removed meanwhile.
 * @throws the JetStream client's errors.
 */
export async function readChanges(changes: Changes, onMessage: OnMessage): Promise<number> {
  const { manager, stream, filter, afterSeq } = changes;
  // Asked of the stream, whose leader answers; a consumer may run on a replica that lags.
  const { state } = await manager.streams.info(stream);
  if (state.last_seq <= afterSeq) return afterSeq;
  // Searches all subjects, so it is asked only if anything was stored at all.
  const last = await manager.streams.getMessage(stream, { last_by_subj: filter });
  if (last === null || last.seq <= afterSeq) return state.last_seq;
  return Math.max(state.last_seq, await readUpTo(last.seq, changes, onMessage));
}

async function readUpTo(lastSeq: number, changes: Changes, onMessage: OnMessage): Promise<number> {
  const { manager, client, stream, filter, afterSeq, timeoutMs } = changes;
  const info = await manager.consumers.add(stream, {
    name: `changes-${nuid.next()}`,
    filter_subject: filter,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: afterSeq + 1,
    ack_policy: AckPolicy.None,
    inactive_threshold: nanos(2 * timeoutMs),
    mem_storage: true,
    num_replicas: 1,
  });
  try {
    const consumer = client.consumers.getConsumerFromInfo(info);
    return await fetchUpTo(lastSeq, consumer, changes, onMessage);
  } finally {
    // If it cannot be deleted, for lack of a connection or a permission, it expires soon.
    await manager.consumers.delete(stream, info.name).catch(() => undefined);
  }
}

async function fetchUpTo(
  lastSeq: number,
  consumer: Consumer,
  { afterSeq, timeoutMs }: Changes,
  onMessage: OnMessage,
): Promise<number> {
  let readSeq = afterSeq;
  while (readSeq < lastSeq) {
    const before = readSeq;
    const batch = await consumer.fetch({ max_messages: BATCH_MESSAGES, expires: timeoutMs });
    for await (const message of batch) {
      readSeq = message.seq;
      onMessage(message.subject, message.seq, message.string());
      if (message.info.pending === 0) break;
    }
    if (readSeq === before) throw new TimeoutError();
  }
  return readSeq;
}
