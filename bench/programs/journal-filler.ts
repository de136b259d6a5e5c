import { type JetStreamClient, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { decodeMessage, encodeMessage, JobSubjects } from "../../src/protocol/index.ts";
import { serveAgent } from "../agent.ts";
import { WINDOW_BYTES } from "../window.ts";

/** How the journals of a job are filled. */
export interface Filling {
  readonly url: string;
  readonly job: string;
  readonly shards: number;
  /** Updates to write to each journal. */
  readonly records: number;
}

/** Records in flight at one time at most. */
const RECORDS_MAX = 1024;

/** Writes updates faster than a trainer, which waits for the outcome of each. */
const commands = {
  /** Repeats the last update of each journal, as another session of its trainer. Returns the bytes written. */
  async fill({ url, job, shards, records }: Filling): Promise<number> {
    const connection = await connect({ servers: [url], timeout: 30_000 });
    const manager = await jetstreamManager(connection);
    const subjects = new JobSubjects(job);
    const client = jetstream(connection, { timeout: 60_000 });
    const writers = Array.from({ length: shards }, async (_, shard) => {
      const stream = subjects.journalStream(shard, 1);
      const { state } = await manager.streams.info(stream);
      const last = await manager.streams.getMessage(stream, { seq: state.last_seq });
      if (last === null) throw new Error(`shard ${shard}: no update to repeat`);
      return await repeat(client, last.subject, last.data, records);
    });
    const written = await Promise.all(writers);
    await connection.close();
    return written.reduce((sum, each) => sum + each, 0);
  },
};

export type JournalFiller = typeof commands;

async function repeat(
  client: JetStreamClient,
  subject: string,
  update: Uint8Array,
  records: number,
): Promise<number> {
  const { fields, data } = decodeMessage(update);
  const session = Number(fields["session"]) + 1;
  const window = Math.max(1, Math.min(RECORDS_MAX, Math.floor(WINDOW_BYTES / update.length)));
  const acks = new Set<Promise<unknown>>();
  let bytes = 0;
  for (let n = 1; n <= records; n++) {
    while (acks.size >= window) await Promise.race(acks);
    const record = encodeMessage({ ...fields, session, n, done: n - 1, reply: "" }, data);
    const ack = client.publish(subject, record).finally(() => acks.delete(ack));
    acks.add(ack);
    bytes += record.length;
  }
  await Promise.all(acks);
  return bytes;
}

serveAgent(commands);
