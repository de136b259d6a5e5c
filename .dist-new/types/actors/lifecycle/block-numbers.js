import { BLOCK_NUMBER_MAX, integerField, PserverError } from "../../protocol/index.js";
import { ENTRY_FORMAT, readEntry } from "../journal/kv-bucket.js";
import { Counter } from "./counter.js";
import { BLOCKS_KEY, BucketEntry } from "./lock.js";
import { UNNUMBERED } from "./parameter.js";
const LAST_NUMBER = new BucketEntry(BLOCKS_KEY, parseLastNumber, (last) => ({
    format: ENTRY_FORMAT,
    last,
}));
/** Reads the entry of the last block number given; 0 if there is none. @throws BAD_VERSION, JOB_DAMAGED. */
export function parseLastNumber(stored) {
    if (stored === undefined)
        return 0;
    return readEntry(stored.value, BLOCKS_KEY, (fields) => integerField(fields, "last", 1));
}
/**
 * Makes the counter of the numbers of a job's blocks. Should its entry be lost or an older one, as in a job that was
 * made by a fork, the numbers of the known parameters say how far it was.
 */
export function blockCounter(deps, { catalog }) {
    return new Counter({
        ...deps,
        entry: LAST_NUMBER,
        floor: () => catalog.all().reduce((last, parameter) => Math.max(last, lastOf(parameter)), 0),
        check: (last) => {
            if (last <= BLOCK_NUMBER_MAX)
                return;
            const text = `a job: expected at most ${BLOCK_NUMBER_MAX} blocks to be declared; received ${last}`;
            throw new PserverError("TOO_LARGE", text, { expected: BLOCK_NUMBER_MAX, received: last });
        },
    });
}
function lastOf({ firstNumber, layout }) {
    return firstNumber + layout.blocks - 1;
}
/** Returns a parameter with numbers of its own for its blocks; as it is if it has some. */
export async function withNumbers({ numbers }, parameter) {
    if (parameter.firstNumber !== UNNUMBERED)
        return parameter;
    return { ...parameter, firstNumber: await numbers.take(parameter.layout.blocks) };
}
//# sourceMappingURL=block-numbers.js.map