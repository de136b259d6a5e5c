import { PserverError } from "../../protocol/errors.js";
import { integerField, mapField } from "../../protocol/fields.js";
/** Returns what a person wants to know of a take-over: `folded 1,000 of 5,000 records`. */
export function describeTakeOver({ loadedBytes, folded, records }) {
    if (records === 0)
        return `loaded ${count(loadedBytes)} bytes of its snapshot`;
    return `folded ${count(folded)} of ${count(records)} records`;
}
function count(value) {
    return value.toLocaleString("en");
}
/** Makes the answer to requests for a shard that is being taken over. */
export function takingOver(progress) {
    const { shard, loadedBytes, folded, records } = progress;
    const text = `shard ${shard}: a host takes it over and has ${describeTakeOver(progress)}`;
    return new PserverError("NO_OWNER", text, { shard, takeOver: { loadedBytes, folded, records } });
}
/**
 * Reads the entry `takeOver` of a status or an error's details; undefined if there is none.
 * @throws BAD_MESSAGE if it is malformed.
 */
export function readTakeOver(fields) {
    if (fields["takeOver"] === undefined)
        return undefined;
    const progress = mapField(fields, "takeOver");
    return {
        shard: integerField(fields, "shard"),
        loadedBytes: integerField(progress, "loadedBytes"),
        folded: integerField(progress, "folded"),
        records: integerField(progress, "records"),
    };
}
/** Tells how long take-overs have made no progress. */
export class TakeOverWatch {
    #now;
    #last = "";
    #progressedAtMs;
    /** `now`: in milliseconds, of a clock that does not go back. */
    constructor(now = () => performance.now()) {
        this.#now = now;
        this.#progressedAtMs = now();
    }
    /** Notes how far all take-overs that are waited for have come, or that nothing is known of them. */
    note(progress) {
        const reached = JSON.stringify(progress);
        if (reached === this.#last)
            return;
        this.#last = reached;
        this.#progressedAtMs = this.#now();
    }
    /** Time since the last progress, in milliseconds. */
    get stalledMs() {
        return this.#now() - this.#progressedAtMs;
    }
}
//# sourceMappingURL=take-over.js.map