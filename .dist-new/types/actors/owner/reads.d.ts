import { type Fields } from "../../protocol/index.ts";
import type { Block, BlockName } from "../fold/block-actor.ts";
import type { AnsweredShard, ReadConditions } from "./pending-reads.ts";
import type { Asker, Responder } from "./responder.ts";
/**
 * Checksums of the values of blocks, computed once for each version: many trainers pull the same
 * version, and the checksum is a third of a pull's cost at the host.
 */
export declare class KnownChecksums {
    #private;
    /** Returns the checksum of all current values of a block; `values` is a copy of them. */
    of(block: Block, values: Uint8Array): number;
}
/** Answers requests for the values of blocks, once the fold has reached the position or step that they name. */
export declare class ServedValues {
    #private;
    constructor(served: AnsweredShard, conditions: ReadConditions, responder: Responder);
    /** Answers a pull of one block, whose message has these fields and, for a part, its index as `data`. */
    pull(asker: Asker, block: BlockName, fields: Fields, data: Uint8Array): void;
    /** Answers a batched read, in chunks. */
    read(asker: Asker, bytes: Uint8Array): void;
}
//# sourceMappingURL=reads.d.ts.map