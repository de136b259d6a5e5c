import { type BeginReply, type LifecycleState, type Position } from "../../protocol/index.ts";
import { BucketEntry } from "./lock.ts";
/** A position in one shard's journal. */
export interface ShardPosition extends Position {
    readonly shard: number;
}
/** The lifecycle of a job or of one parameter, as plain data. */
export interface Lifecycle {
    readonly state: LifecycleState;
    readonly context: LifecycleContext;
}
/** Context of the machine. `trainer` and `session` are those of the present or last initializer. */
export interface LifecycleContext {
    /** Number of initializations so far. */
    readonly epoch: number;
    readonly trainer: string;
    readonly session: number;
    /** Ends of the journals at the finish; empty before. */
    readonly at: readonly ShardPosition[];
    /** Revision of the bucket up to which entries of parameters belong to the finished job; 0 before the finish. */
    readonly sealed: number;
    /** How often parameters that were ready have changed: by a rewind, or because their blocks were lost. */
    readonly revised: number;
}
/** Events of a lifecycle. */
export type LifecycleEvent = 
/** `replace`: the session that initializes is known to be gone. */
{
    readonly type: "BEGIN";
    readonly trainer: string;
    readonly session: number;
    readonly replace: boolean;
} | {
    readonly type: "FINISH";
    readonly session: number;
    readonly epoch: number;
    readonly at: readonly ShardPosition[];
    readonly sealed: number;
} | {
    readonly type: "ABORT";
    readonly session: number;
    readonly epoch: number;
    readonly replace: boolean;
}
/** Blocks of what was ready are lost for good. `isSomeLeft`: whether some of its parameters still have theirs. */
 | {
    readonly type: "LOSE";
    readonly isSomeLeft: boolean;
};
/** A lifecycle in which nothing has happened. */
export declare const UNINITIALIZED: Lifecycle;
/**
 * Returns the lifecycle after an event, without changing the given one. Returns the given one itself if its state or
 * a guard does not accept the event.
 */
export declare function advance(lifecycle: Lifecycle, event: LifecycleEvent): Lifecycle;
/** Whether this session is selected: the one that initializes. */
export declare function isSelected(lifecycle: Lifecycle, session: number): boolean;
/** Returns a lifecycle as its entry holds it: `{format, value, context}`, readable JSON. */
export declare function toLifecycleEntry(lifecycle: Lifecycle): unknown;
/**
 * Reads the lifecycle from an entry; {@link UNINITIALIZED} if there is none.
 * @throws BAD_VERSION for an entry of another format, INTERNAL for a damaged one.
 */
export declare function parseLifecycleEntry(value: unknown, key: string): Lifecycle;
/** The entry of the job's lifecycle. */
export declare const jobEntry: BucketEntry<Lifecycle, Lifecycle>;
/** Makes the reply to a verb on the lifecycle of a job or of one parameter. */
export declare function beginReply(lifecycle: Lifecycle, selected: boolean): BeginReply;
//# sourceMappingURL=machine.d.ts.map