import {
  LIVE_SESSIONS_MAX,
  type SessionsRecord,
  type TrainerSession,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import { change } from "./compare-and-swap.ts";
import { checkCounter, requireCounted } from "./counted.ts";
import { TRAINER_KEYS, trainerKey } from "./keys.ts";
import { hasLostLease } from "./sessions.ts";
import type { Surroundings } from "./settings.ts";
import { raiseSwept, sweptUpTo } from "./swept.ts";
import { parseTrainer, toRecord } from "./trainer-record.ts";

/** What a sweep came to. */
export interface Sweep {
  /** For the journals; undefined if no session has been given yet. */
  readonly record: SessionsRecord | undefined;
  /**
   * Whether no host has ever given the trainer this session, for one that a shard remembered before the
   * sweep began: the number had not been given by then, or is another's that is live.
   */
  readonly isInvented: (remembered: TrainerSession) => boolean;
  /** Removes the records of trainers whose last session has ended: nobody needs them any more. */
  readonly forget: () => Promise<void>;
}

/**
 * Finds which sessions have ended, of all that have been given: those that were left or superseded,
 * and those whose lease is lost, which end by this.
 *
 * A session is a number first and a trainer's record later. So the number up to which it sweeps is
 * written down before it looks at the records: who joins looks there after its record is written, and
 * takes another number if a sweep may have missed it.
 * @throws JOB_DAMAGED if the counter has fallen back: by it, sessions that are live would count for none.
 */
export async function sweepSessions(around: Surroundings): Promise<Sweep> {
  const given = await around.counter.last();
  if (given === 0) {
    await checkCounter(around);
    const isInvented = isNobodys(await around.counter.next(), new Map());
    return { record: undefined, isInvented, forget: () => Promise.resolve() };
  }
  await requireCounted(around, await sweptUpTo(around), "the last sweep");
  await raiseSwept(around, given);
  /** The key of its trainer by each live session: a number is given once. */
  const live = new Map<number, string>();
  const ended: { readonly key: string; readonly revision: number }[] = [];
  await mapConcurrently(await around.records.keys(TRAINER_KEYS), async (key) => {
    const stored = await around.records.read(key);
    const known = parseTrainer(stored, key);
    if (stored === undefined || known === undefined) return;
    const isLeft = known.ended || (known.session <= given && (await endLost(around, key)));
    if (!isLeft) live.set(known.session, key);
    else if (known.ended) ended.push({ key, revision: stored.revision });
  });
  const forget = async (): Promise<void> => {
    await mapConcurrently(ended, ({ key, revision }) => around.records.remove(key, revision));
  };
  const latest = Math.max(0, ...live.keys());
  if (latest > given) await requireCounted(around, latest, `the record ${live.get(latest)}`);
  const isInvented = isNobodys(await around.counter.next(), live);
  return { record: toRecordOf(given, [...live.keys()]), isInvented, forget };
}

/**
 * Which sessions no host has given to their trainers. `bound` is a number for nobody, taken from the counter
 * after the shards were asked: a majority of the brokers has stored it, so what was given before is lower.
 * What is only read may be older, from a broker that does not know yet that it leads no more.
 */
function isNobodys(bound: number, live: ReadonlyMap<number, string>): Sweep["isInvented"] {
  return ([trainer, session]) => {
    const holder = live.get(session);
    return holder === undefined ? session >= bound : holder !== trainerKey(trainer);
  };
}

/** The sweep's record; where a record cannot name all that are live it says nothing of the last ones. */
function toRecordOf(given: number, live: readonly number[]): SessionsRecord {
  const sorted = live.filter((session) => session <= given).sort((a, b) => a - b);
  const beyond = sorted[LIVE_SESSIONS_MAX];
  const upTo = beyond === undefined ? given : beyond - 1;
  return { verb: "sessions", upTo, live: sorted.slice(0, LIVE_SESSIONS_MAX) };
}

/** Ends a trainer's session if its lease is lost; whether it has ended then. */
async function endLost(around: Surroundings, key: string): Promise<boolean> {
  const { records, pause } = around;
  const { result } = await change({
    records,
    key,
    pause,
    decide: async (current) => {
      const known = parseTrainer(current, key);
      if (known === undefined || known.ended) return { result: true };
      if (!(await hasLostLease(around, key))) return { result: false };
      return { write: toRecord({ ...known, ended: true }), result: true };
    },
  });
  return result;
}
