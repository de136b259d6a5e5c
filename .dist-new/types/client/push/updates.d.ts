import { type Encoding } from "../../protocol/dtypes.ts";
import { type NoteEntries } from "../../protocol/messages/records.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { TensorLike } from "../../protocol/tensor.ts";
import type { Ack, Deadline } from "../calls/calls.ts";
import type { Parameters, SeenVersions } from "../calls/parameters.ts";
import type { Session } from "../io/session.ts";
import type { GradResult, Steps } from "../io/steps.ts";
import type { UpdateSender } from "../io/update-sender.ts";
import { type IndexList } from "../part-plan.ts";
import { type GradientRecord, type TensorRecord } from "./block-updates.ts";
import type { RoundingErrors } from "./rounding-errors.ts";
import type { UpdateKind } from "./tensor-update.ts";
import { UpdateCollector } from "./update-collector.ts";
/** Dependencies of {@link collectorFor}. */
interface CollectorDeps {
    readonly session: Session;
    readonly subjects: JobSubjects;
    readonly trainer: string;
    /** The largest message the broker takes. */
    readonly payloadBytesMax: () => number;
}
/** Returns a collector for the updates of one call; `isSingle`: each has a record of its own. */
export declare function collectorFor({ session, subjects, trainer, payloadBytesMax }: CollectorDeps, kind: UpdateKind, isSingle?: boolean): UpdateCollector;
/** Dependencies of Updates. */
export interface UpdatesDeps {
    readonly sender: UpdateSender;
    readonly parameters: Parameters;
    readonly subjects: JobSubjects;
    readonly trainer: string;
    readonly seen: SeenVersions;
    readonly errors: RoundingErrors;
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
        readonly learningRate?: number;
        readonly errorFeedback?: boolean;
        readonly endStep?: boolean;
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