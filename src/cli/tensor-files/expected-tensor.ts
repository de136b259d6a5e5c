import type { Dtype } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";

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
  return new PserverError(
    code,
    `${parameter.name}: ${what}: expected ${expected}; received ${shown}`,
    { parameter: parameter.name, expected, received: shown },
  );
}
