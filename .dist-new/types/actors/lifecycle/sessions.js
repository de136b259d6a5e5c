import { busy, integerField, LIVE_SESSIONS_MAX, PserverError, parseJoinRequest, parseMade, parseSessionRequest, quoteName, TRAINERS_PER_MESSAGE_MAX, textField, } from "../../protocol/index.js";
import { mapConcurrently } from "../concurrent.js";
import { ENTRY_FORMAT, readEntry } from "../journal/kv-bucket.js";
import { Counter } from "./counter.js";
import { BucketEntry, SESSION_KEY, SWEPT_KEY, TRAINER_KEYS, trainerKey, } from "./lock.js";
import { removeMembers } from "./members.js";
/** The last session number given. */
export const LAST_GIVEN = numberEntry(SESSION_KEY);
/** The session up to which a sweep has looked for ended ones, or is about to; 0 before the first sweep. */
export const SWEPT = numberEntry(SWEPT_KEY);
/** Makes the counter of the sessions of a job. */
export function sessionCounter(deps) {
    return new Counter({ ...deps, entry: LAST_GIVEN });
}
/** Notes up to which session a sweep is about to look; never lowers it. */
async function raiseSwept(deps, upTo) {
    await SWEPT.change(deps, (swept) => Math.max(swept, upTo));
}
/**
 * Checks that the job's counter has given a session number that `witness` has. The witness must have
 * been read before this call.
 * @throws JOB_DAMAGED if it has not: the counter has fallen back, and would give numbers a second time.
 */
async function requireCounted({ counter, job }, session, witness) {
    const given = await counter.last();
    if (given >= session)
        return;
    throw new PserverError("JOB_DAMAGED", `job ${job.job}: the counter of sessions stands at ${given}, but ${witness} has session ${session}: ` +
        "the job's bucket has lost records, or is an older copy", { job: job.job, expected: session, received: given });
}
/** Makes an entry of one session number; 0 if there is none. */
function numberEntry(key) {
    return new BucketEntry(key, (stored) => parseNumber(stored, key), (session) => ({ format: ENTRY_FORMAT, session }));
}
/** Reads the entry of one session number; 0 if there is none. @throws BAD_VERSION, JOB_DAMAGED. */
export function parseNumber(stored, key) {
    if (stored === undefined)
        return 0;
    return readEntry(stored.value, key, (fields) => integerField(fields, "session"));
}
/**
 * Reads the entry of a trainer; undefined if there is none.
 * @throws BAD_VERSION for an entry of another format, JOB_DAMAGED for a damaged one.
 */
export function parseTrainer(stored, key) {
    if (stored === undefined)
        return undefined;
    return readEntry(stored.value, key, (fields) => ({
        session: integerField(fields, "session", 1),
        token: textField(fields, "token"),
        ended: fields["ended"] === true,
        ...(fields["exits"] === undefined ? {} : { exits: integerField(fields, "exits", 1) }),
    }));
}
/** Makes the entry under a trainer's key. */
export function trainerEntry(key) {
    return new BucketEntry(key, (stored) => parseTrainer(stored, key), (trainer) => ({ format: ENTRY_FORMAT, ...trainer }));
}
/**
 * Checks that a trainer which has joined before has joined this very job.
 * @throws JOB_REPLACED if it was a former job of this name; NO_HOST if this host itself is of a former one.
 */
export async function requireSameJob({ job: { job, made }, madeNow }, trainer, fields) {
    const joined = parseMade(fields);
    if (joined === undefined || joined === made)
        return;
    if ((await madeNow()) !== made) {
        const text = `this host serves job ${job} as it was made at ${made}, which is gone from the broker, and ends`;
        throw new PserverError("NO_HOST", text, { job, expected: joined, received: made });
    }
    throw new PserverError("JOB_REPLACED", `trainer ${quoteName(trainer)} has joined job ${job} as it was made at ${joined}, and this one was made at ${made}: ` +
        "the broker's store was emptied or is another one, or the job was removed. What the trainer knows of the former " +
        "job does not hold for this one. Restart the trainer, or connect it anew", { trainer, job, expected: made, received: joined });
}
const LEASE_TRIES_MAX = 8;
const SWEPT_TRIES_MAX = 8;
/**
 * Starts a session, or returns the one that the same process has started already. Earlier sessions of the trainer no
 * longer keep step.
 * @throws SUPERSEDED if a newer session has joined at the same time, JOB_DAMAGED if the counter of sessions has
 * fallen back, TOO_MANY_TRAINERS if it is a new trainer and there is no place for it.
 */
export async function join(deps, trainer, fields) {
    const { token } = parseJoinRequest(fields);
    const present = await trainerEntry(trainerKey(trainer)).read(deps);
    if (present === undefined)
        await deps.joined.require(() => endSessions(deps, []));
    const known = ofSameProcess(present, token);
    const session = known?.session ?? (await startSession(deps, trainer, token));
    await holdLease(deps, trainer, session);
    await removeMembers(deps, [{ trainer, session: session - 1 }]);
    const { made, shards, leaseMs, journal, synchronization } = deps.job;
    const reply = {
        session,
        made,
        shards,
        leaseMs,
        journal,
        synchronization,
        maxPayloadBytes: deps.maxPayloadBytes,
    };
    return { ...reply };
}
/** Renews the trainer's lease, or claims it again if it ran out. */
export async function renew(deps, trainer, fields) {
    return { session: await requireLiveSession(deps, trainer, fields) };
}
/** Ends a session: its initialization can be taken over at once, and it no longer keeps step. */
export async function leave(deps, trainer, fields) {
    const { session } = parseSessionRequest(fields);
    const key = trainerKey(trainer);
    await trainerEntry(key).change(deps, (known) => known?.session === session && !known.ended ? { ...known, ended: true } : known);
    await removeMembers(deps, [{ trainer, session }]);
    await deps.leases.release(key, leaseValue(deps, session));
    return { session };
}
/**
 * Returns the session in a request if it is the trainer's latest and has not ended.
 * @throws as {@link requireTrainer}.
 */
export async function requireSession(deps, trainer, fields) {
    return (await requireTrainer(deps, trainer, fields)).session;
}
/**
 * Returns the trainer's entry if the session in a request is its latest and has not ended.
 * @throws SUPERSEDED if a newer session has joined, REJOIN if it has ended or was never begun.
 */
export async function requireTrainer(deps, trainer, fields) {
    const { session } = parseSessionRequest(fields);
    const known = await trainerEntry(trainerKey(trainer)).read(deps);
    if (known?.session === session && !known.ended)
        return known;
    if (known !== undefined && known.session > session)
        throw superseded(trainer, known, session);
    throw new PserverError("REJOIN", `trainer ${quoteName(trainer)}: session ${session} has ended or is not known; join again`, { trainer, expected: known?.session, received: session });
}
/**
 * Does as {@link requireSession}, and renews the lease: a trainer that asks to be selected must not be replaced at
 * once because it was slow to renew.
 */
export async function requireLiveSession(deps, trainer, fields) {
    const session = await requireSession(deps, trainer, fields);
    await holdLease(deps, trainer, session);
    return session;
}
/**
 * Whether a session counts as dead: a newer session of its trainer has joined, it has left, or its
 * lease is lost and still not held.
 */
export async function isGone(deps, holder) {
    const key = trainerKey(holder.trainer);
    const known = await trainerEntry(key).read(deps);
    // The entry of a trainer is removed only after its last session has ended.
    if (known === undefined || known.session > holder.session || known.ended)
        return true;
    return await hasLostLease(deps, key);
}
/** Whether a trainer's lease is lost and still not held. */
async function hasLostLease(deps, key) {
    return deps.view.isLost(key) && (await deps.leases.read(key)) === undefined;
}
/** Starts a session that no sweep has missed: if a sweep began in between, it takes another number. */
async function startSession(deps, trainer, token) {
    for (let tries = 1; tries <= SWEPT_TRIES_MAX; tries++) {
        const session = await writeSession(deps, trainer, token);
        const swept = await SWEPT.read(deps);
        if (session > swept)
            return session;
        await requireCounted(deps, swept, "the last sweep");
    }
    const text = `trainer ${quoteName(trainer)}: its session was swept ${SWEPT_TRIES_MAX} times in a row`;
    throw busy(text, { trainer, expected: SWEPT_TRIES_MAX });
}
async function writeSession(deps, trainer, token) {
    const [session, swept] = await Promise.all([deps.counter.take(1), SWEPT.read(deps)]);
    const { result } = await trainerEntry(trainerKey(trainer)).change(deps, async (known) => {
        const same = ofSameProcess(known, token);
        // Of several copies of one request the first decides, unless a sweep may have missed its number.
        if (same !== undefined && same.session > swept)
            return same;
        if (known !== undefined && known.session > session) {
            await requireCounted(deps, known.session, `trainer ${quoteName(trainer)}`);
            throw superseded(trainer, known, session);
        }
        return { session, token, ended: false };
    });
    return result?.session ?? session;
}
/** Renews the lease of a trainer's session, or claims it. @throws SUPERSEDED if a newer session holds it, BUSY. */
export async function holdLease(deps, trainer, session) {
    const key = trainerKey(trainer);
    const value = leaseValue(deps, session);
    for (let tries = 1; tries <= LEASE_TRIES_MAX; tries++) {
        if (await deps.leases.renew(key, value))
            return;
        if (await deps.leases.claim(key, value))
            return;
        const held = await deps.leases.read(key);
        if (held === undefined)
            continue;
        const other = integerField(held, "session", 1);
        // The entry decides: leases in etcd outlast the entries of a broker whose store was emptied.
        const known = other > session ? await trainerEntry(key).read(deps) : undefined;
        if (known !== undefined && known.session > session)
            throw superseded(trainer, known, session);
        // Held by an older session: its process is dead, or will learn that it was superseded.
        await deps.leases.release(key, held);
    }
    const text = `the lease of trainer ${quoteName(trainer)} was changed by others ${LEASE_TRIES_MAX} times in a row`;
    throw busy(text, { trainer, expected: LEASE_TRIES_MAX });
}
function leaseValue(deps, session) {
    return { owner: `session ${session}`, session, host: deps.hostId };
}
/** Returns the entry if the process with this token wrote it and its session has not ended. */
function ofSameProcess(known, token) {
    return known?.token === token && !known.ended ? known : undefined;
}
function superseded(trainer, newer, session) {
    return new PserverError("SUPERSEDED", `trainer ${quoteName(trainer)}: expected session ${newer.session}, which joined later; ` +
        `received session ${session}`, { trainer, expected: newer.session, received: session });
}
/**
 * Tells these shards' journals which sessions have ended, so that they forget their trainers, and makes them forget
 * trainers whose sessions no host has given, since anybody can name a number.
 *
 * The shards are first asked for the trainers that they remember. A trainer that they name had its session, if a host
 * gave it one, before the sweep reads which numbers have been given. So no trainer that joins during the sweep is
 * forgotten.
 * @throws JOB_DAMAGED, before any journal is written, if the counter has fallen back.
 */
export async function endSessions(deps, shards) {
    const { owners } = deps;
    const remembered = new Map();
    await mapConcurrently(shards, async (shard) => {
        const { trainers, toldUpTo } = await owners.trainers(shard);
        await requireCounted(deps, toldUpTo, `the journal of shard ${shard}`);
        remembered.set(shard, trainers);
    });
    const { record, isInvented, forget } = await sweepSessions(deps);
    const at = new Map();
    await mapConcurrently([...remembered], async ([shard, trainers]) => {
        if (record !== undefined)
            at.set(shard, await owners.append(shard, record));
        for (const forgotten of forgetRecords(trainers.filter(isInvented))) {
            at.set(shard, await owners.append(shard, forgotten));
        }
    });
    await forget();
    return { live: record?.live.length ?? 0, at };
}
/** Compares the counter with every other entry of the job that names a session. @throws JOB_DAMAGED */
export async function checkCounter(deps) {
    await requireCounted(deps, await SWEPT.read(deps), "the last sweep");
    const sessions = new Map();
    await mapConcurrently(await deps.bucket.keys(TRAINER_KEYS), async (key) => {
        const known = await trainerEntry(key).read(deps);
        if (known !== undefined)
            sessions.set(known.session, key);
    });
    await requireLatestCounted(deps, sessions, 0);
}
/**
 * Finds which of all sessions that have been given have ended: those that were left or superseded, and
 * those whose lease is lost, which it ends.
 *
 * A session is first a number, and later in a trainer's entry. So the number up to which the sweep looks is stored
 * before it reads the entries: a trainer that joins reads that number after its own entry is written, and takes
 * another session if a sweep may have missed it.
 * @throws JOB_DAMAGED if the counter has fallen back: the sweep would take live sessions for ended ones.
 */
async function sweepSessions(deps) {
    const given = await deps.counter.last();
    if (given === 0) {
        await checkCounter(deps);
        const isInvented = inventedBy(await deps.counter.take(1), new Map());
        return { record: undefined, isInvented, forget: () => Promise.resolve() };
    }
    await requireCounted(deps, await SWEPT.read(deps), "the last sweep");
    await raiseSwept(deps, given);
    /** Keys of the trainers by their live sessions: a number is given once. */
    const live = new Map();
    const ended = [];
    await mapConcurrently(await deps.bucket.keys(TRAINER_KEYS), async (key) => {
        const stored = await deps.bucket.read(key);
        const known = parseTrainer(stored, key);
        if (stored === undefined || known === undefined)
            return;
        const hasEnded = known.ended || (known.session <= given && (await endLost(deps, key)));
        if (!hasEnded)
            live.set(known.session, key);
        else if (known.ended)
            ended.push({ key, revision: stored.revision });
    });
    const forget = async () => {
        await mapConcurrently(ended, ({ key, revision }) => deps.bucket.remove(key, revision));
    };
    await requireLatestCounted(deps, live, given);
    const isInvented = inventedBy(await deps.counter.take(1), live);
    return { record: toSessionsRecord(given, [...live.keys()]), isInvented, forget };
}
/** Checks the counter against the latest of these sessions, unless that is at most `given`. */
async function requireLatestCounted(deps, sessions, given) {
    // There may be more sessions than a call can have arguments.
    let latest = 0;
    for (const session of sessions.keys())
        latest = Math.max(latest, session);
    if (latest <= given)
        return;
    await requireCounted(deps, latest, `the record ${sessions.get(latest)}`);
}
/**
 * Tells which sessions no host has given to their trainers. `bound` must be taken from the counter after
 * the shards were asked, as a number for nobody: a majority of the brokers has stored it, so all numbers
 * given before are lower. A mere read of the counter may be older, if a broker answers that does not know
 * yet that it is no longer the leader.
 */
function inventedBy(bound, live) {
    return ([trainer, session]) => {
        const key = live.get(session);
        return key === undefined ? session >= bound : key !== trainerKey(trainer);
    };
}
/** Makes the record of a sweep. If it cannot name all live sessions, it covers fewer numbers: `upTo` is lower. */
function toSessionsRecord(given, live) {
    const sorted = live.filter((session) => session <= given).sort((a, b) => a - b);
    const beyond = sorted[LIVE_SESSIONS_MAX];
    const upTo = beyond === undefined ? given : beyond - 1;
    return { verb: "sessions", upTo, live: sorted.slice(0, LIVE_SESSIONS_MAX) };
}
/** Ends a trainer's session if its lease is lost; returns whether it has ended. */
async function endLost(deps, key) {
    const { result } = await trainerEntry(key).change(deps, async (current) => {
        if (current === undefined || current.ended)
            return current;
        return (await hasLostLease(deps, key)) ? { ...current, ended: true } : current;
    });
    return result?.ended ?? true;
}
/** Makes as many records as it takes to name these trainers. */
function forgetRecords(trainers) {
    const records = [];
    for (let from = 0; from < trainers.length; from += TRAINERS_PER_MESSAGE_MAX) {
        const some = trainers.slice(from, from + TRAINERS_PER_MESSAGE_MAX);
        records.push({ verb: "forget", trainers: some });
    }
    return records;
}
//# sourceMappingURL=sessions.js.map