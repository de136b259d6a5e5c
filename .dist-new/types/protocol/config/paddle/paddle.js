import { createRequire } from "node:module";
import { defined } from "../../fields.js";
import { badConfig, NOT_NEGATIVE, Settings } from "../read-settings.js";
import { PADDLE_DESCRIPTOR } from "./descriptor.js";
let loaded;
/**
 * Returns the library, loaded when first needed: few processes see these messages, and each thread would pay
 * for it.
 */
function library() {
    if (loaded !== undefined)
        return loaded;
    const protobufLibrary = createRequire(import.meta.url)("protobufjs/light.js");
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
export function decodeOptimizerConfig(bytes) {
    return decode(library().optimizerConfig, bytes);
}
/**
 * Reads a serialized `ParameterConfig` as {@link decodeOptimizerConfig} does; `dims` may be packed.
 * @throws BAD_CONFIG also if the name or the size is missing, or a text is not UTF-8.
 */
export function decodeParameterConfig(bytes) {
    return decode(library().parameterConfig, bytes);
}
/** Serializes a `ParameterConfig` with name, size and one `dims` value per dimension. */
export function encodeParameterConfig(config) {
    return library().parameterConfig.encode(config).finish();
}
function decode(type, bytes) {
    const reader = library().protobuf.Reader.create(bytes);
    reader.discardUnknown = false;
    let message;
    try {
        message = type.decode(reader);
    }
    catch (cause) {
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
function checkKnownFields(type, message) {
    const { $unknowns: unknowns = [] } = message;
    for (const raw of unknowns) {
        const tag = library().protobuf.Reader.create(raw).uint32();
        const field = type.fieldsById[tag >>> 3];
        if (field === undefined)
            continue;
        const received = `wire type ${tag & 7}, bytes ${Buffer.from(raw.subarray(0, 32)).toString("hex")}`;
        throw badConfig(`Paddle's ${type.name}.${field.name}`, `a value of its ${field.type}`, received);
    }
    for (const field of type.fieldsArray) {
        const nested = field.resolvedType;
        if (!(nested instanceof library().protobuf.Type) || !Object.hasOwn(message, field.name))
            continue;
        const value = message[field.name];
        for (const inner of [value].flat())
            checkKnownFields(nested, inner);
    }
}
/** Bytes of one message: a real one has at most some hundred. */
export const PADDLE_BYTES_MAX = 65_536;
const KEYS = ["optimizerConfig", "parameterConfig"];
const EMPTY = new Uint8Array(0);
/** Returns whether the value is a map of PaddlePaddle's messages, not of our settings. */
export function isPaddleConfigs(value) {
    return KEYS.some((key) => Object.hasOwn(value, key));
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
export function fromPaddle(input) {
    const settings = new Settings(input, "config", KEYS);
    const optimizer = decodeOptimizerConfig(bytesOf(settings, "optimizerConfig") ?? EMPTY);
    const bytes = bytesOf(settings, "parameterConfig");
    const parameter = bytes === undefined ? {} : decodeParameterConfig(bytes);
    return combine(optimizer, parameter);
}
function bytesOf(settings, key) {
    const value = settings.get(key);
    if (value === undefined)
        return undefined;
    if (value instanceof Uint8Array && value.length <= PADDLE_BYTES_MAX)
        return value;
    throw settings.refusal(key, `at most ${PADDLE_BYTES_MAX} bytes`, value);
}
function combine(message, parameter) {
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
const RULES = { SGD: "sgd", Adadelta: "adadelta", Adagrad: "adagrad", Adam: "adam" };
/**
 * Returns the optimizer, SGD if none is set, and its decay. The optimizer's own message may be absent; the
 * message of another optimizer is refused.
 */
function ruleOf(message) {
    const name = RULES[message.optimizer ?? "SGD"];
    const others = Object.values(RULES).filter((other) => message[other] !== undefined);
    if (message[name] === undefined && others.length > 0) {
        throw badConfig("Paddle's OptimizerConfig", `coefficients of ${name}, its optimizer, or none`, others.join(" and "));
    }
    return { name, decay: message[name]?.decay };
}
function sgdOf({ sgd }, given) {
    const momentum = mergeSetting("momentum", sgd?.momentum, given);
    if (momentum === 0)
        return "sgd";
    return { name: sgd?.nesterov ? "nesterov" : "momentum", momentum };
}
/**
 * Reads the coefficients that are set. The others get our defaults, also those of Adam, which has none in
 * PaddlePaddle.
 */
function coefficientsOf(name, message) {
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
function rateOf(message, given) {
    const { lr_policy: policy = "Const", const_lr: constant, linear_lr: linear } = message;
    const factor = new Settings({ learning_rate: given }, "Paddle's ParameterConfig", [
        "learning_rate",
    ]).number("learning_rate", NOT_NEGATIVE, 1);
    if (policy === "Linear") {
        if (linear === undefined)
            throw badConfig("Paddle's lr_policy Linear", "linear_lr", undefined);
        const { learning_rate: rate = 1, lr_decay_a: a = 0, lr_decay_b: b = 0 } = linear;
        return { schedule: "linear", rate: rate * factor, a: a * factor, b: b * factor };
    }
    if (constant === undefined && linear !== undefined) {
        throw badConfig("Paddle's lr_policy Const", "const_lr or none", "linear_lr");
    }
    return (constant?.learning_rate ?? 1) * factor;
}
/** Returns the one of two values that is set. @throws BAD_CONFIG if both are set and differ. */
function mergeSetting(what, general, own) {
    if (isSet(general) && isSet(own) && general !== own) {
        throw badConfig(`Paddle's ${what}`, `${general}, as in OptimizerConfig, or none`, own);
    }
    return (isSet(own) ? own : general) ?? 0;
}
/**
 * Returns whether a momentum, decay or clip is set: zero is not, as in PaddlePaddle. NaN is set, and refused
 * later.
 */
function isSet(value) {
    return value !== undefined && value !== 0;
}
//# sourceMappingURL=paddle.js.map