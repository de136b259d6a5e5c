import { type Allocate, type BatchRead } from "../../protocol/index.ts";
import type { AnsweredShard } from "./pending-reads.ts";
import type { Chunk, Responder } from "./responder.ts";
/** Copies the columns of a request, which may be views of a buffer that is reused. */
export declare function keptRead(request: BatchRead): BatchRead;
/**
 * Answers one batched read, chunk by chunk. Each chunk is made of the fold's state at that moment; all entries are
 * checked before the first.
 */
export declare class ServedRead {
    #private;
    /** The columns of the request must stay as they are until the last chunk. */
    constructor(served: AnsweredShard, responder: Pick<Responder, "payloadBytesMax">, request: BatchRead);
    /**
     * Makes the next chunk: as many entries as take about 1 MiB, at least one.
     * @throws STALE_EPOCH, BAD_INDEX, UNSUPPORTED naming the entry; TOO_LARGE for more than 16 MiB.
     */
    next(allocate: Allocate): Chunk;
}
//# sourceMappingURL=served-read.d.ts.map