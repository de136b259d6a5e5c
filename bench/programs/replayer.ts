import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { openHistory } from "../../src/history/open-journal.ts";
import { replayModel } from "../../src/history/replay/replayer.ts";
import { ThreadPool } from "../../src/history/replay/thread-pool.ts";
import { newestOf, takeInventory } from "../../src/history/source.ts";
import { JobSubjects, type Position } from "../../src/protocol/index.ts";
import { serveAgent } from "../agent.ts";

/**
 * Bytes that a consumer requests ahead, as a replay does; the broker ends a connection that has
 * much more waiting.
 */
const AHEAD_BYTES = 16 * 1024 ** 2;

/** A job whose journals are read. */
export interface ReplayedJob {
  readonly url: string;
  readonly job: string;
}

/** Bytes and milliseconds of one reading of all journals. */
export interface ReadTime {
  readonly bytes: number;
  readonly elapsedMs: number;
}

/** Reads the journals of a job: with nats.js alone, and as a replay on threads. */
const commands = {
  /** Reads all records through an ordered consumer for each journal, all at the same time. */
  async raw({ url, job }: ReplayedJob): Promise<ReadTime> {
    const ends = await endsOf({ url, job });
    const connection = await connect({ servers: [url] });
    const startMs = performance.now();
    const read = async ({ generation, seq }: Position, shard: number): Promise<number> => {
      const stream = new JobSubjects(job).journalStream(shard, generation);
      const consumer = await jetstream(connection).consumers.get(stream);
      let bytes = 0;
      for await (const message of await consumer.consume({ max_bytes: AHEAD_BYTES })) {
        bytes += message.data.length;
        if (message.seq >= seq) break;
      }
      return bytes;
    };
    const bytes = await Promise.all(ends.map(read));
    const elapsedMs = performance.now() - startMs;
    await connection.close();
    return { bytes: bytes.reduce((sum, each) => sum + each, 0), elapsedMs };
  },

  /**
   * Rebuilds the model at the end of the journals, from their first records, on threads that the
   * first call starts.
   */
  async replay({ url, job }: ReplayedJob): Promise<{ elapsedMs: number }> {
    const cut = await endsOf({ url, job });
    const { signal } = new AbortController();
    const connection = { servers: [url], timeoutMs: 10_000 };
    pool ??= ThreadPool.start({ kind: "broker", connection, job }, cut.length, signal);
    const startMs = performance.now();
    const model = await replayModel(pool, cut);
    const elapsedMs = performance.now() - startMs;
    await model.free();
    return { elapsedMs };
  },
};

let pool: ThreadPool | undefined;

export type Replayer = typeof commands;

/** Returns the last record of each journal. */
async function endsOf({ url, job }: ReplayedJob): Promise<Position[]> {
  const connection = { servers: [url], timeoutMs: 10_000 };
  const source = await openHistory({ kind: "broker", connection, job });
  const numbers = Array.from({ length: source.shards }, (_, shard) => shard);
  const ends = await Promise.all(
    numbers.map(async (shard) => newestOf(await takeInventory(source.shard(shard)))),
  );
  await source.close();
  return ends.map((end) => end ?? { generation: 1, seq: 0 });
}

serveAgent(commands);
