import { type Position } from "../../protocol/messages/position.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { Requests } from "../wire/wire.ts";
/**
 * A fallback of a shard: its journal was replaced without records that this trainer may have seen or written.
 * The updates in them are undone, although they had been acknowledged.
 */
export interface ShardFallback {
    readonly shard: number;
    /** The generation of the journal that was replaced. */
    readonly generation: number;
    /** Records of that journal: the first and the last known to have been lost. */
    readonly lost: {
        readonly from: number;
        readonly to: number;
    };
}
/** Dependencies of Fallbacks. */
interface FallbacksDeps {
    readonly requests: Requests;
    readonly subjects: JobSubjects;
    readonly trainer: string;
    readonly session: () => number;
    /** Called when a shard has lost records, before the application is told. */
    readonly onLost: (shard: number) => void;
    /** Tells the application; by default a warning of the process. */
    readonly tell?: ((fallback: ShardFallback) => void) | undefined;
}
/**
 * Finds out what was lost when the journal of a shard was replaced, and tells the application once of each
 * loss. Any position of the new journal shows that it was replaced; the shard's owner knows which records of
 * the old one were not kept.
 */
export declare class Fallbacks {
    #private;
    constructor(options: FallbacksDeps);
    /** Begins to ask what was lost of the journal of position `seen`, which has been replaced. */
    replaced(shard: number, seen: Position): void;
    /** Ends all requests. */
    close(): void;
}
export {};
//# sourceMappingURL=fallbacks.d.ts.map