import type { Rebuild } from "../../history/fork/rebuild.ts";
import type { HistorySource } from "../../history/source.ts";
import { formatRecords } from "../output/amounts.ts";
import type { Output } from "../output/output.ts";

/** Rebuilds shards of a history, with a line of progress for each. */
export async function rebuildShown(
  output: Output,
  source: HistorySource,
  signal: AbortSignal,
): Promise<Rebuild> {
  // Loaded here, so that other commands start faster.
  const { rebuildFrom } = await import("../../history/fork/rebuild.ts");
  return (shard, at) =>
    output.progress(`rebuilding shard ${shard}`, formatRecords).reported((onProgress) => {
      const rebuild = rebuildFrom(source, signal, (_, done, total) => onProgress(done, total));
      return rebuild(shard, at);
    });
}
