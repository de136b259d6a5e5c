import { toSynchronization } from "../../protocol/config/index.js";
import { asMap, flagField, integerField, listField, textField } from "../../protocol/fields.js";
import { SHARDS_MAX } from "../../protocol/limits.js";
import { parseFallbacks, parsePosition, } from "../../protocol/messages/position.js";
const LISTED_MAX = 100_000;
/** @throws BAD_MESSAGE if the fields are not a valid reply to `hosts`. */
export function parseParticipants(fields) {
    return {
        hosts: listField(fields, "hosts", LISTED_MAX).map(parseHost),
        trainers: listField(fields, "trainers", LISTED_MAX).map((id) => textField({ id }, "id")),
        shards: listField(fields, "shards", SHARDS_MAX).map(parseShard),
        declared: parseDeclared(fields["declared"]),
        archivers: parseArchivers(fields, "archivers"),
        stoppedArchivers: parseArchivers(fields, "stoppedArchivers"),
        ...(fields["tape"] === undefined ? {} : { tape: parseTape(fields["tape"]) }),
        ...(fields["rewind"] === undefined ? {} : { rewind: parseRewind(fields["rewind"]) }),
        ...(fields["replicas"] === undefined ? {} : { replicas: parseReplicas(fields["replicas"]) }),
        synchronization: toSynchronization(fields["synchronization"]),
        ...(fields["members"] === undefined ? {} : { members: parseMembers(fields["members"]) }),
    };
}
function parseDeclared(value) {
    const fields = asMap(value, "declared");
    return {
        ...fields,
        parameters: integerField(fields, "parameters"),
        heldBytes: integerField(fields, "heldBytes"),
    };
}
function parseTape(value) {
    const fields = asMap(value, "tape");
    return {
        messages: integerField(fields, "messages"),
        bytes: integerField(fields, "bytes"),
        bytesMax: integerField(fields, "bytesMax"),
        ...(fields["trimmedToMs"] !== undefined && {
            trimmedToMs: integerField(fields, "trimmedToMs"),
        }),
    };
}
function parseRewind(value) {
    const fields = asMap(value, "rewind");
    return {
        id: textField(fields, "id"),
        begunMs: integerField(fields, "begunMs"),
        at: listField(fields, "at", SHARDS_MAX).map((at) => parsePosition(asMap(at, "at"))),
        goneBack: listField(fields, "goneBack", SHARDS_MAX).map((shard) => integerField({ shard }, "shard", 0, SHARDS_MAX - 1)),
    };
}
function parseReplicas(value) {
    const fields = asMap(value, "replicas");
    return {
        wanted: integerField(fields, "wanted"),
        missing: listField(fields, "missing", LISTED_MAX).map((name) => textField({ name }, "name")),
        lacking: listField(fields, "lacking", LISTED_MAX).map((each) => {
            const lacking = asMap(each, "lacking");
            return { stream: textField(lacking, "stream"), copies: integerField(lacking, "copies") };
        }),
    };
}
/** Describes for people which copies of a job's streams are missing; undefined if all are there. */
export function describeLackingReplicas(replicas) {
    if (replicas === undefined || replicas.lacking.length === 0)
        return undefined;
    const { wanted, missing, lacking } = replicas;
    const leaderless = lacking.filter(({ copies }) => copies === 0).length;
    const least = Math.min(...lacking.map(({ copies }) => copies));
    const streams = lacking.length === 1 ? lacking[0]?.stream : `${lacking.length} streams`;
    const parts = [
        `${streams}: ${least} of ${wanted} copies`,
        ...(leaderless > 0 ? [`${leaderless} without a leader, which store nothing`] : []),
        ...(missing.length > 0 ? [`not reached: ${missing.join(", ")}`] : []),
    ];
    return parts.join("; ");
}
function parseArchivers(reply, name) {
    return listField(reply, name, LISTED_MAX).map((value) => {
        const { completeMs, failure, ...fields } = asMap(value, "archiver");
        return {
            ...fields,
            ...(completeMs !== undefined && { completeMs: integerField({ completeMs }, "completeMs") }),
            ...(failure !== undefined && { failure: parseFailure(failure) }),
            machine: textField(fields, "machine"),
            pid: integerField(fields, "pid"),
            writtenMs: integerField(fields, "writtenMs"),
            shards: listField(fields, "shards", SHARDS_MAX).map((shard) => {
                const { record } = asMap(shard, "shard");
                const position = asMap(record, "record");
                const generation = integerField(position, "generation");
                return { record: { generation, seq: integerField(position, "seq") } };
            }),
        };
    });
}
function parseFailure(value) {
    const fields = asMap(value, "failure");
    return { code: textField(fields, "code"), message: textField(fields, "message") };
}
function parseMembers(value) {
    const fields = asMap(value, "members");
    return {
        revision: integerField(fields, "revision"),
        started: flagField(fields, "started"),
        trainers: listField(fields, "trainers", LISTED_MAX).map((id) => textField({ id }, "id")),
    };
}
function parseHost(value) {
    const { host: _id, ...more } = asMap(value, "host");
    const shards = listField(more, "shards", SHARDS_MAX).map((shard) => integerField({ shard }, "shard", 0, SHARDS_MAX - 1));
    return { ...more, id: textField(asMap(value, "host"), "host"), shards };
}
function parseShard(value) {
    const fields = asMap(value, "shard");
    const shard = integerField(fields, "shard", 0, SHARDS_MAX - 1);
    return { ...fields, shard, state: textField(fields, "state") };
}
/** Most trainers that one shard names. */
const ROWS_MAX = 1_000;
/** Groups the shards that do not serve at the moment by their state. */
export function idleShards(shards) {
    const idle = new Map();
    for (const { shard, state } of shards) {
        if (state !== "serving")
            idle.set(state, [...(idle.get(state) ?? []), shard]);
    }
    return idle;
}
/** Lists the shards that lost records when their journal was replaced, with what they lost. */
export function fallenBack(shards) {
    return shards.flatMap((listed) => {
        const fallbacks = parseFallbacks(listed).filter(({ from, to }) => to >= from);
        return fallbacks.length === 0 ? [] : [{ shard: listed.shard, fallbacks }];
    });
}
/** Lists the shards whose tape lacks lines, with their counts of such records. */
export function tapeGaps(shards) {
    return shards.flatMap(({ shard, tape }) => {
        if (tape === undefined)
            return [];
        const fields = asMap(tape, "tape");
        const undescribed = integerField(fields, "undescribed");
        const leftOut = integerField(fields, "leftOut");
        const thinned = integerField(fields, "thinned");
        const isWhole = undescribed + leftOut + thinned === 0;
        return isWhole ? [] : [{ shard, undescribed, leftOut, thinned }];
    });
}
/** Lists the damaged copies of journals, by broker and shard; @throws BAD_MESSAGE if one is malformed. */
export function damagedReplicas(shards) {
    const replicas = shards.flatMap((listed) => {
        const { shard } = listed;
        if (listed["damagedReplicas"] === undefined)
            return [];
        return listField(listed, "damagedReplicas", ROWS_MAX).map((value) => {
            const fields = asMap(value, "replica");
            const [from, to] = [integerField(fields, "from", 1), integerField(fields, "to", 1)];
            const isOther = flagField(fields, "isOther");
            return { broker: textField(fields, "broker"), shard, from, to, isOther };
        });
    });
    return replicas.sort((a, b) => a.broker.localeCompare(b.broker) || a.shard - b.shard);
}
/**
 * Returns the last step that has closed in every shard, and the last one that has closed in any: each shard
 * closes a step by itself. Undefined if no shard reports steps.
 */
export function closedSteps(shards) {
    const closed = shards.flatMap(({ steps }) => steps === undefined ? [] : [integerField(asMap(steps, "steps"), "closed")]);
    if (closed.length === 0)
        return undefined;
    return { everywhere: Math.min(...closed), anywhere: Math.max(...closed) };
}
/** Adds up the updates of a job, as its shards report them; @throws BAD_MESSAGE if one is malformed. */
export function updatesOf(shards) {
    let [applied, rejected] = [0, 0];
    const silent = [];
    for (const { shard, state, updates } of shards) {
        // A shard that is catching up has not yet applied all that was acknowledged before.
        if (state !== "serving" || updates === undefined)
            silent.push(shard);
        else {
            const counts = asMap(updates, "updates");
            applied += integerField(counts, "applied");
            rejected += integerField(counts, "rejected");
        }
    }
    return { applied, rejected, silent };
}
/**
 * Adds up, for each trainer, the records that changed nothing, the most first. Each shard names only its
 * worst trainers.
 */
export function rejectionsByTrainer(shards) {
    const byTrainer = new Map();
    const count = (fields, key, kind) => {
        for (const [trainer, records] of countRows(fields, key)) {
            const known = byTrainer.get(trainer) ?? { trainer, rejected: 0, unreadable: 0 };
            byTrainer.set(trainer, { ...known, [kind]: known[kind] + records });
        }
    };
    for (const { senders } of shards) {
        if (senders === undefined)
            continue;
        const fields = asMap(senders, "senders");
        count(fields, "refusedOf", "rejected");
        count(fields, "unreadableOf", "unreadable");
    }
    const total = ({ rejected, unreadable }) => rejected + unreadable;
    return [...byTrainer.values()].sort((a, b) => total(b) - total(a));
}
/**
 * Counts the records that an archiver has not copied, of the shards that are served. Of a shard with a new
 * generation, only the records of that generation count.
 */
export function archiverLag({ shards: archived }, shards) {
    let records = 0;
    for (const { shard, state, generation, seq } of shards) {
        if (state !== "serving" || typeof seq !== "number")
            continue;
        const { record } = archived[shard] ?? { record: { generation: 0, seq: 0 } };
        records += Math.max(0, seq - (record.generation === generation ? record.seq : 0));
    }
    return records;
}
/** Length of the silence after which an archiver is taken to have stopped; it renews its registration more often. */
const SILENCE_MS = 30_000;
/** Age of the newest complete copy from which on an archiver lags; it looks for new records every second. */
const LAG_MS = 60_000;
/** Returns what is wrong with an archiver at a time, by the wall clock of this machine; nothing if it keeps up. */
export function archiverState({ writtenMs, completeMs, failure }, nowMs) {
    const silentMs = nowMs - writtenMs;
    const lagMs = completeMs === undefined ? 0 : writtenMs - completeMs;
    return {
        ...(failure && { failure }),
        ...(silentMs >= SILENCE_MS && { silentMs }),
        ...(lagMs >= LAG_MS && { lagMs }),
    };
}
function countRows(fields, key) {
    if (fields[key] === undefined)
        return [];
    return listField(fields, key, ROWS_MAX).map((value) => {
        const row = { ...listField({ [key]: value }, key, 2) };
        return [textField(row, "0"), integerField(row, "1")];
    });
}
//# sourceMappingURL=participants.js.map