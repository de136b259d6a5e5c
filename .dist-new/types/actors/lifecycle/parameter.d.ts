import { type Declaration, type Fields, type Layout, type LifecycleState, type ParameterInfo } from "../../protocol/index.ts";
import type { JobSettings } from "../job/job-settings.ts";
import { type KvBucket, type KvEntry } from "../journal/kv-bucket.ts";
import { type BucketDeps, BucketEntry } from "./lock.ts";
import { type Lifecycle, type ShardPosition } from "./machine.ts";
/** A parameter as its entry holds it. The epoch of its blocks is that of its own lifecycle. */
export interface Parameter {
    readonly declaration: Declaration;
    readonly layout: Layout;
    /** The most blocks it had under any epoch: blocks of an earlier layout may still exist. */
    readonly blocksMax: number;
    /** Epoch of the job's initialization that declared it; 0 if it was created by itself. */
    readonly jobEpoch: number;
    readonly lifecycle: Lifecycle;
    /** Revision of the entry; 0 if it has not been written yet. */
    readonly revision: number;
}
/** Dependencies of a parameter's layout, besides its declaration. */
interface LayoutDeps {
    readonly job: JobSettings;
    readonly maxPayloadBytes: number;
}
/**
 * Returns the parameter with the declaration of a new initialization, its lifecycle unchanged. `place` gets the
 * layout of a new parameter, on the shard of the name's hash, and returns it on the shard where it belongs. A known
 * parameter keeps its first shard: blocks of an earlier layout are looked for nowhere else.
 * @throws TOO_LARGE if the shards could not hold even this parameter alone.
 */
export declare function redeclare(deps: LayoutDeps, known: Parameter | undefined, declaration: Declaration, place?: (hashed: Layout) => Layout): Parameter;
/**
 * Returns the state of a parameter, given the job's. A parameter that was declared for the job follows the job. It is
 * "uninitialized" if that initialization ended without a finish, or if it was written after `finish` had read the
 * declarations (see `sealed`).
 */
export declare function effectiveState(parameter: Parameter, job: Lifecycle): LifecycleState;
/** Returns the parameter as replies carry it. */
export declare function infoOf(parameter: Parameter, job: Lifecycle): ParameterInfo;
/** Returns the ends of the journals when the parameter became ready; none before. */
export declare function readyAt(parameter: Parameter, job: Lifecycle): readonly ShardPosition[];
/** Makes the entries of a reply about one parameter. */
export declare function parameterReply(parameter: Parameter, job: Lifecycle): Fields;
/**
 * Returns the parameter if it is initialized by itself.
 * @throws NOT_SELECTED if it is part of the job's initialization, which ends as a whole.
 */
export declare function requireOwn(parameter: Parameter): Parameter;
/**
 * Checks that two declarations of one parameter are equal.
 * @throws BAD_CONFIG naming what was expected and what was received.
 */
export declare function requireSameDeclaration(expected: Declaration, received: Declaration): void;
/** Returns the bytes of the parameters' values and slots on each shard, by shard number. */
export declare function shardBytes(parameters: Iterable<Pick<Parameter, "declaration" | "layout">>, { shards, synchronization }: Pick<JobSettings, "shards" | "synchronization">): number[];
/** Returns the entry of a parameter: readable JSON. */
export declare function toParameterEntry(parameter: Parameter): unknown;
/**
 * Reads a parameter from its entry; undefined if there is none.
 * @throws BAD_VERSION for an entry of another format, INTERNAL for a damaged one.
 */
export declare function parseParameterEntry(stored: KvEntry | undefined, name: string): Parameter | undefined;
/** Returns the entry of a parameter, which is undefined if it was never declared. */
export declare function parameterEntry(name: string): BucketEntry<Parameter | undefined, Parameter>;
/** Reads every parameter that was ever declared, in no order. */
export declare function readAllParameters(bucket: Pick<KvBucket, "changes">): Promise<Parameter[]>;
/**
 * Changes a parameter as {@link BucketEntry.change} does, and returns it with its new revision. `first`: the
 * parameter as it is known already, with undefined for one that is not known.
 */
export declare function changeParameter(deps: BucketDeps, name: string, decide: (known: Parameter | undefined) => Parameter | Promise<Parameter>, first?: {
    readonly known: Parameter | undefined;
}): Promise<Parameter>;
/** Returns the parameter; @throws UNKNOWN_PARAMETER if there is none. */
export declare function requireKnown(known: Parameter | undefined, name: string): Parameter;
/** Says on which shards blocks lie, by the entries of their parameters. */
export declare class ParameterPlaces {
    #private;
    constructor(bucket: Pick<KvBucket, "read">);
    /**
     * Returns the shard, of `shards`, of a parameter's block `index`; undefined if there is no such parameter, the
     * broker does not say, or too many others are looked up. It does not throw.
     */
    shardOf(parameter: string, index: number, shards: number): Promise<number | undefined>;
}
export {};
//# sourceMappingURL=parameter.d.ts.map