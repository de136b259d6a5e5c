import {
  type ForgetRecord,
  LIVE_SESSIONS_MAX,
  type Position,
  type SessionsRecord,
  TRAINERS_PER_MESSAGE_MAX,
  type TrainerSession,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import { TRAINER_KEYS, trainerKey } from "./bucket-record.ts";
import type { LifecycleDeps } from "./service.ts";
import {
  hasLostLease,
  parseTrainer,
  raiseSwept,
  requireCounted,
  SWEPT,
  trainerRecord,
} from "./sessions.ts";

/** Result of {@link endSessions}. */
export interface EndedSessions {
  /** How many sessions of the job are live. */
  readonly live: number;
  /** Position of the last record that was appended to each journal. */
  readonly at: ReadonlyMap<number, Position>;
}

/** Result of a sweep. */
interface Sweep {
  /** For the journals; undefined if no session has been given yet. */
  readonly record: SessionsRecord | undefined;
  /**
   * Whether no host has ever given the trainer this session: its number had not been given when the
   * sweep began, or is another trainer's live session. Only for trainers that a shard remembered before
   * the sweep began.
   */
  readonly isInvented: (remembered: TrainerSession) => boolean;
  /** Removes the records of trainers whose last session has ended: nobody needs them any more. */
  readonly forget: () => Promise<void>;
}

/**
 * Tells these shards' journals which sessions have ended, so that they forget their trainers, and makes
 * them forget trainers whose sessions no host has given, since anybody can name a number.
 *
 * The shards are first asked for the trainers that they remember. Whoever is remembered by then had its
 * session, if it has one, before the sweep reads which numbers have been given; so no trainer that joins
 * meanwhile is forgotten.
 * @throws JOB_DAMAGED, before any journal is written, if the counter has fallen back.
 */
export async function endSessions(
  deps: LifecycleDeps,
  shards: readonly number[],
): Promise<EndedSessions> {
  const { owners } = deps;
  const remembered = new Map<number, readonly TrainerSession[]>();
  await mapConcurrently(shards, async (shard) => {
    const { trainers, toldUpTo } = await owners.trainers(shard);
    await requireCounted(deps, toldUpTo, `the journal of shard ${shard}`);
    remembered.set(shard, trainers);
  });
  const { record, isInvented, forget } = await sweepSessions(deps);
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

/** Compares the counter with every other record of the job that names a session; @throws JOB_DAMAGED. */
export async function checkCounter(deps: LifecycleDeps): Promise<void> {
  await requireCounted(deps, await SWEPT.read(deps), "the last sweep");
  const sessions = new Map<number, string>();
  await mapConcurrently(await deps.bucket.keys(TRAINER_KEYS), async (key) => {
    const known = await trainerRecord(key).read(deps);
    if (known !== undefined) sessions.set(known.session, key);
  });
  await requireLatestCounted(deps, sessions, 0);
}

/**
 * Finds which of all sessions that have been given have ended: those that were left or superseded, and
 * those whose lease is lost, which it ends.
 *
 * A session is a number first and a trainer's record later. So the number up to which it sweeps is
 * stored before it reads the records: a trainer that joins reads that number after its own record is
 * written, and takes another session if a sweep may have missed it.
 * @throws JOB_DAMAGED if the counter has fallen back: the sweep would take live sessions for ended ones.
 */
async function sweepSessions(deps: LifecycleDeps): Promise<Sweep> {
  const given = await deps.counter.last();
  if (given === 0) {
    await checkCounter(deps);
    const isInvented = inventedBy(await deps.counter.next(), new Map());
    return { record: undefined, isInvented, forget: () => Promise.resolve() };
  }
  await requireCounted(deps, await SWEPT.read(deps), "the last sweep");
  await raiseSwept(deps, given);
  /** The key of its trainer by each live session: a number is given once. */
  const live = new Map<number, string>();
  const ended: { readonly key: string; readonly revision: number }[] = [];
  await mapConcurrently(await deps.bucket.keys(TRAINER_KEYS), async (key) => {
    const stored = await deps.bucket.read(key);
    const known = parseTrainer(stored, key);
    if (stored === undefined || known === undefined) return;
    const hasEnded = known.ended || (known.session <= given && (await endLost(deps, key)));
    if (!hasEnded) live.set(known.session, key);
    else if (known.ended) ended.push({ key, revision: stored.revision });
  });
  const forget = async (): Promise<void> => {
    await mapConcurrently(ended, ({ key, revision }) => deps.bucket.remove(key, revision));
  };
  await requireLatestCounted(deps, live, given);
  const isInvented = inventedBy(await deps.counter.next(), live);
  return { record: toSessionsRecord(given, [...live.keys()]), isInvented, forget };
}

/** Checks the counter against the latest of these sessions, unless that is at most `given`. */
async function requireLatestCounted(
  deps: LifecycleDeps,
  sessions: ReadonlyMap<number, string>,
  given: number,
): Promise<void> {
  // There may be more sessions than a call can have arguments.
  let latest = 0;
  for (const session of sessions.keys()) latest = Math.max(latest, session);
  if (latest <= given) return;
  await requireCounted(deps, latest, `the record ${sessions.get(latest)}`);
}

/**
 * Tells which sessions no host has given to their trainers. `bound` must be taken from the counter after
 * the shards were asked, as a number for nobody: a majority of the brokers has stored it, so all numbers
 * given before are lower. A mere read of the counter may be older, if a broker answers that does not know
 * yet that it is no longer the leader.
 */
function inventedBy(bound: number, live: ReadonlyMap<number, string>): Sweep["isInvented"] {
  return ([trainer, session]) => {
    const key = live.get(session);
    return key === undefined ? session >= bound : key !== trainerKey(trainer);
  };
}

/** The sweep's record. If it cannot name all live sessions, it covers fewer: `upTo` is lower. */
function toSessionsRecord(given: number, live: readonly number[]): SessionsRecord {
  const sorted = live.filter((session) => session <= given).sort((a, b) => a - b);
  const beyond = sorted[LIVE_SESSIONS_MAX];
  const upTo = beyond === undefined ? given : beyond - 1;
  return { verb: "sessions", upTo, live: sorted.slice(0, LIVE_SESSIONS_MAX) };
}

/** Ends a trainer's session if its lease is lost; returns whether it has ended. */
async function endLost(deps: LifecycleDeps, key: string): Promise<boolean> {
  const { result } = await trainerRecord(key).change(deps, async (current) => {
    if (current === undefined || current.ended) return current;
    return (await hasLostLease(deps, key)) ? { ...current, ended: true } : current;
  });
  return result?.ended ?? true;
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
