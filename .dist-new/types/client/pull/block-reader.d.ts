import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import { type Deadline } from "../calls/calls.ts";
import type { Parameters } from "../calls/parameters.ts";
import { type ParameterRead, type PendingBlock, type ReadDeps, type ReadMode } from "./read-requests.ts";
/** Bounds the bytes under way: requests that do not fit wait in order. */
export declare class ByteWindow {
    #private;
    constructor(bytesMax: number);
    /** Bytes under way. */
    get bytes(): number;
    /**
     * Waits until the bytes fit; more bytes than the window has are admitted alone. @throws what ends the call.
     */
    acquire(bytes: number, deadline: Deadline): Promise<void>;
    /** Releases bytes that {@link acquire} has admitted. */
    release(bytes: number): void;
}
/** A request: for one block by its own subject, or for several blocks of a shard. */
export type PlannedRequest = {
    readonly kind: "single";
    readonly block: PendingBlock;
} | {
    readonly kind: "batch";
    readonly shard: number;
    readonly blocks: readonly PendingBlock[];
    /** Bytes of the reply, if every block has changed. */
    readonly bytes: number;
};
/**
 * Divides blocks among requests, in the order of the blocks. One request asks for as many small blocks of a
 * shard as one chunk of a reply takes. A large block has a request of its own, so that large and small ones
 * do not wait for each other.
 * @param payloadBytesMax the largest message that the broker takes.
 */
export declare function planRequests(blocks: readonly PendingBlock[], payloadBytesMax: number): PlannedRequest[];
/** Dependencies of BlockReader. */
interface BlockReaderDeps extends ReadDeps {
    readonly parameters: Parameters;
    /** The largest message that the broker takes. */
    readonly payloadBytesMax: () => number;
}
/** Reads blocks and parts of blocks. One window of 16 MiB bounds the reads of all calls. */
export declare class BlockReader {
    #private;
    constructor(options: BlockReaderDeps);
    /**
     * Reads blocks, not all at one moment. Returns undefined for each parameter that was read, and its new
     * description if it was initialized again during the read: its blocks must then be read again in the new
     * layout.
     */
    readAll(parameters: readonly ParameterRead[], mode: ReadMode, deadline: Deadline): Promise<(ParameterInfo | undefined)[]>;
}
export {};
//# sourceMappingURL=block-reader.d.ts.map