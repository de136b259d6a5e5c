import { type TensorData } from "../../protocol/dtypes.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import type { UpdateSource } from "../io/update-sender.ts";
import { type PartSlice } from "../part-plan.ts";
import { type Sender, type UpdateKind } from "./tensor-update.ts";
/** Dependencies and limits of {@link UpdateCollector}. */
export interface CollectorOptions {
    readonly sender: Sender;
    /** The largest message that the broker takes. */
    readonly payloadBytesMax: number;
    /** Whether gradients of integers, which do not wait for a step, have other batches than those of floats. */
    readonly separatesIntegers: boolean;
    /** Whether each update has a record of its own. */
    readonly isSingle?: boolean;
}
/**
 * Collects the updates of one call. The small ones of each shard go into as few records as the limits of batches
 * admit; a large update has a record of its own, as does a small one without another. Within a shard the small ones of
 * one element type stay in order, and so do the large ones.
 */
export declare class UpdateCollector {
    #private;
    constructor(kind: UpdateKind, options: CollectorOptions);
    /** Adds an update of a whole block with the elements of the parameter, of which `data` has all. */
    addBlock(info: ParameterInfo, index: number, data: TensorData, norm?: number, seen?: number): void;
    /** Adds an update of a part of a block, or of all of it, with the elements that `data` has for it. */
    addSlice(info: ParameterInfo, slice: PartSlice, data: TensorData, norm?: number, seen?: number): void;
    /** Returns the records, in the order of their first updates. */
    finish(): UpdateSource[];
}
//# sourceMappingURL=update-collector.d.ts.map