import { parseJournalAck } from "../../../src/client/wire/wire.ts";
import { ensureError } from "../../../src/protocol/errors.ts";
import { REFUSAL_CODES } from "../../../src/protocol/jetstream-errors.ts";
import { JobSubjects } from "../../../src/protocol/subjects.ts";

const SUBJECTS = new JobSubjects("mnist");

/** What brokers answer to records: stored, refused for a time, refused for ever, or nothing we know. */
const ANSWERS: readonly string[] = [
  '{"stream":"PS_mnist_15","seq":900}',
  '{"stream":"PS_mnist_15_2","seq":1,"duplicate":true,"domain":"hub"}',
  refused(503, 10077, "maximum bytes exceeded"),
  refused(
    503,
    10077,
    "write /data/jetstream/$G/streams/PS_mnist_15/msgs/5.blk: no space left on device",
  ),
  refused(503, 10077, "no message cache"),
  refused(503, 10077, "write 5.blk: input/output error"),
  refused(503, 10077, `write /${"d/".repeat(300)}5.blk: no space left on device`),
  refused(500, 10047, "insufficient storage resources available"),
  refused(503, 10023, "insufficient resources"),
  refused(400, 10002, "resource limits exceeded for account"),
  refused(503, 10008, "JetStream system temporarily unavailable"),
  refused(400, 10054, "message size exceeds maximum allowed"),
  refused(400, 10071, "wrong last sequence: 7"),
  // The table's numbers, and then, by their statuses, numbers of none.
  ...Object.keys(REFUSAL_CODES).map((number) => refused(400, Number(number), "it said so")),
  refused(500, 10118, "stream is offline"),
  refused(500, 10041, "raft: not leader"),
  refused(500, 10009, "JetStream cluster can not handle request"),
  refused(503, 10163, "expected last sequence per subject temporarily unavailable"),
  refused(429, 10167, "too many requests"),
  refused(408, 0, "request timeout"),
  refused(499, 19_999, "of a newer broker"),
  refused(412, 10180, "min last sequence"),
  refused(0, 0, ""),
  '{"stream":"PS_other_15","seq":900}',
  '{"seq":900}',
  "+OK",
];

const SHORT_TEXT = 250;

function refused(code: number, errorCode: number, description: string): string {
  return JSON.stringify({ error: { code, err_code: errorCode, description }, stream: "", seq: 0 });
}

/** The broker's answers to journal records, and what a client makes of them. */
export function journalAckCases(): Readonly<Record<string, readonly object[]>> {
  return {
    acks: ANSWERS.map((json) => {
      try {
        const data = new TextEncoder().encode(json);
        const ack = parseJournalAck({ token: "", data, noResponders: false }, SUBJECTS);
        if (ack.kind !== "stored") {
          const { code, message } = ack.error;
          // C cuts long texts of a broker.
          const isShort = message.length < SHORT_TEXT;
          return { json, kind: ack.kind, code, ...(isShort && { text: message }) };
        }
        const { shard, position } = ack;
        return { json, kind: ack.kind, shard, generation: position.generation, seq: position.seq };
      } catch (error) {
        return { json, kind: "refused", code: ensureError(error).code };
      }
    }),
  };
}
