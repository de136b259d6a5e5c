import { HEADER_BYTES_MAX, PARAMETERS_PER_REQUEST_MAX } from "./limits.ts";

/**
 * Most bytes of a parameter in a message, whether declared or shown: its name, its configuration with a
 * table of learning rates, and its shape make less than 1,600.
 */
const PARAMETER_BYTES_MAX = 2048;

/**
 * How many parameters one request can declare or ask for, so that neither it nor its reply is larger than
 * `payloadBytesMax`, the largest message that the broker takes.
 */
export function parametersPerRequest(payloadBytesMax: number): number {
  const fitting = Math.floor((payloadBytesMax - HEADER_BYTES_MAX) / PARAMETER_BYTES_MAX);
  return Math.max(1, Math.min(PARAMETERS_PER_REQUEST_MAX, fitting));
}
