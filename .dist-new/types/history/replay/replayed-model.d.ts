import type { BlockHeader } from "../../actors/fold/block-actor.ts";
import { type Shard } from "../../actors/fold/shard.ts";
import type { ParameterConfig } from "../../protocol/config/index.ts";
import { type Dtype } from "../../protocol/dtypes.ts";
import { type Position, type Tensor } from "../../protocol/index.ts";
import type { ShardHistory } from "../source.ts";
/** A shard as it was at a position. */
export interface ReplayedShard {
    readonly shard: number;
    readonly position: Position;
    /**
     * Folds further, to a later position; does nothing if it is there already.
     * @throws JOURNAL_REPLACED for a position of another generation; else as `foldRecords`.
     */
    advance(to: Position): Promise<void>;
    /** Its blocks without their bytes, by parameter and index. */
    readonly blocks: readonly BlockHeader[];
    /** Returns the SHA-256, in hex, of its whole state: equal if and only if the shards are. */
    digest(): Promise<string>;
    /** Returns the SHA-256, in hex, of its state without values and slots. */
    stateDigest(): Promise<string>;
    /** Returns the SHA-256, in hex, of a block's values and slots; undefined if it has no such block. */
    blockDigest(parameter: string, index: number): Promise<string | undefined>;
    /**
     * Returns a copy of the bytes of a block: slot 0 is the values, those from 1 on are what updates keep.
     * @throws UNKNOWN_PARAMETER if it has no such block, BAD_VALUE if the block has no such slot.
     */
    slot(parameter: string, index: number, slot: number): Promise<Uint8Array<ArrayBuffer>>;
    /** Frees its memory. It must not be used afterwards. */
    free(): Promise<void>;
}
/** A replayed shard of this thread. */
export declare class LocalReplayedShard implements ReplayedShard {
    #private;
    readonly shard: number;
    /** `state`: the shard; `generation`: that of its journal; `history`: where its records are read. */
    constructor(state: Shard, generation: number, history: ShardHistory, signal: AbortSignal);
    get position(): Position;
    advance(to: Position): Promise<void>;
    get blocks(): readonly BlockHeader[];
    digest(): Promise<string>;
    stateDigest(): Promise<string>;
    blockDigest(parameter: string, index: number): Promise<string | undefined>;
    slot(parameter: string, index: number, slot: number): Promise<Uint8Array<ArrayBuffer>>;
    free(): Promise<void>;
}
/** A block of a replayed parameter, and the shard that has it. */
export interface ReplayedBlock extends BlockHeader {
    readonly shard: ReplayedShard;
}
/** A parameter as it was at a cut. */
export interface ReplayedParameter {
    readonly name: string;
    readonly dtype: Dtype;
    readonly shape: readonly number[];
    readonly epoch: number;
    readonly config: ParameterConfig;
    /** Its blocks, by index; only those of its newest epoch. */
    readonly blocks: readonly ReplayedBlock[];
    /** Whether all of its elements had been initialized. */
    readonly isComplete: boolean;
}
/** The model of a job as it was at a cut: the blocks of its shards joined to parameters. */
export declare class ReplayedModel {
    #private;
    readonly shards: readonly ReplayedShard[];
    constructor(shards: readonly ReplayedShard[]);
    /** All parameters, by name, including those that were being initialized. */
    get parameters(): ReplayedParameter[];
    /** Returns a parameter. @throws UNKNOWN_PARAMETER, or NOT_INITIALIZED if only some of its blocks were. */
    parameter(name: string): ReplayedParameter;
    /** Returns the values of a parameter. @throws as {@link parameter}. */
    tensor(name: string): Promise<Tensor>;
    /** Yields the bytes of a parameter's values, or of a slot of its optimizer, block by block, in C order. */
    chunks({ name, blocks }: ReplayedParameter, slot?: number): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined>;
    /** Frees the memory of its shards. It must not be used afterwards. */
    free(): Promise<void>;
}
/** Returns the bytes of a parameter's values. */
export declare function parameterBytes({ dtype, shape }: ReplayedParameter): number;
//# sourceMappingURL=replayed-model.d.ts.map