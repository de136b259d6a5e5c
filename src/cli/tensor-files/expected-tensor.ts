import type { Dtype } from "../../protocol/dtypes.ts";
import type { PserverError } from "../../protocol/errors.ts";
import { mismatch } from "../mismatch.ts";

/** The parameter that the tensor of a file is for. */
export interface ExpectedTensor {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
}

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
