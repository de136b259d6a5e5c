import {
  decodeParameterConfig as decodeMessage,
  type ParameterConfigMessage,
} from "../protocol/config/paddle/messages.ts";
import { ensureError } from "../protocol/errors.ts";
import { badFile } from "./bad-file.ts";

/** The fields of PaddlePaddle's `ParameterConfig` that describe a tensor. */
export interface ParameterConfig {
  readonly name: string;
  readonly size: number;
  readonly dims: readonly number[];
}

/**
 * Reads a serialized `ParameterConfig`; fields not listed in {@link ParameterConfig} are skipped.
 * @throws BAD_FILE naming `what` if it is cut short or malformed, lacks the name or size, or holds
 * a number of ours above 2^53.
 */
export function decodeParameterConfig(
  path: string,
  what: string,
  bytes: Uint8Array,
): ParameterConfig {
  const { name, size, dims = [] } = messageOf(path, what, bytes);
  const [elements = 0, ...shape] = [size, ...dims].map((value) => {
    if (value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
    throw badFile(path, what, "a number below 2^53", String(value));
  });
  return { name, size: elements, dims: shape };
}

function messageOf(path: string, what: string, bytes: Uint8Array): ParameterConfigMessage {
  try {
    return decodeMessage(bytes);
  } catch (cause) {
    throw badFile(path, what, "a ParameterConfig", ensureError(cause).message, cause);
  }
}
