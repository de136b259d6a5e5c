import { decodeTape } from "../actors/journal/tape/tape-decoder.js";
import { comparePositions, ensureError } from "../protocol/index.js";
import { tapeDamaged } from "./read-updates.js";
import { END_SEQ, isEndOfGap, spanWith, takeInventory, } from "./source.js";
/**
 * Reads the tape of a shard from its beginning, and finds the messages that cannot be read, and the records of which
 * it has no lines: before, between and after its messages, up to the newest snapshot. The tape must have the lines of
 * all records that a snapshot covers, except for the oldest, which it drops at its limit.
 * @throws BAD_VERSION for lines of a format that this program lacks; errors of the source if it cannot be read now;
 * the reason of the signal.
 */
export async function verifyTape(history, signal) {
    // Listed before the tape is read, which may grow meanwhile.
    const inventory = await takeInventory(history);
    const { shard } = history;
    const problems = [];
    const coverage = new Coverage(inventory, (await history.isTapeTrimmed?.()) ?? false);
    let messages = 0;
    const start = { kind: "time", timeMs: 0 };
    const take = ({ seq, data }) => {
        messages += 1;
        try {
            const { generation, from, to } = decodeTape(data, shard);
            coverage.add({ generation, seq: from }, { generation, seq: to });
        }
        catch (error) {
            const { code, message, details } = ensureError(error);
            if (code === "BAD_VERSION")
                throw error;
            const text = `message ${seq} of the tape of shard ${shard} cannot be read: ${message}`;
            problems.push({ code, message: text, details: { ...details, shard, seq } });
        }
    };
    try {
        for await (const message of history.readTape?.(start, signal) ?? [])
            take(message);
    }
    catch (error) {
        const found = ensureError(error);
        if (found.code !== "BAD_ARCHIVE")
            throw error;
        problems.push(found.toWire());
    }
    if (messages > 0)
        coverage.end();
    return {
        messages,
        problems: [...problems, ...coverage.missing.map((range) => tapeDamaged(range).toWire())],
    };
}
/** Finds the records between those that the messages of a tape cover. */
class Coverage {
    missing = [];
    #inventory;
    #isTrimmed;
    #covered;
    /** `isTrimmed`: whether the lines before the first message were dropped at the tape's limit. */
    constructor(inventory, isTrimmed) {
        this.#inventory = inventory;
        this.#isTrimmed = isTrimmed;
    }
    /** Adds a message: its first record, and the one up to which the tape has all lines with it. */
    add(from, to) {
        const covered = this.#covered;
        if (covered !== undefined && comparePositions(to, covered) <= 0)
            return;
        if (covered !== undefined || !this.#isTrimmed)
            this.#check({ ...from, seq: from.seq - 1 });
        this.#covered = to;
    }
    /** Checks that the newest snapshot is of a record with lines. */
    end() {
        const { gaps, snapshots } = this.#inventory;
        const newest = snapshots.at(-1)?.manifest;
        if (newest === undefined)
            return;
        // An archive whose records come later takes its lines later, too.
        if (spanWith(gaps, { generation: newest.generation, seq: END_SEQ }) !== undefined)
            return;
        this.#check(newest);
    }
    /** Checks that there are lines of all records of a generation up to one. The end of an earlier one is not known. */
    #check({ generation, seq }) {
        const covered = this.#covered?.generation === generation ? this.#covered.seq : 0;
        if (seq <= covered)
            return;
        // Records that were never written have no lines.
        if (isEndOfGap(this.#inventory.spans, { generation, seq }, covered))
            return;
        this.missing.push({ shard: this.#inventory.shard, generation, from: covered + 1, to: seq });
    }
}
//# sourceMappingURL=verify-tape.js.map