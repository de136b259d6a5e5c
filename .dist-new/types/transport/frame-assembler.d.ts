import { type BufferPool, type Chunk } from "./buffers.ts";
/** Which large messages are lent, and where buffers of their own come from. */
export interface Lending {
    /** Prefix of the subjects of messages that are lent. */
    readonly prefix: string;
    /** Pool of the buffers; may be shared with other connections of the same thread. */
    readonly pool: BufferPool;
}
/**
 * Returns whether a sender's small messages are dropped unread; `sender` is what {@link senderToken} returns.
 */
export type Drops = (sender: string) => boolean;
/**
 * Cuts a broker's bytes at the borders of messages, so that a large payload lies in one buffer. The
 * parser of nats.js then returns a view, and need not gather the payload in a growing buffer. Lent
 * messages of medium size are emitted in place, several in one chunk. Other large messages get a
 * buffer of their own, into which the kernel reads the rest. Small messages are copied, lent or not.
 *
 * Malformed input is never emitted: nats.js would print it and stop reading. Memory for a message is
 * allocated only after its size was compared with what the broker can send.
 *
 * Use: read into {@link target}, then call {@link took} with the number of bytes.
 */
export declare class FrameAssembler {
    #private;
    /** Makes an assembler. `lending` says which large messages are lent; the others own their buffers. */
    constructor(emit: (chunk: Chunk) => void, lending?: Lending, drops?: Drops);
    /** Returns the memory to read the next bytes into. */
    target(): Buffer;
    /**
     * Notes that this many bytes were read into {@link target}.
     * @throws BAD_MESSAGE for malformed input; the connection must then be closed.
     */
    took(bytes: number): void;
}
//# sourceMappingURL=frame-assembler.d.ts.map