import type { EntryProblem, ShardKnowledge } from "../../protocol/index.ts";
import type { Lifecycle } from "./machine.ts";
import { type Parameter } from "./parameter.ts";
/** The entries of a job's bucket that shards know of, as they were read after the shards were asked. */
export interface ComparedEntries {
    readonly job: Lifecycle;
    readonly parameter: (name: string) => Parameter | undefined;
    readonly membersRevision: number;
    /** The last session given. */
    readonly given: number;
    /** The session up to which ended ones were swept. */
    readonly swept: number;
}
/** Returns the entries that contradict what a shard knows. */
export declare function contradictions(entries: ComparedEntries, shard: number, known: ShardKnowledge): EntryProblem[];
//# sourceMappingURL=compare-entries.d.ts.map