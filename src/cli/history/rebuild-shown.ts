import type { Rebuild } from "../../history/fork/rebuild.ts";
import type { HistorySource } from "../../history/source.ts";
import { formatCount } from "../output/amounts.ts";
import type { Output } from "../output/output.ts";

/** Rebuilds shards of a history, with a line of progress for each. */
export async function rebuildShown(
  output: Output,
  source: HistorySource,
  signal: AbortSignal,
): Promise<Rebuild> {
  // Loaded here, so that other commands start faster.
  const { rebuildFrom } = await import("../../history/fork/rebuild.ts");
  return async (shard, at) => {
    const show = (records: number): string => formatCount(records, "record");
    const progress = output.progress(`rebuilding shard ${shard}`, show);
    const rebuild = rebuildFrom(source, signal, (_shard, done, total) =>
      progress.update(done, total),
    );
    return await rebuild(shard, at).finally(() => progress.clear());
  };
}
