import type { Clock } from "../concurrent.ts";
import type { KvBucket } from "../journal/kv-bucket.ts";
/** Dependencies of {@link JoinedTrainers}. */
interface JoinedTrainersDeps {
    readonly bucket: Pick<KvBucket, "keys">;
    readonly clock: Clock;
    readonly leaseMs: number;
}
/**
 * Bounds the trainers that have an entry in the job's bucket: one id has one entry and one lease, but whoever may use
 * any id could make them without end. Counts those that join through this host exactly, and others as of at most a
 * second ago, by which the job may have more.
 */
export declare class JoinedTrainers {
    #private;
    constructor(deps: JoinedTrainersDeps);
    /**
     * Makes sure that the job has a place for a trainer that has none. `sweep` removes the entries of those whose
     * sessions have ended; it is called at most once in a lease time.
     * @throws TOO_MANY_TRAINERS if all places are taken by live trainers; the errors of `sweep` and {@link KvBucket}.
     */
    require(sweep: () => Promise<unknown>): Promise<void>;
}
export {};
//# sourceMappingURL=joined-trainers.d.ts.map