import type { Shard } from "../../actors/fold/shard.ts";
import { JobSubjects, type Position, PserverError } from "../../protocol/index.ts";
import { historyLost } from "../history-lost.ts";
import { basesOf, type Inventory, newestOf, oldestOf } from "../reach.ts";
import { foldRecords } from "../replay/fold-records.ts";
import { shardAt } from "../replay/replay-shard.ts";
import type { ShardHistory } from "../source.ts";

/**
 * The position of the record that closed a step in a shard. Folds from the newest snapshot before it.
 * @throws HISTORY_LOST if it closed before what is kept, BAD_VALUE if it has not closed; what the source
 * throws; the reason of the signal.
 */
export async function findStep(
  history: ShardHistory,
  inventory: Inventory,
  job: string,
  step: number,
  signal: AbortSignal,
): Promise<Position> {
  const subjects = new JobSubjects(job);
  const newest = newestOf(inventory);
  const bases = basesOf(inventory).filter(({ generation }) => generation === newest?.generation);
  for (const base of bases.reverse()) {
    const shard = await shardAt(history, base, subjects);
    if (shard.steps.closed >= step) continue;
    const { generation } = base;
    const to = { generation, seq: newest?.seq ?? shard.seq };
    return { generation, seq: await foldUntilClosed(shard, history, to, step, signal) };
  }
  throw historyLost(inventory.shard, `step:${step}`, oldestOf(inventory));
}

async function foldUntilClosed(
  shard: Shard,
  history: ShardHistory,
  to: Position,
  step: number,
  signal: AbortSignal,
): Promise<number> {
  const reached = new AbortController();
  let closedAt: number | undefined;
  const after = (): void => {
    if (closedAt !== undefined || shard.steps.closed < step) return;
    closedAt = shard.seq;
    reached.abort();
  };
  const either = AbortSignal.any([signal, reached.signal]);
  await foldRecords(shard, history, to, { signal: either, visitor: { after } }).catch(
    (error: unknown) => {
      if (closedAt === undefined) throw error;
    },
  );
  if (closedAt !== undefined) return closedAt;
  const text = `point step:${step}: it has not closed in shard ${history.shard}; the last one is ${shard.steps.closed}`;
  throw new PserverError("BAD_VALUE", text, { expected: shard.steps.closed, received: step });
}
