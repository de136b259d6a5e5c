import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import { type Deadline } from "../calls/calls.ts";
import type { Parameters } from "../calls/parameters.ts";
import type { LinkWindow } from "../core/link-window.ts";
import { type ParameterRead } from "./read-plan.ts";
import { type ReadDeps, type ReadMode } from "./read-requests.ts";
/** Dependencies of BlockReader. */
interface BlockReaderDeps extends ReadDeps {
    readonly parameters: Parameters;
    /** The largest message that the broker takes. */
    readonly payloadBytesMax: () => number;
    /** Bytes that the present connection has received. */
    readonly receivedBytes: () => number;
    /** How much may be asked for at one time, by what the link has brought. */
    readonly link: LinkWindow;
}
/**
 * Reads blocks and parts of blocks. One window bounds the reads of all calls: as much as the link has lately brought in
 * 1.5 s, at most 16 MiB.
 */
export declare class BlockReader {
    #private;
    constructor(options: BlockReaderDeps);
    /**
     * Reads blocks, not all at one moment. Returns undefined for each parameter that was read, and its new
     * description if it was initialized again during the read: its blocks must then be read again in the new
     * layout.
     */
    readAll(reads: readonly ParameterRead[], { encoding, step }: ReadMode, deadline: Deadline): Promise<(ParameterInfo | undefined)[]>;
}
export {};
//# sourceMappingURL=block-reader.d.ts.map