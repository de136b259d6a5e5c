import { type Deadline } from "../calls/calls.ts";
/**
 * Bounds the bytes under way: requests that do not fit wait in order. A request that its shard refuses for the time
 * being has none under way. It makes place for requests to other shards, and those to its own wait for it.
 */
export declare class ReadWindow {
    #private;
    /** Makes an empty window of so many bytes; how many is asked each time. */
    constructor(bytesMax: () => number);
    /** Bytes under way. */
    get bytes(): number;
    /**
     * Waits until the bytes of a request fit; more bytes than the window has are admitted alone. {@link ReadPlace.leave}
     * must be called when the request is over.
     * @throws what ends the call: at its timeout, what keeps another request of the call from being answered.
     */
    enter(shard: number, bytes: number, deadline: Deadline): Promise<ReadPlace>;
}
/** The place of one request in a {@link ReadWindow}. */
export declare class ReadPlace {
    #private;
    /** `events` are called at most once each. */
    constructor(events: {
        readonly refused: () => void;
        readonly left: (isRefused: boolean) => void;
    });
    /** Notes that the request was refused and is sent again later; until it is over it has no bytes under way. */
    refused(): void;
    /** Gives the place back. For those that wait that is progress. */
    leave(): void;
}
//# sourceMappingURL=read-window.d.ts.map