import { type KvEntry } from "../journal/kv-bucket.ts";
import { Counter } from "./counter.ts";
import type { DeclaredLedger } from "./declared-ledger.ts";
import { type BucketDeps } from "./lock.ts";
import { type Parameter } from "./parameter.ts";
/** Reads the entry of the last block number given; 0 if there is none. @throws BAD_VERSION, JOB_DAMAGED. */
export declare function parseLastNumber(stored: KvEntry | undefined): number;
/**
 * Makes the counter of the numbers of a job's blocks. Should its entry be lost or an older one, as in a job that was
 * made by a fork, the numbers of the known parameters say how far it was.
 */
export declare function blockCounter(deps: BucketDeps, { catalog }: Pick<DeclaredLedger, "catalog">): Counter;
/** Returns a parameter with numbers of its own for its blocks; as it is if it has some. */
export declare function withNumbers({ numbers }: {
    readonly numbers: Counter;
}, parameter: Parameter): Promise<Parameter>;
//# sourceMappingURL=block-numbers.d.ts.map