import type { ResolvedPoint } from "../../history/points/point.ts";
import type { ReplayedModel } from "../../history/replay/replayed-model.ts";
import type { Replayer } from "../../history/replay/replayer.ts";
import type { CliContext } from "../context.ts";
import { formatRecords } from "../output/amounts.ts";
import type { Output } from "../output/output.ts";
import type { OpenedHistory } from "./with-history.ts";

/** Rebuilds the model at a point, and shows the progress. */
export type Replay = (point: Pick<ResolvedPoint, "cut">) => Promise<ReplayedModel>;

/**
 * Runs `use` with threads that rebuild shards; they end with it.
 * @throws what `use` throws.
 */
export async function withPool<T>(
  { signal }: CliContext,
  { source, place }: OpenedHistory,
  use: (pool: Replayer) => Promise<T>,
): Promise<T> {
  // Loaded here, so that other commands start faster.
  const { ThreadPool } = await import("../../history/replay/thread-pool.ts");
  const pool = ThreadPool.start(place, source.shards, signal);
  try {
    return await use(pool);
  } finally {
    await pool.close();
  }
}

/**
 * Runs `use` with replays on threads; the models that it gets are freed when it ends.
 * @throws what `use` throws; a replay throws as `replayModel` does.
 */
export async function withReplays<T>(
  context: CliContext,
  output: Output,
  history: OpenedHistory,
  use: (replay: Replay) => Promise<T>,
): Promise<T> {
  const { replayModel } = await import("../../history/replay/replay-model.ts");
  return await withPool(context, history, (pool) =>
    use(({ cut }) =>
      output
        .progress("replaying", formatRecords)
        .reported((onProgress) => replayModel(pool, cut, { onProgress })),
    ),
  );
}
