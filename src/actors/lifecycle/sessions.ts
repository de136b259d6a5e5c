import {
  busy,
  type Fields,
  integerField,
  type JoinReply,
  PserverError,
  parseJoinRequest,
  parseSessionRequest,
  quoteName,
} from "../../protocol/index.ts";
import type { LeaseValue } from "../leases/leases.ts";
import { change } from "./compare-and-swap.ts";
import { requireCounted } from "./counted.ts";
import { trainerKey } from "./keys.ts";
import { removeMembers } from "./members.ts";
import type { Surroundings } from "./settings.ts";
import { sweptUpTo } from "./swept.ts";
import { parseTrainer, type TrainerRecord, toRecord } from "./trainer-record.ts";

const LEASE_TRIES_MAX = 8;
const SWEPT_TRIES_MAX = 8;

/**
 * Starts a session, or finds the one that this very process has started already. Earlier ones of the
 * trainer keep step no longer.
 * @throws SUPERSEDED if a newer one has joined meanwhile, JOB_DAMAGED if the counter of sessions has fallen back.
 */
export async function join(around: Surroundings, trainer: string, fields: Fields): Promise<Fields> {
  const { token } = parseJoinRequest(fields);
  const known = sameLife(await readTrainer(around, trainer), token);
  const session = known?.session ?? (await startSession(around, trainer, token));
  await holdLease(around, trainer, session);
  await removeMembers(around, [{ trainer, session: session - 1 }]);
  const { shards, leaseMs, journal, synchronization } = around.job;
  const reply: JoinReply = {
    session,
    shards,
    leaseMs,
    journal,
    synchronization,
    maxPayloadBytes: around.maxPayloadBytes,
  };
  return { ...reply };
}

/** Makes the trainer's lease last; one that ran out is taken again. */
export async function renew(
  around: Surroundings,
  trainer: string,
  fields: Fields,
): Promise<Fields> {
  return { session: await requireLiveSession(around, trainer, fields) };
}

/** Ends a session: what it was initializing can be taken over at once, and it keeps step no longer. */
export async function leave(
  around: Surroundings,
  trainer: string,
  fields: Fields,
): Promise<Fields> {
  const { session } = parseSessionRequest(fields);
  const { records, pause } = around;
  const key = trainerKey(trainer);
  await change({
    records,
    key,
    pause,
    decide: (current) => {
      const known = parseTrainer(current, key);
      if (known?.session !== session || known.ended) return { result: undefined };
      return { write: toRecord({ ...known, ended: true }), result: undefined };
    },
  });
  await removeMembers(around, [{ trainer, session }]);
  await around.leases.release(key, leaseValue(around, session));
  return { session };
}

/**
 * The session in a request, if it is the trainer's latest and has not ended.
 * @throws SUPERSEDED if a newer one has joined, REJOIN if it has ended or was never begun.
 */
export async function requireSession(
  around: Surroundings,
  trainer: string,
  fields: Fields,
): Promise<number> {
  const { session } = parseSessionRequest(fields);
  const known = await readTrainer(around, trainer);
  if (known?.session === session && !known.ended) return session;
  if (known !== undefined && known.session > session) throw superseded(trainer, known, session);
  throw new PserverError(
    "REJOIN",
    `trainer ${quoteName(trainer)}: session ${session} has ended or is not known; join again`,
    { trainer, expected: known?.session, received: session },
  );
}

/**
 * As {@link requireSession}, and makes the lease last: whoever asks to be selected must not be
 * replaced at once because it was slow to renew.
 */
export async function requireLiveSession(
  around: Surroundings,
  trainer: string,
  fields: Fields,
): Promise<number> {
  const session = await requireSession(around, trainer, fields);
  await holdLease(around, trainer, session);
  return session;
}

/**
 * Whether a session can be taken to be dead: a newer one of its trainer has joined, it has left,
 * or its lease is lost and still not there.
 */
export async function isGone(
  around: Surroundings,
  holder: { readonly trainer: string; readonly session: number },
): Promise<boolean> {
  const key = trainerKey(holder.trainer);
  const known = parseTrainer(await around.records.read(key), key);
  // The record of a trainer is removed only once its last session has ended.
  if (known === undefined || known.session > holder.session || known.ended) return true;
  return await hasLostLease(around, key);
}

/** Whether a trainer's lease is lost and still not there. */
export async function hasLostLease(around: Surroundings, key: string): Promise<boolean> {
  return around.view.isLost(key) && (await around.leases.read(key)) === undefined;
}

/** A session that no sweep has missed: one that began while it was sweeping takes another number. */
async function startSession(around: Surroundings, trainer: string, token: string): Promise<number> {
  for (let tries = 1; tries <= SWEPT_TRIES_MAX; tries++) {
    const session = await writeSession(around, trainer, token);
    const swept = await sweptUpTo(around);
    if (session > swept) return session;
    await requireCounted(around, swept, "the last sweep");
  }
  const text = `trainer ${quoteName(trainer)}: sessions are swept all the time`;
  throw busy(text, { trainer, expected: SWEPT_TRIES_MAX });
}

async function writeSession(around: Surroundings, trainer: string, token: string): Promise<number> {
  const { records, pause } = around;
  const [session, swept] = await Promise.all([around.counter.next(), sweptUpTo(around)]);
  const key = trainerKey(trainer);
  const { result } = await change({
    records,
    key,
    pause,
    decide: async (current) => {
      const known = parseTrainer(current, key);
      const same = sameLife(known, token);
      // Of several copies of one request the first decides, but for a number that a sweep has missed.
      if (same !== undefined && same.session > swept) return { result: same.session };
      if (known !== undefined && known.session > session) {
        await requireCounted(around, known.session, `trainer ${quoteName(trainer)}`);
        throw superseded(trainer, known, session);
      }
      return { write: toRecord({ session, token, ended: false }), result: session };
    },
  });
  return result;
}

async function holdLease(around: Surroundings, trainer: string, session: number): Promise<void> {
  const key = trainerKey(trainer);
  const value = leaseValue(around, session);
  for (let tries = 1; tries <= LEASE_TRIES_MAX; tries++) {
    if (await around.leases.renew(key, value)) return;
    if (await around.leases.claim(key, value)) return;
    const held = await around.leases.read(key);
    if (held === undefined) continue;
    const other = integerField(held, "session", 1);
    if (other > session) throw superseded(trainer, { session: other }, session);
    // An older session's: its process is dead or will be told so.
    await around.leases.release(key, held);
  }
  throw busy(`the lease of trainer ${quoteName(trainer)} changes all the time`, {
    trainer,
    expected: LEASE_TRIES_MAX,
  });
}

function leaseValue(around: Surroundings, session: number): LeaseValue {
  return { owner: `session ${session}`, session, host: around.hostId };
}

/** The record itself, if it is of this very process and its session has not ended. */
function sameLife(known: TrainerRecord | undefined, token: string): TrainerRecord | undefined {
  return known?.token === token && !known.ended ? known : undefined;
}

async function readTrainer(
  around: Surroundings,
  trainer: string,
): Promise<TrainerRecord | undefined> {
  const key = trainerKey(trainer);
  return parseTrainer(await around.records.read(key), key);
}

function superseded(
  trainer: string,
  newer: { readonly session: number },
  session: number,
): PserverError {
  return new PserverError(
    "SUPERSEDED",
    `trainer ${quoteName(trainer)}: expected session ${newer.session}, which joined later; ` +
      `received session ${session}`,
    { trainer, expected: newer.session, received: session },
  );
}
