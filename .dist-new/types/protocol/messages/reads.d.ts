import { type Allocate, type DraftMessage, type Fields, type Message } from "../codec.ts";
import type { Dtype, Encoding } from "../dtypes.ts";
import { type BlockRows, type PartCounts, type PartIndex } from "./parts.ts";
import { type Position } from "./position.ts";
/**
 * When and how a request for values is answered: once the shard has folded up to the position (generation 1, seq 0
 * for "whatever is there"), or with TIMEOUT after `waitMs`.
 */
export interface ReadTerms extends Position {
    readonly waitMs: number;
    /** The step that must have closed in the shard; absent for none. */
    readonly step?: number;
    /** Encoding wanted for all elements; absent for the type of each block. */
    readonly encoding?: Encoding;
}
/** Asks a block actor for its values under an epoch. */
export interface PullRequest extends ReadTerms {
    readonly epoch: number;
    /** Set if only some elements are wanted: their index is the bytes of the request. */
    readonly part?: PartCounts;
}
/** A block's values, as its reply carries them; `data` is a view of the received buffer. */
export interface PullReply extends Position {
    readonly epoch: number;
    /** Element type of the block. */
    readonly dtype: Dtype;
    /** How the elements are written, if not as the type says. */
    readonly encoding?: Encoding;
    readonly version: number;
    /** The elements asked for, in the order of the index. */
    readonly data: Uint8Array;
}
/** Longest time that a request may wait at the host; clients repeat it until their own deadline. */
export declare const PULL_WAIT_MS_MAX = 10000;
/** Writes a pull as a message; `index` belongs to `request.part`. */
export declare function encodePullRequest(request: PullRequest, index?: PartIndex): Uint8Array;
/** @throws BAD_MESSAGE if the fields are not a valid pull. */
export declare function parsePullRequest(fields: Fields): PullRequest;
/** Reads the terms of a request for values; @throws BAD_MESSAGE if the fields are not valid. */
export declare function parseReadTerms(fields: Fields): ReadTerms;
/** Begins a reply with room for the values; fill and seal it as {@link DraftMessage} says. */
export declare function draftPullReply(reply: Omit<PullReply, "data">, dataBytes: number, allocate?: Allocate): DraftMessage;
/** @throws BAD_MESSAGE if the message is not a valid pull reply, or the error that the message carries. */
export declare function parsePullReply(message: Message): PullReply;
/**
 * Bytes of values that a batched read of several entries may ask for: as many as a client lets be under way.
 */
export declare const READ_BYTES_MAX: number;
/** The header of a batched read: everything but its entries. */
export interface BatchReadHeader extends ReadTerms {
    /** Number of the first entry wanted: the reader has those before it already. Absent for 0. */
    readonly from?: number;
}
/** An entry as its sender knows it. */
export interface WantedEntry {
    readonly parameter: string;
    readonly epoch: number;
    /** Number of the block. */
    readonly block: number;
    /** The elements wanted; undefined for all. */
    readonly index: PartIndex | undefined;
    /** The rows of the block, which decide how the index is packed. */
    readonly rows: BlockRows;
    /** Version of the block that the sender has; 0 for none. */
    readonly have: number;
}
/** An entry as its receiver knows it. */
export interface ReadEntry {
    readonly parameter: string;
    readonly epoch: number;
    readonly block: number;
    readonly part: PartCounts | undefined;
    /** Version of the block that the reader has; 0 for none. */
    readonly have: number;
    /** Number of its group in the request. */
    readonly group: number;
    /** Its number within the group. */
    readonly place: number;
}
/** A batched read as its receiver knows it. */
export interface BatchRead extends BatchReadHeader {
    readonly from: number;
    readonly entries: readonly ReadEntry[];
    /** The packed indices of the entries that are parts, in their order: a view of the message. */
    readonly data: Uint8Array;
}
/** Writes a batched read as a message. Entries of one parameter should follow each other. */
export declare function encodeBatchRead(header: BatchReadHeader, entries: readonly WantedEntry[]): Uint8Array;
/**
 * Reads a batched read. Its `data` is not read here, because that takes the rows of the blocks.
 * @throws BAD_MESSAGE, naming the entry that is malformed; EMPTY if it has none; TOO_LARGE if it has more
 * entries or bytes before `data` than a limit allows; as {@link decodeMessage} does.
 */
export declare function decodeBatchRead(bytes: Uint8Array): BatchRead;
/** Names the place of an entry in its request, for messages. */
export declare function entryLabel({ group, place }: Pick<ReadEntry, "group" | "place">): string;
/**
 * A chunk of the reply to a batched read: some consecutive entries, as the fold had them at the chunk's
 * position.
 */
export interface ReadChunkHeader extends Position {
    /** Number of its first entry. */
    readonly from: number;
    /** Whether further chunks follow. */
    readonly more: boolean;
    /** The version of each entry; 0 if the reader has it, and no bytes follow. */
    readonly versions: readonly number[];
}
/** A received chunk; `data` is a view of the received buffer. */
export interface ReadChunk extends ReadChunkHeader {
    /** The values of its entries, each with zeros up to a multiple of 8 bytes. */
    readonly data: Uint8Array;
}
/** Begins a chunk with room for the values; fill and seal it as {@link DraftMessage} says. */
export declare function draftReadChunk({ from, more, generation, seq, versions }: ReadChunkHeader, dataBytes: number, allocate?: Allocate): DraftMessage;
/** @throws BAD_MESSAGE if the message is not a valid chunk, or the error that the message carries. */
export declare function parseReadChunk({ fields, data }: Message): ReadChunk;
/**
 * Asks a shard how far its members are. The shard answers once it has folded up to the position, knows the
 * members of this revision or a later one, and has closed `step`; after `waitMs` it answers TIMEOUT.
 */
export interface StepRequest extends Position {
    readonly revision: number;
    /** The step that must have closed; 0 for none. */
    readonly step: number;
    readonly waitMs: number;
}
/** Progress of a job's members, as one shard knows it. */
export interface StepReply extends Position {
    readonly revision: number;
    /** The last step that has closed; 0 before the first. */
    readonly step: number;
    /** Some of the members that have not ended the step after it, in the order of their ids. */
    readonly waitingFor: readonly string[];
}
/** Most members that a reply names. */
export declare const WAITING_FOR_MAX = 16;
/** Writes a step request as a message. */
export declare function encodeStepRequest(request: StepRequest): Uint8Array;
/** @throws BAD_MESSAGE if the fields are not a valid step request. */
export declare function parseStepRequest(fields: Fields): StepRequest;
/** Writes a step reply as a message. */
export declare function encodeStepReply(reply: StepReply): Uint8Array;
/** @throws BAD_MESSAGE if the message is not a valid step reply, or the error that the message carries. */
export declare function parseStepReply({ fields }: Message): StepReply;
/** Versions of a parameter's blocks. A block has version 1 after its `init`; each change adds 1. */
export interface BlockVersions {
    /** The lowest version of a block. */
    readonly least: number;
    /** The highest version of a block. */
    readonly most: number;
    /** Changes of blocks since their `init`: the sum of their versions, less 1 for each. */
    readonly updates: number;
}
/** Versions of the blocks that one shard holds of a parameter. */
export interface ShardVersions extends BlockVersions {
    /** Number of these blocks; if it is 0, so are the other numbers. */
    readonly blocks: number;
}
/** A parameter, and the epoch of the blocks to be counted. */
export interface WantedVersions {
    readonly parameter: string;
    readonly epoch: number;
}
/** Answer to `versions`. */
export interface VersionsReply {
    /**
     * In the order of the request; null for a parameter that is not initialized, or whose versions are not
     * known now.
     */
    readonly versions: readonly (BlockVersions | null)[];
    /** Shards whose owners have not answered, by number. */
    readonly silent: readonly number[];
}
/**
 * Reads the names that a `versions` request asks for, at most 256.
 * @throws BAD_MESSAGE or BAD_NAME.
 */
export declare function parseVersionsRequest(fields: Fields): string[];
/** Returns the entries of a reply to `versions`. */
export declare function versionsReply({ versions, silent }: VersionsReply): Fields;
/**
 * Reads the reply to a request for `count` names.
 * @throws BAD_MESSAGE if it is not valid.
 */
export declare function parseVersionsReply(fields: Fields, count: number): VersionsReply;
/** Returns the entries of a host's request to an owner. */
export declare function shardVersionsRequest(wanted: readonly WantedVersions[]): Fields;
/**
 * Reads the parameters that a host asks an owner for, at most 256.
 * @throws BAD_MESSAGE or BAD_NAME.
 */
export declare function parseShardVersionsRequest(fields: Fields): WantedVersions[];
/** Returns the entries of an owner's reply. */
export declare function shardVersionsReply(versions: readonly ShardVersions[]): Fields;
/**
 * Reads an owner's reply to a request for `count` parameters.
 * @throws BAD_MESSAGE if it is not valid.
 */
export declare function parseShardVersionsReply(fields: Fields, count: number): ShardVersions[];
//# sourceMappingURL=reads.d.ts.map