import { type Encoding } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { BlockPlace } from "../../protocol/layout.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import { type BlockRows, type PartIndex } from "../../protocol/messages/parts.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { Deadline } from "../calls/calls.ts";
import type { SeenVersions } from "../calls/parameters.ts";
import type { Positions } from "../core/shard-window.ts";
import type { Steps } from "../io/steps.ts";
import { type Requests } from "../wire/wire.ts";
/** Dependencies of {@link readSingle} and {@link readBatch}. */
export interface ReadDeps {
    readonly requests: Requests;
    readonly subjects: JobSubjects;
    readonly trainer: string;
    readonly positions: Positions;
    readonly seen: SeenVersions;
    /**
     * The steps that reads wait for; there is none while the trainer is not a member, as after a shard has
     * undone steps.
     */
    readonly steps: Pick<Steps, "readStep" | "noteClosed" | "lostPlace">;
}
/**
 * Reads one block by its own subject. Returns undefined when it has come, or an error after which it can be
 * asked for again.
 */
export declare function readSingle(deps: ReadDeps, block: PendingBlock, { encoding, step }: ReadMode, deadline: Deadline): Promise<PserverError | undefined>;
/**
 * Reads blocks of one shard by one request. Returns undefined when all have come, or an error after which the
 * missing ones can be asked for again.
 */
export declare function readBatch(deps: ReadDeps, shard: number, blocks: readonly PendingBlock[], { encoding, step }: ReadMode, deadline: Deadline): Promise<PserverError | undefined>;
/** The state of a block that was read. */
export interface BlockState {
    /** Version of the block under the parameter's epoch. */
    readonly version: number;
    /** Generation of the shard's journal: another one may give the same version to other values. */
    readonly generation: number;
}
/** A block or part of a block to read. */
export interface BlockRead {
    readonly place: BlockPlace;
    /** Number of elements in the reply. */
    readonly elements: number;
    /** The elements wanted; undefined for all. */
    readonly index?: PartIndex | undefined;
    /** The state whose values the caller has: the answer may be that it has not changed. */
    readonly known?: BlockState | undefined;
    /**
     * Receives the elements, still encoded, and the block's state; the bytes are valid during the call only.
     * They are undefined if the block still has the known state.
     */
    readonly take: (data: Uint8Array | undefined, state: BlockState) => void;
}
/** Blocks of one parameter to read under one epoch. */
export interface ParameterRead {
    readonly info: ParameterInfo;
    readonly blocks: readonly BlockRead[];
}
/** How a call reads every block. */
export interface ReadMode {
    readonly encoding?: Encoding | undefined;
    /** The step that must have closed before; undefined for none. */
    readonly step?: number | undefined;
}
/** A {@link ParameterRead} under way. */
export interface PendingParameter {
    readonly info: ParameterInfo;
    /**
     * The new description of a parameter that was initialized again during the read; what was read of the old
     * one is of no use.
     */
    replacedBy: ParameterInfo | undefined;
}
/** A {@link BlockRead} under way. */
export interface PendingBlock {
    readonly parameter: PendingParameter;
    readonly read: BlockRead;
    /** Bytes of its values in a reply. */
    readonly bytes: number;
    /** The rows of the block; not used if the whole block is read. */
    readonly rows: BlockRows;
    isDone: boolean;
}
/** Lists the blocks of one parameter, to be read. */
export declare function pendingBlocks(parameter: PendingParameter, blocks: readonly BlockRead[], encoding: Encoding | undefined): PendingBlock[];
/** Returns whether a block is still to be read. */
export declare function isWanted({ isDone, parameter }: PendingBlock): boolean;
//# sourceMappingURL=read-requests.d.ts.map