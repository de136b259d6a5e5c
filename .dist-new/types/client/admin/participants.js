import { toSynchronization } from "../../protocol/config/index.js";
import { asMap, flagField, integerField, listField, textField } from "../../protocol/fields.js";
import { SHARDS_MAX } from "../../protocol/limits.js";
import { parseFallbacks } from "../../protocol/messages/position.js";
const LISTED_MAX = 100_000;
/** @throws BAD_MESSAGE if the fields are not a valid reply to `hosts`. */
export function parseParticipants(fields) {
    return {
        hosts: listField(fields, "hosts", LISTED_MAX).map(parseHost),
        trainers: listField(fields, "trainers", LISTED_MAX).map((id) => textField({ id }, "id")),
        shards: listField(fields, "shards", SHARDS_MAX).map(parseShard),
        declared: parseDeclared(fields["declared"]),
        archivers: parseArchivers(fields),
        ...(fields["tape"] === undefined ? {} : { tape: parseTape(fields["tape"]) }),
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
    return { messages: integerField(fields, "messages"), bytes: integerField(fields, "bytes") };
}
function parseArchivers(reply) {
    return listField(reply, "archivers", LISTED_MAX).map((value) => {
        const fields = asMap(value, "archiver");
        return {
            ...fields,
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
/**
 * Lists the shards whose owners could not write the tape as they should, with their counts of such records.
 */
export function tapeGaps(shards) {
    return shards.flatMap(({ shard, tape }) => {
        if (tape === undefined)
            return [];
        const fields = asMap(tape, "tape");
        const undescribed = integerField(fields, "undescribed");
        const leftOut = integerField(fields, "leftOut");
        return undescribed + leftOut === 0 ? [] : [{ shard, undescribed, leftOut }];
    });
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
function countRows(fields, key) {
    if (fields[key] === undefined)
        return [];
    return listField(fields, key, ROWS_MAX).map((value) => {
        const row = { ...listField({ [key]: value }, key, 2) };
        return [textField(row, "0"), integerField(row, "1")];
    });
}
//# sourceMappingURL=participants.js.map