import { measure } from "../actors/fold/statistics.js";
import { foldDescribed } from "../actors/journal/describe-record.js";
import { JobSubjects, PserverError, } from "../protocol/index.js";
import { showPosition } from "../protocol/messages/position.js";
import { replayShard } from "./replay/replay-shard.js";
import { findUpdate } from "./resolve-point.js";
import { checkShard, historyLost, recordAt, } from "./source.js";
/**
 * Rebuilds the shard right before a record, folds the record, and reports what it did.
 * @throws HISTORY_LOST if nothing from which the shard can be rebuilt is kept; as `replayShard`.
 */
export async function examineRecord(source, { shard: number, position }, signal) {
    const { generation, seq } = position;
    const history = source.shard(number);
    const record = await recordAt(history, position, signal);
    if (record === undefined)
        throw historyLost(number, showPosition(number, position), undefined);
    const subjects = new JobSubjects(source.job);
    const shard = await replayShard(history, { generation, seq: seq - 1 }, { subjects, signal });
    const held = new Map();
    for (const block of shard.blocks())
        held.set(block, block.values().slice());
    const { events } = foldDescribed(shard, record, { shard: number, generation });
    const blocks = [];
    for (const { block: change } of events) {
        const block = change && shard.block(change.parameter, change.index);
        if (block === undefined)
            continue;
        const before = [...held].find(([each]) => isSame(each, block));
        blocks.push(examine(shard.memory, block, before?.[1]));
    }
    return { record, events, blocks };
}
function isSame(a, b) {
    return a.parameter === b.parameter && a.index === b.index;
}
function examine(memory, block, earlier) {
    const { parameter, index, dtype, shape, start, count, epoch, config } = block;
    const later = block.values().slice();
    const elementBytes = later.length / count;
    const isOfSize = earlier?.length === later.length;
    let changedElements = isOfSize ? 0 : count;
    for (let at = 0; isOfSize && at < later.length; at += elementBytes) {
        const [one, other] = [earlier, later].map((bytes) => bytes.subarray(at, at + elementBytes));
        if (Buffer.compare(one, other) !== 0)
            changedElements += 1;
    }
    return {
        ...{ parameter, index, dtype, shape, start, count, epoch, config, changedElements },
        before: earlier && measure(memory, { dtype, bytes: earlier }),
        after: measure(memory, { dtype, bytes: later }),
    };
}
/**
 * Finds the record that a point names. The record of an update is searched for in all that is kept; if it was
 * repeated, its first copy is found.
 * @throws BAD_VALUE for a position that is not kept; as {@link findUpdate}; errors of the source; the reason of the
 * signal.
 */
export async function findRecord(source, point, signal) {
    if (point.kind === "position")
        return await keptRecord(source, point);
    return await findUpdate(source, point, signal);
}
/** Returns the record at a position. @throws BAD_VALUE if the record is not kept. */
async function keptRecord(source, { shard, seq, generation }) {
    checkShard(source, shard);
    const spans = await source.shard(shard).spans();
    const newest = generation ?? spans.at(-1)?.generation ?? 1;
    const held = spans.filter((span) => span.generation === newest);
    const position = { generation: newest, seq };
    if (held.some(({ firstSeq, lastSeq }) => firstSeq <= seq && seq <= lastSeq)) {
        return { shard, position };
    }
    const kept = held.map(({ firstSeq, lastSeq }) => `${firstSeq} to ${lastSeq}`).join(", ");
    throw new PserverError("BAD_VALUE", `record ${showPosition(shard, position)}: expected one that is kept` +
        `${kept === "" ? "" : `, ${kept}`}; received another`, { shard, received: position });
}
//# sourceMappingURL=examine-record.js.map