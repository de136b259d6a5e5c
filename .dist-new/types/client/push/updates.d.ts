import { type Encoding } from "../../protocol/dtypes.ts";
import { type NoteEntries } from "../../protocol/messages/records.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { TensorLike } from "../../protocol/tensor.ts";
import type { Ack, Deadline } from "../calls/calls.ts";
import type { Parameters, SeenVersions } from "../calls/parameters.ts";
import type { Session } from "../io/session.ts";
import type { GradResult, Steps } from "../io/steps.ts";
import type { UpdateSender, UpdateSource } from "../io/update-sender.ts";
import { type IndexList } from "../part-plan.ts";
import { type GradientRecord, type TensorRecord } from "./block-updates.ts";
/** Dependencies of {@link inBatches}. */
interface BatchDeps {
    readonly session: Session;
    readonly subjects: JobSubjects;
    readonly trainer: string;
    /** The largest message the broker takes. */
    readonly payloadBytesMax: () => number;
}
/** Joins the updates of one call as {@link fillBatches} does. */
export declare function inBatches(updates: readonly UpdateSource[], deps: BatchDeps): readonly UpdateSource[];
/** Dependencies and limits of {@link fillBatches}. */
interface BatchOptions {
    /** Subject of the sender's batches in a shard. */
    readonly subject: (shard: number) => string;
    /** The largest message that the broker takes. */
    readonly payloadBytesMax: number;
    /** Whether gradients of integers, which do not wait for a step, have other batches than those of floats. */
    readonly separatesIntegers: boolean;
}
/**
 * Joins the small updates of one call, those of each shard into as few records as the limits of batches
 * admit. A large update keeps its own record, as does a small one without another. Within a shard the small
 * ones stay in order, and so do the large ones.
 */
export declare function fillBatches(updates: readonly UpdateSource[], options: BatchOptions): readonly UpdateSource[];
/** Dependencies of Updates. */
export interface UpdatesDeps {
    readonly sender: UpdateSender;
    readonly parameters: Parameters;
    readonly subjects: JobSubjects;
    readonly trainer: string;
    readonly seen: SeenVersions;
    readonly steps: Steps;
    readonly session: Session;
    /** The largest message the broker takes. */
    readonly payloadBytesMax: () => number;
}
/** Options of an update that concern its records. */
interface UpdateMode {
    readonly ack?: Ack | undefined;
    readonly encoding?: Encoding | undefined;
}
/** value = alpha · value + beta · tensor. */
export interface Mix {
    readonly alpha: number;
    readonly beta: number;
}
/** Changes of initialized parameters. All tensors of a call are checked before any is sent. */
export declare class Updates {
    #private;
    constructor(options: UpdatesDeps);
    /** Applies a gradient to each parameter; see `Client.sendGrads`. */
    sendGrads(grads: GradientRecord, deadline: Deadline, options: UpdateMode & {
        learningRate?: number;
        endStep?: boolean;
    }): Promise<GradResult>;
    /** Computes value = alpha · value + beta · tensor; see `Client.pushFull`. */
    pushFull(name: string, given: TensorLike, mix: Mix, deadline: Deadline, mode: UpdateMode): Promise<void>;
    /** Does the same as {@link pushFull} for some elements; see `Client.pushAsPart`. */
    pushAsPart(part: {
        readonly name: string;
        readonly tensor: TensorLike;
        readonly indices: readonly IndexList[];
    }, mix: Mix, deadline: Deadline, mode: UpdateMode): Promise<void>;
    /** Overwrites parameters; see `Client.setParams`. */
    setParams(tensors: TensorRecord, deadline: Deadline, mode: UpdateMode): Promise<void>;
    /** Writes a remark into the journal; see `Client.note`. The entries are copied. */
    note(entries: NoteEntries, deadline: Deadline, ack?: Ack): Promise<void>;
}
export {};
//# sourceMappingURL=updates.d.ts.map