import type { LearningRateInput, OptimizerInput } from "../optimizer.ts";
/** PaddlePaddle's `OptimizerConfig`; fields that are not set are absent. */
export interface OptimizerConfigMessage {
    readonly optimizer?: "SGD" | "Adadelta" | "Adagrad" | "Adam";
    readonly sgd?: {
        readonly momentum?: number;
        readonly decay?: number;
        readonly nesterov?: boolean;
    };
    readonly adadelta?: {
        readonly rho?: number;
        readonly epsilon?: number;
        readonly decay?: number;
    };
    readonly adagrad?: {
        readonly epsilon?: number;
        readonly decay?: number;
    };
    readonly adam?: {
        readonly beta_1?: number;
        readonly beta_2?: number;
        readonly epsilon?: number;
        readonly decay?: number;
    };
    readonly lr_policy?: "Const" | "Linear";
    readonly const_lr?: {
        readonly learning_rate?: number;
    };
    readonly linear_lr?: {
        readonly learning_rate?: number;
        readonly lr_decay_a?: number;
        readonly lr_decay_b?: number;
    };
    readonly clip_norm?: number;
    readonly clip_value?: number;
}
/** The fields of PaddlePaddle's `ParameterConfig` that are read here; those not set are absent. */
export interface ParameterConfigMessage {
    readonly name: string;
    readonly size: bigint;
    readonly dims?: readonly bigint[];
    readonly learning_rate?: number;
    readonly momentum?: number;
    readonly decay_rate?: number;
    readonly decay_rate_l1?: number;
    readonly gradient_clipping_threshold?: number;
    readonly is_static?: boolean;
    readonly sparse_remote_update?: boolean;
    readonly sparse_update?: boolean;
}
/**
 * Reads a serialized `OptimizerConfig`. As everywhere in Protocol Buffers, the last value of a repeated
 * scalar field counts, repeated messages are merged, and unknown fields are skipped.
 * @throws BAD_CONFIG if the bytes are cut or malformed, a field has another wire type than its own, or
 * an enum a value that it does not know.
 */
export declare function decodeOptimizerConfig(bytes: Uint8Array): OptimizerConfigMessage;
/**
 * Reads a serialized `ParameterConfig` as {@link decodeOptimizerConfig} does; `dims` may be packed.
 * @throws BAD_CONFIG also if the name or the size is missing, or a text is not UTF-8.
 */
export declare function decodeParameterConfig(bytes: Uint8Array): ParameterConfigMessage;
/** Serializes a `ParameterConfig` with name, size and one `dims` value per dimension. */
export declare function encodeParameterConfig(config: {
    readonly name: string;
    readonly size: number;
    readonly dims: readonly number[];
}): Uint8Array;
/** Serialized messages of PaddlePaddle. */
export interface PaddleConfigs {
    /** `OptimizerConfig`; absent is as empty. */
    readonly optimizerConfig?: Uint8Array;
    /** `ParameterConfig`; absent is one that sets nothing. */
    readonly parameterConfig?: Uint8Array;
}
/** Bytes of one message: a real one has at most some hundred. */
export declare const PADDLE_BYTES_MAX = 65536;
/** Returns whether the value is a map of PaddlePaddle's messages, not of our settings. */
export declare function isPaddleConfigs(value: object): boolean;
/** The settings of a parameter that PaddlePaddle's messages can hold. */
export interface PaddleSettings {
    readonly optimizer: OptimizerInput;
    readonly learningRate: LearningRateInput;
    readonly l1: number;
    readonly l2?: number;
    readonly l2Mode?: "coupled" | "decoupled";
    readonly clipNorm?: number;
    readonly clipValue?: number;
    readonly static: boolean;
    readonly sparse: boolean;
}
/**
 * Translates PaddlePaddle's messages into settings. An empty `OptimizerConfig` is SGD with learning rate 1,
 * as in PaddlePaddle. A `ParameterConfig` adds settings of one parameter:
 *
 * - `learning_rate` multiplies the other message's rate, whatever its schedule;
 * - `momentum` is SGD's, `decay_rate` is L2, `decay_rate_l1` is L1;
 * - `gradient_clipping_threshold` clips by value, before `clip_value`;
 * - `is_static` and, for sparse, `sparse_update` or `sparse_remote_update`. `is_sparse` says how the
 *   values themselves lie in a file, not how they are updated, and is ignored.
 *
 * For momentum, decays and clips zero means unset. `docs/reference/compatibility.md` has the reasons.
 * @throws BAD_CONFIG for bytes that are no such message, and for fields that contradict each other.
 */
export declare function fromPaddle(input: unknown): PaddleSettings;
//# sourceMappingURL=paddle.d.ts.map