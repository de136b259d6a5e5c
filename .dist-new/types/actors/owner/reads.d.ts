import { type Encoding } from "../../protocol/dtypes.ts";
import { type Fields } from "../../protocol/index.ts";
import { type PartIndex } from "../../protocol/messages/parts.ts";
import { type Block, type BlockName } from "../fold/block-actor.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import type { AnsweredShard, ReadConditions } from "./pending-reads.ts";
import type { Asker, Responder } from "./responder.ts";
/** The elements of a block to read, and their encoding. */
export interface ReadChoice {
    /** The elements; undefined for all. */
    readonly part?: PartIndex | undefined;
    /** Encoding; undefined for that of the block's type. */
    readonly encoding?: Encoding | undefined;
}
/** Reads elements of a block. Their length is known before they are read. */
export declare class ElementReader {
    #private;
    /** Bytes of the encoded elements. */
    readonly bytes: number;
    /**
     * `memory`: that of the block's shard.
     * @throws UNSUPPORTED for an encoding that the block's type does not have.
     */
    constructor(memory: ShardMemory, block: Block, choice: ReadChoice);
    /** Writes the current elements, in order, to {@link bytes} bytes. */
    read(target: Uint8Array): void;
}
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