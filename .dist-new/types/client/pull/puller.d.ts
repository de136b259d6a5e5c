import { type Dtype, type Encoding, type TensorData } from "../../protocol/dtypes.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { Deadline, Into, NamedTensor } from "../calls/calls.ts";
import type { Parameters } from "../calls/parameters.ts";
import { type IndexList } from "../part-plan.ts";
import type { BlockReader } from "./block-reader.ts";
import type { BlockState, ParameterRead } from "./read-plan.ts";
import type { ReadMode } from "./read-requests.ts";
import type { ReceivedValues } from "./received-values.ts";
/** What a {@link PulledTensor} was read from. */
interface TensorOrigin {
    readonly epoch: number;
    /** The encoding in which its values came. */
    readonly encoding: Encoding | undefined;
    /** The state of each block of the parameter, by its number. */
    readonly blocks: readonly BlockState[];
}
/** A {@link NamedTensor} as `getParams` returns it: it remembers what was read. */
export declare class PulledTensor implements NamedTensor {
    #private;
    readonly name: string;
    readonly dtype: Dtype;
    readonly shape: readonly number[];
    readonly data: TensorData;
    readonly version: number;
    /** Makes a tensor that refers to `data`, which the caller may go on changing. */
    constructor(tensor: Omit<NamedTensor, "version">, origin: TensorOrigin);
    /** Returns what a tensor was read from; undefined if no client has read it. */
    static originOf(tensor: object): TensorOrigin | undefined;
}
/** A read of a whole parameter into one array; the blocks of a known tensor that have not changed stay. */
export declare class WholeRead implements ParameterRead {
    #private;
    readonly info: ParameterInfo;
    /**
     * Plans a read. `into` receives the values; it has the parameter's type and length. `known` is an earlier
     * result whose array nobody has changed; it is used if it was read under the same epoch and encoding.
     */
    constructor(info: ParameterInfo, options: {
        readonly encoding?: Encoding | undefined;
        readonly into?: TensorData | undefined;
        readonly known?: NamedTensor | undefined;
    });
    get entries(): number;
    blockOf(entry: number): number;
    partOf(): undefined;
    elementsOf(entry: number): number;
    knownOf(entry: number): BlockState | undefined;
    take(entry: number, values: ReceivedValues | undefined, at: number, state: BlockState): void;
    /** Returns the result, once all blocks have come: the known tensor itself if nothing of it has changed. */
    result(): NamedTensor;
}
/** How a call reads parameters. */
export interface PullMode extends ReadMode {
    readonly into?: Into | undefined;
    /** Earlier results; what has not changed since is not sent again. */
    readonly known?: readonly NamedTensor[] | undefined;
}
/** How a call reads some elements of a parameter. */
interface PartMode extends ReadMode {
    /** Receives the values. */
    readonly into?: TensorData | undefined;
}
/**
 * Reads parameters block by block, straight into the arrays of the result: one copy, from the
 * socket's buffer to the array. That buffer cannot be the array: its bytes are not aligned. A
 * parameter of several blocks is not read at one moment.
 */
export declare class Puller {
    #private;
    constructor(parameters: Parameters, reader: BlockReader);
    /**
     * Reads the values of parameters, in request order; waits until they are initialized. Each result has the
     * array of `into` with its name; without one, that of `known` if nothing has changed, else a new one.
     * @throws BAD_DTYPE or BAD_LENGTH for an array that does not fit, UNSUPPORTED for an encoding that
     * does not, before anything is read.
     */
    pull(names: readonly string[], deadline: Deadline, mode?: PullMode): Promise<NamedTensor[]>;
    /** Reads some elements of a parameter; see `Client.pullPart`. */
    pullPart(name: string, indices: readonly IndexList[], deadline: Deadline, mode?: PartMode): Promise<Tensor>;
}
export {};
//# sourceMappingURL=puller.d.ts.map