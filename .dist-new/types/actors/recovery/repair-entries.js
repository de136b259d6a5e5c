import { blockPlaces, PserverError, } from "../../protocol/index.js";
import { mapConcurrently } from "../concurrent.js";
import { SETTINGS_KEY } from "../job/job-settings.js";
import { ENTRY_FORMAT, UNREADABLE } from "../journal/kv-bucket.js";
import { JOB_KEY, MEMBERS_KEY, PARAMETER_KEYS, parameterKey, SESSION_KEY, SWEPT_KEY, } from "../lifecycle/lock.js";
import { toLifecycleEntry } from "../lifecycle/machine.js";
import { toMembersEntry } from "../lifecycle/members.js";
import { toParameterEntry } from "../lifecycle/parameter.js";
/**
 * Session numbers that are skipped: of those given last, neither an entry nor a shard may tell any more. There are
 * enough of them.
 */
const SESSIONS_SKIPPED = 1_000_000;
/** A shard remembers what trainers name; a higher number is taken for invented. */
const SESSION_MAX = 2 ** 52;
/** Blocks per request: their names fit into the smallest payload that a broker may have. */
const BLOCKS_PER_CHECK = 1000;
/**
 * Writes the entries again that have problems, from what the shards know: whoever was initialized is so again. An
 * entry that somebody has written since the findings stays as it is. Entries of trainers and archivers, and the plan of
 * a rewind, which no shard knows, are removed; so is the counter of block numbers, which the parameters tell. Shards' marks stay: see `acceptLoss`. No host serves a shard without the
 * job's settings: where these have a problem and shards could not be asked, nothing but these is written.
 * @returns the keys of what was written or removed, in that order.
 * @throws NO_OWNER if a shard could not be asked; NO_SPACE; as {@link requireReadable}.
 */
export async function repairEntries(deps, findings) {
    const { problems, unasked, revision } = findings;
    const keys = new Set(problems.map(({ key }) => key).filter(isRepairable));
    if (keys.size === 0)
        return [];
    requireReadable(problems);
    const lacksSettings = keys.delete(SETTINGS_KEY);
    if (unasked.length > 0 && !lacksSettings) {
        throw new PserverError("NO_OWNER", `shards ${unasked.join(", ")} are not served: start a host, and recover stopped shards, for what they know is needed`, { shards: unasked });
    }
    const repaired = [
        ...(lacksSettings ? [{ key: SETTINGS_KEY, value: deps.settingsEntry }] : []),
        ...(unasked.length > 0 ? [] : await repairedEntries(deps, findings, keys)),
    ];
    // A bucket that was made anew has the space of a job without parameters.
    const bytes = repaired.reduce((sum, { value }) => sum + JSON.stringify(value ?? {}).length, 0);
    const usage = { parameters: repaired.length, heldBytes: 0, configBytes: bytes };
    await deps.owners.reserveSpace(usage);
    const written = [];
    for (const { key, value } of repaired) {
        const isDone = value === undefined
            ? await discard(deps.bucket, key, revision)
            : (await deps.bucket.overwrite(key, value, revision)) !== undefined;
        if (isDone)
            written.push(key);
    }
    return written;
}
/**
 * Removes whatever was written under a key up to a revision, also what cannot be read; returns false if somebody else
 * has written since.
 */
export async function discard(bucket, key, upToRevision) {
    // The broker does not remove what it cannot read, but takes another entry in its place.
    const revision = await bucket.overwrite(key, { format: ENTRY_FORMAT }, upToRevision);
    return revision !== undefined && (await bucket.remove(key, revision));
}
/** Returns the entries to write, the job's last: hosts read the parameters again when that one has changed. */
async function repairedEntries(deps, findings, keys) {
    const { sound, known } = findings;
    const entries = [];
    if (keys.has(SESSION_KEY) || keys.has(SWEPT_KEY)) {
        const session = (await lastSession(deps, findings)) + SESSIONS_SKIPPED;
        entries.push({ key: SESSION_KEY, value: { format: ENTRY_FORMAT, session } });
        const swept = Math.max(sound.swept, ...each(known, ({ sweptUpTo }) => sweptUpTo));
        entries.push({ key: SWEPT_KEY, value: { format: ENTRY_FORMAT, session: swept } });
    }
    if (keys.has(MEMBERS_KEY))
        entries.push({ key: MEMBERS_KEY, value: membersOf(findings) });
    const isParameter = [...keys].some((key) => key.startsWith(PARAMETER_KEYS));
    if (isParameter || keys.has(JOB_KEY)) {
        const job = jobOf(findings, keys.has(JOB_KEY));
        for (const parameter of await parametersOf(deps, findings, job, keys)) {
            const key = parameterKey(parameter.declaration.name);
            entries.push({ key, value: toParameterEntry(parameter) });
        }
        entries.push({ key: JOB_KEY, value: toLifecycleEntry(job) });
    }
    const rewritten = new Set(entries.map(({ key }) => key));
    const rest = [...keys].filter((key) => !rewritten.has(key));
    return [...rest.map((key) => ({ key, value: undefined })), ...entries];
}
/**
 * Checks that the broker can read what is stored. It cuts its file off at what it cannot read whenever it builds its
 * index again, and would lose what is written now.
 * @throws JOB_DAMAGED naming the entries, and what to do.
 */
export function requireReadable(problems) {
    const unreadable = problems.filter(({ problem }) => problem === UNREADABLE);
    if (unreadable.length === 0)
        return;
    const keys = unreadable.map(({ key }) => key);
    throw new PserverError("JOB_DAMAGED", `the broker cannot read ${keys.join(", ")}, and may lose what is written after that: end the broker with SIGKILL ` +
        "and start it again, after which it has cut its file off there, or put its store back from a copy; then repeat this", { keys });
}
/** Whether {@link repairEntries} writes or removes this entry. */
export function isRepairable(key) {
    return !key.startsWith("head.");
}
/** Returns the highest session that an entry or a shard names. */
async function lastSession({ owners }, { sound, known }) {
    let last = Math.max(...[sound.given, sound.swept, sound.trainersUpTo, sound.job.context.session], ...each(known, ({ sweptUpTo, job }) => Math.max(sweptUpTo, job?.session ?? 0)));
    await mapConcurrently([...known.keys()], async (shard) => {
        const { trainers } = await owners.trainers(shard);
        for (const [, session] of trainers)
            if (session <= SESSION_MAX)
                last = Math.max(last, session);
    });
    return last;
}
/** Returns the members' entry, of a later revision than any shard knows. Hosts remove members that are gone. */
function membersOf({ sound, known }) {
    const newest = [...known.values()]
        .map(({ members }) => members)
        .reduce((a, b) => (b.revision > a.revision ? b : a));
    const members = newest.trainers.map((trainer) => ({ trainer, session: 1 }));
    const revision = Math.max(sound.members.revision, newest.revision) + 1;
    return toMembersEntry({ revision, started: newest.started, members });
}
/** Returns the job's lifecycle, revised once more than anybody knows. */
function jobOf({ sound, known }, isDamaged) {
    const { state, context } = sound.job;
    const revised = Math.max(context.revised, ...each(known, ({ job }) => job?.revised ?? 0)) + 1;
    if (!isDamaged)
        return { state, context: { ...context, revised } };
    const initialized = [...known.values()].flatMap(({ job }) => job ?? []);
    const newest = initialized.reduce((a, b) => (a === undefined || b.revised > a.revised ? b : a), undefined);
    const epochs = [...sound.parameters.values()].map(({ jobEpoch }) => jobEpoch);
    const epoch = Math.max(context.epoch, newest?.epoch ?? 0, ...epochs);
    const session = newest?.session ?? 0;
    return {
        state: newest === undefined ? "uninitialized" : "ready",
        context: { epoch, trainer: "", session, at: [], sealed: 0, revised },
    };
}
/**
 * Returns the parameters whose entries are written: those with problems, and, if the job's entry has one, those that
 * followed the job. A parameter is initialized if all its blocks are there, and a shard was told so or the job is
 * initialized. One that was and has lost blocks with a shard's records is to be initialized again, as a host would say
 * that takes the shard over.
 */
async function parametersOf(deps, { sound, known }, job, keys) {
    const newest = new Map();
    for (const { parameters } of known.values()) {
        for (const declared of parameters) {
            const before = newest.get(declared.name);
            const blocksMax = Math.max(before?.blocksMax ?? 0, declared.layout.blocks);
            const later = before !== undefined && before.epoch >= declared.epoch ? before : declared;
            newest.set(declared.name, { ...later, blocksMax });
        }
    }
    const followed = ({ name }) => keys.has(JOB_KEY) && sound.parameters.get(name)?.jobEpoch !== 0;
    const wanted = [...newest.values()].filter((declared) => keys.has(parameterKey(declared.name)) || followed(declared));
    const lacking = await lackingBlocks(deps, wanted);
    return wanted.map(({ epoch, trainer, initialized, layout, firstNumber, blocksMax, ...declared }) => {
        const { name, dtype, shape, config } = declared;
        const wasInitialized = initialized === true || job.state === "ready";
        const isReady = wasInitialized && !lacking.has(name);
        const before = sound.parameters.get(name);
        const isTakenBack = initialized === true && !isReady;
        const revised = (before?.lifecycle.context.revised ?? 0) + (isTakenBack ? 1 : 0);
        return {
            declaration: { name, dtype, shape, config },
            ...{
                layout,
                firstNumber,
                blocksMax: Math.max(blocksMax, before?.blocksMax ?? 0),
                jobEpoch: 0,
            },
            lifecycle: {
                state: isReady ? "ready" : "uninitialized",
                context: { epoch, trainer, session: 0, at: [], sealed: 0, revised },
            },
            revision: 0,
        };
    });
}
/** Returns the names of the parameters of which blocks are missing under their epochs. */
async function lackingBlocks({ owners }, parameters) {
    const wanted = new Map();
    for (const { name, layout, epoch } of parameters) {
        for (const { shard, index } of blockPlaces(layout)) {
            const blocks = wanted.get(shard) ?? [];
            blocks.push([name, index, epoch]);
            wanted.set(shard, blocks);
        }
    }
    const lacking = new Set();
    await mapConcurrently([...wanted], async ([shard, blocks]) => {
        for (let from = 0; from < blocks.length; from += BLOCKS_PER_CHECK) {
            const some = blocks.slice(from, from + BLOCKS_PER_CHECK);
            const { missing } = await owners.check(shard, { blocks: some });
            for (const [name] of missing)
                lacking.add(name);
        }
    });
    return lacking;
}
function each(known, number) {
    return [...known.values()].map(number);
}
//# sourceMappingURL=repair-entries.js.map