import { ERROR_CODES, reactionToRejection, } from "../../protocol/errors.js";
/** Returns the position that a failure expected; numbers that it does not name are 0. */
export function expectedPosition({ details }) {
    const { generation, seq } = (details["expected"] ?? {});
    return {
        generation: typeof generation === "number" ? generation : 0,
        seq: typeof seq === "number" ? seq : 0,
    };
}
/** Returns the session that is over according to a failure; 0 if it names none. */
export function receivedSession({ details }) {
    const { received } = details;
    return typeof received === "number" ? received : 0;
}
/** The first delay before a record that the broker has refused is published again. */
const RETRY_FIRST_MS = 50;
/** Makes a call with its updates, none of them sent. */
export function newUpdateCall(id, mode, sizes) {
    const updates = [];
    const call = {
        id,
        mode,
        updates,
        pending: 0,
        applied: 0,
        late: 0,
        unknown: 0,
        unsent: 0,
        rejected: undefined,
        rejection: undefined,
        obstacle: undefined,
        end: undefined,
    };
    for (const size of sizes) {
        updates.push(newBlockUpdate(call, updates.length, size));
        call.pending += size.blocks;
    }
    return call;
}
function newBlockUpdate(call, index, size) {
    return {
        call,
        index,
        shard: size.shard,
        blocks: size.blocks,
        dataBytes: size.dataBytes,
        namesVersion: size.namesVersion,
        fate: "pending",
        n: 0,
        isOpen: false,
        isRejoined: false,
        slot: -1,
        serial: 0,
        hasMessage: false,
        sends: 0,
        refusals: 0,
        sendNumber: 0,
        sentAtMs: 0,
        storedBytesBefore: 0,
        readAtMs: Number.POSITIVE_INFINITY,
        retryAtMs: Number.POSITIVE_INFINITY,
        retryDelayMs: RETRY_FIRST_MS,
        obstacle: undefined,
        storedGeneration: 0,
        storedSeq: 0,
        askAtMs: Number.POSITIVE_INFINITY,
        previous: undefined,
        next: undefined,
    };
}
/** Resets an update as if it had never been sent. It must be in no list, not open and not in flight. */
export function resetUpdate(update) {
    update.n = 0;
    update.isRejoined = false;
    update.sends = 0;
    update.refusals = 0;
    update.retryAtMs = Number.POSITIVE_INFINITY;
    update.retryDelayMs = RETRY_FIRST_MS;
    update.obstacle = undefined;
    update.storedGeneration = 0;
    update.storedSeq = 0;
    update.askAtMs = Number.POSITIVE_INFINITY;
}
/** Returns whether the broker has refused every publication of the update. */
export function isStoredNowhere(update) {
    return update.storedGeneration === 0 && update.sends === update.refusals;
}
/** Returns whether an update of the call is still to be stored. */
export function hasUnstored(call) {
    return call.updates.some(({ fate, storedGeneration }) => {
        return fate === "pending" && storedGeneration === 0;
    });
}
/** Returns whether every update of the call has its fate. */
export function isOver(call) {
    return call.pending === 0;
}
/**
 * Returns whether the call has failed. Its error is the rejection, or is made from the unknown and unsent
 * updates.
 */
export function hasFailed(call) {
    return call.rejection !== undefined || call.unknown > 0 || call.unsent > 0;
}
/** Notes that the update was applied, or stored if that is enough. */
export function applied(update) {
    update.fate = "applied";
    update.call.applied += update.blocks;
    update.call.pending -= update.blocks;
}
/** Notes the outcome of the update; the first rejection is the error of the call. */
export function settled(update, { code, message = "" }) {
    const { call } = update;
    const reaction = code === undefined ? undefined : reactionToRejection(code);
    if (code === undefined || (reaction === "count-present" && call.mode.countsPresent)) {
        applied(update);
    }
    else if (reaction === "count-late" && call.mode.countsLate) {
        update.fate = "late";
        call.late += update.blocks;
        call.pending -= update.blocks;
    }
    else {
        const text = message === "" ? ERROR_CODES[code].meaning : message;
        rejected(update, { code, message: text, details: {} });
    }
}
/** Notes that the update will never be applied. */
export function rejected(update, failure) {
    const { call } = update;
    update.fate = "rejected";
    call.pending -= update.blocks;
    if (call.rejection !== undefined)
        return;
    call.rejected = update;
    call.rejection = failure;
}
/** Notes that the update was given up, and may have been stored. */
export function unknown(update) {
    update.fate = "unknown";
    update.call.unknown += update.blocks;
    update.call.pending -= update.blocks;
}
/** Notes that the update was given up, and is not stored. */
export function unsent(update, obstacle) {
    const { call } = update;
    update.fate = "unsent";
    call.unsent += update.blocks;
    call.pending -= update.blocks;
    call.obstacle ??= obstacle;
}
/** Notes what ended the call or the session before every update had its fate; only the first end counts. */
export function ended(call, end) {
    call.end ??= end;
}
//# sourceMappingURL=update-call.js.map