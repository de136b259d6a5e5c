/**
 * How far ahead of the fold a session may be. A client that waits for its outcomes stays far below, even if its calls
 * end at their deadlines and it sends others.
 */
export declare const BACKLOG_BYTES_MAX: number;
/** A record that was just folded. Times are in milliseconds since 1970, each by the clock of its machine. */
interface FoldedRecord {
    readonly trainer: string;
    readonly session: number;
    readonly payloadBytes: number;
    /** When the broker stored it. */
    readonly storedMs: number;
    readonly foldedMs: number;
}
/**
 * Finds the sessions that send without waiting for their outcomes. When a record is folded, what was folded of its
 * session since the broker has stored it is what the session had in the journal before it, not folded yet.
 */
export declare class BacklogWatch {
    #private;
    /** Takes a record; true, once for each session, if the session was too far ahead of the fold when it sent it. */
    isTooFarAhead({ trainer, session, payloadBytes, storedMs, foldedMs }: FoldedRecord): boolean;
}
export {};
//# sourceMappingURL=backlog-watch.d.ts.map