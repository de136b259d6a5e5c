import { type Encoding } from "../../protocol/dtypes.ts";
import type { WantedEntries } from "../../protocol/messages/batch-reads.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import type { PartIndex } from "../../protocol/messages/parts.ts";
import type { ReceivedValues } from "./received-values.ts";
/** The state of a block that was read. */
export interface BlockState {
    /** Version of the block under the parameter's epoch. */
    readonly version: number;
    /** Generation of the shard's journal: another one may give the same version to other values. */
    readonly generation: number;
}
/** Blocks of one parameter, or parts of them, to read under one epoch; each is an entry. */
export interface ParameterRead {
    readonly info: ParameterInfo;
    /** Number of entries. */
    readonly entries: number;
    /** Returns the index of an entry's block in the parameter. */
    blockOf(entry: number): number;
    /** Returns the elements wanted of an entry's block; undefined for all. */
    partOf(entry: number): PartIndex | undefined;
    /** Returns the number of elements of an entry in the reply. */
    elementsOf(entry: number): number;
    /** Returns the state whose values the caller has, if any: the answer may be that it has not changed. */
    knownOf(entry: number): BlockState | undefined;
    /**
     * Receives the elements of an entry, which begin at a byte of the values, and the block's state. The values are
     * undefined if the block still has the known state; they are valid during the call only.
     */
    take(entry: number, values: ReceivedValues | undefined, at: number, state: BlockState): void;
}
/** The reads of a call. */
export declare class PendingReads {
    readonly reads: readonly ParameterRead[];
    readonly encoding: Encoding | undefined;
    /** New descriptions of parameters that were initialized again meanwhile: what was read of the old ones is of no use. */
    readonly replacedBy: (ParameterInfo | undefined)[];
    constructor(reads: readonly ParameterRead[], encoding: Encoding | undefined);
    /** Returns the bytes of an entry's values in a reply. */
    bytesOf(place: number, entry: number): number;
}
/** A request for one entry of a read, by the subject of its block. */
export interface SingleRequest {
    readonly kind: "single";
    /** Place of the read in the call. */
    readonly place: number;
    readonly entry: number;
    readonly bytes: number;
    isDone: boolean;
}
/** A request for many entries of one shard, in columns. */
export declare class BatchRequest {
    #private;
    readonly kind = "batch";
    readonly shard: number;
    /** Places of the reads in the call, and which entries of them. */
    readonly places: number[];
    readonly entries: number[];
    /** Numbers of the blocks. */
    readonly numbers: number[];
    /** Bytes of the values of each entry. */
    readonly sizes: number[];
    /** Bytes of the reply, if every block has changed. */
    bytes: number;
    /** Expected bytes of the reply. */
    expectedBytes: number;
    /** Numbers in the lists of parts. */
    listed: number;
    constructor(shard: number);
    /** Number of entries. */
    get length(): number;
    add(pending: PendingReads, place: number, entry: number, bytes: number): void;
    isDone(i: number): boolean;
    done(i: number): void;
    /** Returns a request for what is still wanted; undefined if nothing is. */
    rest(pending: PendingReads): BatchRequest | undefined;
    /** Returns the columns of the request, whose position is of this generation. */
    wanted({ reads }: PendingReads, generation: number): WantedEntries;
}
/** A request for one entry by the subject of its block, or for several entries of a shard. */
export type PlannedRequest = SingleRequest | BatchRequest;
/**
 * Divides entries among requests, in their order. One request asks for as many small blocks of a shard as one chunk of
 * a reply takes. A large block has a request of its own, so that large and small ones do not wait for each other.
 * @param payloadBytesMax the largest message that the broker takes.
 */
export declare function planRequests(pending: PendingReads, payloadBytesMax: number): PlannedRequest[];
/** Names the block of an entry, for messages and subjects. */
export declare function blockOfEntry({ reads }: PendingReads, { place, entry }: Pick<SingleRequest, "place" | "entry">): {
    readonly read: ParameterRead;
    readonly index: number;
    readonly shard: number;
};
//# sourceMappingURL=read-plan.d.ts.map