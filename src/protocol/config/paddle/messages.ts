import { createRequire } from "node:module";
import type protobuf from "protobufjs/light.js";
import { badConfig } from "../settings.ts";
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

/** The library, and the messages as it knows them. */
interface Library {
  readonly protobuf: typeof protobuf;
  readonly optimizerConfig: protobuf.Type;
  readonly parameterConfig: protobuf.Type;
}

let loaded: Library | undefined;

/** Loaded when first needed: few processes see these messages, and each thread would pay for it. */
function library(): Library {
  if (loaded !== undefined) return loaded;
  const found = createRequire(import.meta.url)("protobufjs/light.js") as typeof protobuf;
  const root = found.Root.fromJSON(PADDLE_DESCRIPTOR);
  loaded = {
    protobuf: found,
    optimizerConfig: root.lookupType("paddle.OptimizerConfig"),
    parameterConfig: root.lookupType("paddle.ParameterConfig"),
  };
  return loaded;
}

/**
 * Reads a serialized `OptimizerConfig`. Of a field that comes more than once the last value counts, of
 * messages the merged one, as in all of Protocol Buffers; fields that are not in the message are
 * skipped.
 * @throws BAD_CONFIG if the bytes are cut or malformed, a field has another wire type than its own, or
 * an enum a value that it does not know.
 */
export function decodeOptimizerConfig(bytes: Uint8Array): OptimizerConfigMessage {
  return decode(library().optimizerConfig, bytes);
}

/**
 * Reads a serialized `ParameterConfig`, as {@link decodeOptimizerConfig}; `dims` may be packed.
 * @throws BAD_CONFIG also if the name or the size is missing, or a text is not UTF-8.
 */
export function decodeParameterConfig(bytes: Uint8Array): ParameterConfigMessage {
  return decode(library().parameterConfig, bytes) as ParameterConfigMessage;
}

/** A serialized `ParameterConfig` with name, size and one `dims` value per dimension. */
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
 * The library keeps what it could not read as the field it is, and decodes the rest: a field of another
 * wire type, a value that its enum does not have. Taken for unknown fields they would be defaults.
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
