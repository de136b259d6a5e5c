import { type Encoding } from "../../protocol/dtypes.ts";
import { type PartIndex } from "../../protocol/messages/parts.ts";
import type { Block } from "../fold/block-actor.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
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
//# sourceMappingURL=element-reader.d.ts.map