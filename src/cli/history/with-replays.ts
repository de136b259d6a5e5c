import type { ResolvedPoint } from "../../history/points/point.ts";
import type { ReplayedModel } from "../../history/replay/replayed-model.ts";
import type { CliContext } from "../context.ts";
import { formatCount } from "../output/amounts.ts";
import type { Output } from "../output/output.ts";
import type { OpenedHistory } from "./with-history.ts";

/** Rebuilds the model at a point, and shows the progress. */
export type Replay = (point: ResolvedPoint) => Promise<ReplayedModel>;

/**
 * Runs `use` with replays on threads; the models that it gets are freed when it ends.
 * @throws what `use` throws; a replay throws as `replayModel` does.
 */
export async function withReplays<T>(
  { signal }: CliContext,
  output: Output,
  { source, place }: OpenedHistory,
  use: (replay: Replay) => Promise<T>,
): Promise<T> {
  // Loaded here, so that other commands start faster.
  const { ThreadPool } = await import("../../history/replay/thread-pool.ts");
  const { replayModel } = await import("../../history/replay/replay-model.ts");
  const pool = ThreadPool.start(place, source.shards, signal);
  try {
    return await use(async ({ cut }) => {
      const progress = output.progress("replaying", (records) => formatCount(records, "record"));
      const onProgress = (done: number, total: number): void => progress.update(done, total);
      return await replayModel(pool, cut, { onProgress }).finally(() => progress.clear());
    });
  } finally {
    await pool.close();
  }
}
