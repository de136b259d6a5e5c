import type { TensorHeader } from "../../model-files/index.ts";
import type { PserverError } from "../../protocol/errors.ts";
import { mismatch } from "../../protocol/mismatch.ts";

/** The parameter that the tensor of a file is for. */
export type ExpectedTensor = TensorHeader;

/** The error for a file that does not fit the parameter. */
export function tensorMismatch(
  code: "BAD_DTYPE" | "BAD_SHAPE" | "BAD_LENGTH" | "BAD_VALUE",
  what: string,
  expected: string,
  received: string,
  parameter: ExpectedTensor,
): PserverError {
  const shown = received.slice(0, 120);
  const { name } = parameter;
  return mismatch(code, `${name}: ${what}`, expected, shown, { parameter: name });
}
