import protobuf from "protobufjs/light.js";
import { PADDLE_DESCRIPTOR } from "../../../src/protocol/config/paddle/descriptor.ts";

const ROOT = protobuf.Root.fromJSON(PADDLE_DESCRIPTOR);

/** A serialized `OptimizerConfig` with these fields set. */
export function optimizerBytes(fields: Readonly<Record<string, unknown>>): Uint8Array {
  return encode("paddle.OptimizerConfig", fields);
}

/** A serialized `ParameterConfig` of parameter w, of 6 elements, with these fields set. */
export function parameterBytes(fields: Readonly<Record<string, unknown>> = {}): Uint8Array {
  return encode("paddle.ParameterConfig", { name: "w", size: 6, ...fields });
}

function encode(name: string, fields: Readonly<Record<string, unknown>>): Uint8Array {
  const type = ROOT.lookupType(name);
  return Uint8Array.from(type.encode(type.fromObject(fields)).finish());
}
