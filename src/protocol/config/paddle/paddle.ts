import { createRequire } from "node:module";
import type protobuf from "protobufjs/light.js";
import { defined } from "../../fields.ts";
import type { LearningRateInput, OptimizerInput } from "../optimizer.ts";
import { badConfig, NOT_NEGATIVE, Settings } from "../read-settings.ts";
import { PADDLE_DESCRIPTOR } from "./descriptor.ts";

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
  readonly adagrad?: { readonly epsilon?: number; readonly decay?: number };
  readonly adam?: {
    readonly beta_1?: number;
    readonly beta_2?: number;
    readonly epsilon?: number;
    readonly decay?: number;
  };
  readonly lr_policy?: "Const" | "Linear";
  readonly const_lr?: { readonly learning_rate?: number };
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

/** The Protocol Buffers library, and the types of the two messages in it. */
interface Library {
  readonly protobuf: typeof protobuf;
  readonly optimizerConfig: protobuf.Type;
  readonly parameterConfig: protobuf.Type;
}

let loaded: Library | undefined;

/**
 * Returns the library, loaded when first needed: few processes see these messages, and each thread would pay
 * for it.
 */
function library(): Library {
  if (loaded !== undefined) return loaded;
  const protobufLibrary = createRequire(import.meta.url)("protobufjs/light.js") as typeof protobuf;
  const root = protobufLibrary.Root.fromJSON(PADDLE_DESCRIPTOR);
  loaded = {
    protobuf: protobufLibrary,
    optimizerConfig: root.lookupType("paddle.OptimizerConfig"),
    parameterConfig: root.lookupType("paddle.ParameterConfig"),
  };
  return loaded;
}

/**
 * Reads a serialized `OptimizerConfig`. As everywhere in Protocol Buffers, the last value of a repeated
 * scalar field counts, repeated messages are merged, and unknown fields are skipped.
 * @throws BAD_CONFIG if the bytes are cut or malformed, a field has another wire type than its own, or
 * an enum a value that it does not know.
 */
export function decodeOptimizerConfig(bytes: Uint8Array): OptimizerConfigMessage {
  return decode(library().optimizerConfig, bytes);
}

/**
 * Reads a serialized `ParameterConfig` as {@link decodeOptimizerConfig} does; `dims` may be packed.
 * @throws BAD_CONFIG also if the name or the size is missing, or a text is not UTF-8.
 */
export function decodeParameterConfig(bytes: Uint8Array): ParameterConfigMessage {
  return decode(library().parameterConfig, bytes) as ParameterConfigMessage;
}

/** Serializes a `ParameterConfig` with name, size and one `dims` value per dimension. */
export function encodeParameterConfig(config: {
  readonly name: string;
  readonly size: number;
  readonly dims: readonly number[];
}): Uint8Array {
  return library().parameterConfig.encode(config).finish();
}

function decode(type: protobuf.Type, bytes: Uint8Array): object {
  const reader = library().protobuf.Reader.create(bytes);
  reader.discardUnknown = false;
  let message: protobuf.Message;
  try {
    message = type.decode(reader);
  } catch (cause) {
    // Every error of the library here is about the bytes: it has no state and does no I/O.
    const why = cause instanceof Error ? cause.message : String(cause);
    throw badConfig(`Paddle's ${type.name}`, "a whole message", `${bytes.length} bytes: ${why}`);
  }
  checkKnownFields(type, message);
  return type.toObject(message, { enums: String, longs: BigInt });
}

/**
 * Refuses known fields that the library could not read: one of another wire type, or a value that its enum
 * does not have. The library treats them as unknown fields, so they would silently become defaults.
 */
function checkKnownFields(type: protobuf.Type, message: protobuf.Message): void {
  const { $unknowns: unknowns = [] } = message as { readonly $unknowns?: readonly Uint8Array[] };
  for (const raw of unknowns) {
    const tag = library().protobuf.Reader.create(raw).uint32();
    const field = type.fieldsById[tag >>> 3];
    if (field === undefined) continue;
    const received = `wire type ${tag & 7}, bytes ${Buffer.from(raw.subarray(0, 32)).toString("hex")}`;
    throw badConfig(
      `Paddle's ${type.name}.${field.name}`,
      `a value of its ${field.type}`,
      received,
    );
  }
  for (const field of type.fieldsArray) {
    const nested = field.resolvedType;
    if (!(nested instanceof library().protobuf.Type) || !Object.hasOwn(message, field.name))
      continue;
    const value: unknown = message[field.name as keyof protobuf.Message];
    for (const inner of [value].flat() as protobuf.Message[]) checkKnownFields(nested, inner);
  }
}

/** Serialized messages of PaddlePaddle. */
export interface PaddleConfigs {
  /** `OptimizerConfig`; absent is as empty. */
  readonly optimizerConfig?: Uint8Array;
  /** `ParameterConfig`; absent is one that sets nothing. */
  readonly parameterConfig?: Uint8Array;
}

/** Bytes of one message: a real one has at most some hundred. */
export const PADDLE_BYTES_MAX = 65_536;

const KEYS = ["optimizerConfig", "parameterConfig"] as const satisfies (keyof PaddleConfigs)[];
const EMPTY = new Uint8Array(0);

/** Returns whether the value is a map of PaddlePaddle's messages, not of our settings. */
export function isPaddleConfigs(value: object): boolean {
  return KEYS.some((key) => Object.hasOwn(value, key));
}

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
export function fromPaddle(input: unknown): PaddleSettings {
  const settings = new Settings(input, "config", KEYS);
  const optimizer = decodeOptimizerConfig(bytesOf(settings, "optimizerConfig") ?? EMPTY);
  const bytes = bytesOf(settings, "parameterConfig");
  const parameter = bytes === undefined ? {} : decodeParameterConfig(bytes);
  return combine(optimizer, parameter);
}

function bytesOf(settings: Settings, key: keyof PaddleConfigs): Uint8Array | undefined {
  const value = settings.get(key);
  if (value === undefined) return undefined;
  if (value instanceof Uint8Array && value.length <= PADDLE_BYTES_MAX) return value;
  throw settings.refusal(key, `at most ${PADDLE_BYTES_MAX} bytes`, value);
}

function combine(
  message: OptimizerConfigMessage,
  parameter: Partial<ParameterConfigMessage>,
): PaddleSettings {
  const { name, decay } = ruleOf(message);
  const { decay_rate: l2Rate, decay_rate_l1: l1 = 0, is_static, momentum } = parameter;
  if (isSet(l2Rate) && isSet(l1)) {
    throw badConfig("Paddle's decay_rate", "none beside decay_rate_l1", l2Rate);
  }
  const l2 = mergeSetting("decay_rate", decay, l2Rate);
  const threshold = parameter.gradient_clipping_threshold;
  const clipValue = isSet(threshold) ? threshold : message.clip_value;
  return {
    optimizer: name === "sgd" ? sgdOf(message, momentum) : coefficientsOf(name, message),
    learningRate: rateOf(message, parameter.learning_rate),
    l1,
    ...(l2 === 0 ? {} : { l2, l2Mode: name === "sgd" ? "coupled" : "decoupled" }),
    ...(isSet(message.clip_norm) ? { clipNorm: message.clip_norm } : {}),
    ...(isSet(clipValue) ? { clipValue } : {}),
    static: is_static ?? false,
    sparse: (parameter.sparse_update || parameter.sparse_remote_update) ?? false,
  };
}

const RULES = { SGD: "sgd", Adadelta: "adadelta", Adagrad: "adagrad", Adam: "adam" } as const;
type RuleName = (typeof RULES)[keyof typeof RULES];

/**
 * Returns the optimizer, SGD if none is set, and its decay. The optimizer's own message may be absent; the
 * message of another optimizer is refused.
 */
function ruleOf(message: OptimizerConfigMessage): { name: RuleName; decay: number | undefined } {
  const name = RULES[message.optimizer ?? "SGD"];
  const others = Object.values(RULES).filter((other) => message[other] !== undefined);
  if (message[name] === undefined && others.length > 0) {
    throw badConfig(
      "Paddle's OptimizerConfig",
      `coefficients of ${name}, its optimizer, or none`,
      others.join(" and "),
    );
  }
  return { name, decay: message[name]?.decay };
}

function sgdOf({ sgd }: OptimizerConfigMessage, given: number | undefined) {
  const momentum = mergeSetting("momentum", sgd?.momentum, given);
  if (momentum === 0) return "sgd";
  return { name: sgd?.nesterov ? "nesterov" : "momentum", momentum } as const;
}

/**
 * Reads the coefficients that are set. The others get our defaults, also those of Adam, which has none in
 * PaddlePaddle.
 */
function coefficientsOf(name: Exclude<RuleName, "sgd">, message: OptimizerConfigMessage) {
  if (name === "adam") {
    const { beta_1: beta1, beta_2: beta2, epsilon } = message.adam ?? {};
    return { name, ...defined({ beta1, beta2, epsilon }) };
  }
  const { decay: _decay, ...coefficients } = message[name] ?? {};
  return { name, ...coefficients };
}

/**
 * Returns the learning rate times the parameter's own factor; of a schedule, every number that is a rate is
 * multiplied.
 */
function rateOf(message: OptimizerConfigMessage, given: number | undefined) {
  const { lr_policy: policy = "Const", const_lr: constant, linear_lr: linear } = message;
  const factor = new Settings({ learning_rate: given }, "Paddle's ParameterConfig", [
    "learning_rate",
  ]).number("learning_rate", NOT_NEGATIVE, 1);
  if (policy === "Linear") {
    if (linear === undefined) throw badConfig("Paddle's lr_policy Linear", "linear_lr", undefined);
    const { learning_rate: rate = 1, lr_decay_a: a = 0, lr_decay_b: b = 0 } = linear;
    return { schedule: "linear", rate: rate * factor, a: a * factor, b: b * factor } as const;
  }
  if (constant === undefined && linear !== undefined) {
    throw badConfig("Paddle's lr_policy Const", "const_lr or none", "linear_lr");
  }
  return (constant?.learning_rate ?? 1) * factor;
}

/** Returns the one of two values that is set. @throws BAD_CONFIG if both are set and differ. */
function mergeSetting(what: string, general: number | undefined, own: number | undefined): number {
  if (isSet(general) && isSet(own) && general !== own) {
    throw badConfig(`Paddle's ${what}`, `${general}, as in OptimizerConfig, or none`, own);
  }
  return (isSet(own) ? own : general) ?? 0;
}

/**
 * Returns whether a momentum, decay or clip is set: zero is not, as in PaddlePaddle. NaN is set, and refused
 * later.
 */
function isSet(value: number | undefined): value is number {
  return value !== undefined && value !== 0;
}
