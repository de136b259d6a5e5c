import { DeliverPolicy, type JetStreamClient, type JetStreamManager } from "@nats-io/jetstream";
import { fromBrokerError } from "../../transport/broker-error.ts";
import { scanStream } from "../jetstream/scan-stream.ts";

/** Time limit without a record. */
const SILENCE_MS = 5_000;

/**
 * Calls `onRecord` with the sequence and subject of every record that a stream delivers between two
 * sequences. Skips records that it cannot deliver.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE, NO_JETSTREAM, DENIED if the broker does not answer.
 */
export async function scanJournal(
  journal: {
    readonly manager: JetStreamManager;
    readonly client: JetStreamClient;
    readonly stream: string;
  },
  { from, to }: { readonly from: number; readonly to: number },
  onRecord: (seq: number, subject: string) => void,
): Promise<void> {
  if (to < from) return;
  const start = { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: from };
  try {
    await scanStream({ ...journal, start, graceMs: SILENCE_MS }, (seq, subject) => {
      if (seq <= to) onRecord(seq, subject);
      return seq < to;
    });
  } catch (error) {
    const { stream } = journal;
    throw fromBrokerError(error, `looking through the journal ${stream}`, { stream });
  }
}
