import { type Fields } from "../../protocol/index.ts";
import { type TakeOverProgress } from "../owner/take-over.ts";
/** Dependencies of {@link TakeOvers}. */
interface TakeOversDeps {
    /** Id of the host. */
    readonly host: string;
    /** Returns the last statuses of the host's shards. */
    readonly statuses: () => readonly Fields[];
    /** Called every few seconds for each take-over that lasts and has come further. */
    readonly onProgress: (progress: TakeOverProgress) => void;
}
/** Follows how far a host has come with taking shards over, reports that, and waits for it. */
export declare class TakeOvers {
    #private;
    constructor(deps: TakeOversDeps);
    /** Begins to report. */
    start(): void;
    stop(): void;
    /**
     * Settles when `isDone` returns true. How long that takes depends on snapshots and on the records after them, so it
     * has no deadline while any take-over progresses.
     * @throws TIMEOUT after `stallMs` without progress; what `isDone` throws.
     */
    until(isDone: () => boolean, stallMs: number): Promise<void>;
}
export {};
//# sourceMappingURL=take-overs.d.ts.map