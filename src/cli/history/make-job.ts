import type { NatsConnection } from "@nats-io/transport-node";
import type { Shard } from "../../actors/fold/shard.ts";
import type { ForkedJob } from "../../history/continue/fork-job.ts";
import type { KnownSettings } from "../../history/continue/new-job.ts";
import type { Cut } from "../../history/points.ts";
import { PserverError, visible } from "../../protocol/errors.ts";
import { JobSubjects } from "../../protocol/subjects.ts";
import type { CliContext } from "../context.ts";
import { STORE_TIMEOUT_MS, withStore } from "../open-job.ts";
import type { ConnectionFlags } from "../options/connection-options.ts";
import type { HistoryFlags } from "../options/history-options.ts";
import { formatBytes, formatCount, formatRecords } from "../output/amounts.ts";
import type { Output } from "../output/output.ts";
import { type OpenedHistory, rebuildWithProgress, withPool } from "./with-history.ts";

/** The job to make: from a cut of a history, at the broker that the flags name. */
export interface JobToMake {
  readonly history: OpenedHistory;
  readonly cut: Cut;
  readonly as: string;
  /** Number of its shards; undefined for as many as the other job has. */
  readonly shards: number | undefined;
  /** Settings in place of those of the other job. */
  readonly settings?: KnownSettings;
  readonly flags: ConnectionFlags & Pick<HistoryFlags, "timeout">;
}

/** Makes the state with which a shard of the new job begins. */
type MakeShard = (shard: number) => Promise<Shard>;

/**
 * Makes a job from the state of another one, shard by shard, or with all blocks placed anew on another number of
 * shards, for which the whole model is held in memory.
 * @throws as `forkJob`; TOO_LARGE if the shards could not hold the model.
 */
export async function makeJob(
  context: CliContext,
  output: Output,
  { history, cut, as, shards, settings, flags }: JobToMake,
): Promise<ForkedJob> {
  // Loaded here, so that other commands start faster.
  const { forkJob } = await import("../../history/continue/fork-job.ts");
  const { knownSettings } = await import("../../history/continue/new-job.ts");
  const { source } = history;
  const { signal } = context;
  const make = (connection: NatsConnection, host: string) => async (makeShard: MakeShard) =>
    await forkJob({
      ...{ connection, host, job: as, of: source, at: cut, makeShard, signal },
      shards: shards ?? source.shards,
      known: { ...(await knownSettings(connection, source)), ...settings },
    });
  const store = { ...flags, job: as, timeout: flags.timeout ?? STORE_TIMEOUT_MS };
  return await withStore(context, store, async (connection, host) => {
    if (shards !== undefined && shards !== source.shards) {
      const placed = { history, cut, as, shards };
      return await withPlacedShards(context, output, placed, make(connection, host));
    }
    const rebuild = await rebuildWithProgress(output, source, signal);
    return await make(
      connection,
      host,
    )(async (shard) => {
      const at = cut[shard];
      if (at === undefined) throw new PserverError("INTERNAL", `no position of shard ${shard}`);
      return await rebuild(shard, at);
    });
  });
}

/** Replays all shards, places their blocks on another number of shards, and calls `use` with what makes each of these. */
async function withPlacedShards(
  context: CliContext,
  output: Output,
  { history, cut, as, shards }: Pick<JobToMake, "history" | "cut" | "as"> & { shards: number },
  use: (makeShard: MakeShard) => Promise<ForkedJob>,
): Promise<ForkedJob> {
  const { replayModel } = await import("../../history/replay/replayer.ts");
  const { PlacedShards } = await import("../../history/continue/place-anew.ts");
  const { synchronization } = history.source;
  return await withPool(context, history, async (pool) => {
    const model = await output
      .progress("replaying", formatRecords)
      .reported((onProgress) => replayModel(pool, cut, { onProgress }));
    const job = { subjects: new JobSubjects(as), shards, synchronization };
    const placed = await PlacedShards.plan(model.shards, job);
    const made = await output.progress("placing blocks").during(use((shard) => placed.make(shard)));
    return { ...made, openBlocks: placed.openBlocks };
  });
}

/** Says what was made, and what of the other job was left out. */
export function describeMade(
  output: Output,
  { job, parameters, bytes, unfinished, openBlocks }: ForkedJob,
): void {
  const size = `${formatCount(parameters, "parameter")}, ${formatBytes(bytes)}`;
  output.message(`made job ${job}: ${size}; serve it with: pserver host --job ${job}`);
  if (unfinished.length > 0) {
    const names = unfinished.map(visible).join(", ");
    output.warning(`not initialized at that point, and so not in the job: ${names}`);
  }
  if (openBlocks > 0) {
    const blocks = formatCount(openBlocks, "block");
    output.warning(`gradients of a step that had not closed were left out, in ${blocks}`);
  }
}
