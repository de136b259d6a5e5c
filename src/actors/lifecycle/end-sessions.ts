import {
  type ForgetRecord,
  type Position,
  TRAINERS_PER_MESSAGE_MAX,
  type TrainerSession,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import { requireCounted } from "./counted.ts";
import { sweepSessions } from "./session-sweep.ts";
import type { Surroundings } from "./settings.ts";

/** What {@link endSessions} did. */
export interface EndedSessions {
  /** How many sessions of the job are live. */
  readonly live: number;
  /** Where each journal holds the last record of it. */
  readonly at: ReadonlyMap<number, Position>;
}

/**
 * Tells these shards' journals which sessions have ended, so that they forget their trainers, and has
 * them forget trainers whose sessions no host has given: anybody can name a number.
 *
 * The shards are asked first whom they remember. Who is remembered by then had its session, if it has
 * one, before the sweep reads which numbers have been given; so none that joins meanwhile is forgotten.
 * @throws JOB_DAMAGED, and tells nobody anything, if the counter has fallen back.
 */
export async function endSessions(
  around: Surroundings,
  shards: readonly number[],
): Promise<EndedSessions> {
  const { owners } = around;
  const remembered = new Map<number, readonly TrainerSession[]>();
  await mapConcurrently(shards, async (shard) => {
    const { trainers, toldUpTo } = await owners.trainers(shard);
    await requireCounted(around, toldUpTo, `the journal of shard ${shard}`);
    remembered.set(shard, trainers);
  });
  const { record, isInvented, forget } = await sweepSessions(around);
  const at = new Map<number, Position>();
  await mapConcurrently([...remembered], async ([shard, trainers]) => {
    if (record !== undefined) at.set(shard, await owners.append(shard, record));
    for (const forgotten of forgetRecords(trainers.filter(isInvented))) {
      at.set(shard, await owners.append(shard, forgotten));
    }
  });
  await forget();
  return { live: record?.live.length ?? 0, at };
}

/** As many records as it takes to name these trainers. */
function forgetRecords(trainers: readonly TrainerSession[]): ForgetRecord[] {
  const records: ForgetRecord[] = [];
  for (let from = 0; from < trainers.length; from += TRAINERS_PER_MESSAGE_MAX) {
    const some = trainers.slice(from, from + TRAINERS_PER_MESSAGE_MAX);
    records.push({ verb: "forget", trainers: some });
  }
  return records;
}
