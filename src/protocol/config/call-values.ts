import { DTYPES, type Dtype } from "../dtypes.ts";
import { PserverError } from "../errors.ts";
import type { ParameterConfig } from "./parameter-config.ts";

/** Returns `rate`. @throws BAD_VALUE unless it is finite. */
export function checkLearningRate(rate: number): number {
  return checkFinite(rate, "learningRate");
}

/** Returns `value`. @throws BAD_VALUE unless it is a finite number. */
export function checkFinite(value: number, what: string): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new PserverError(
    "BAD_VALUE",
    `${what}: expected a finite number; received ${String(value)}`,
    {
      expected: "a finite number",
      received: String(value),
    },
  );
}

/**
 * Checks that elements of this type can be trained with gradients: floats by every optimizer, integers
 * only by `none`, which adds and wraps around as numpy and C do.
 * @throws UNSUPPORTED for integers with another optimizer; they take `set` and `alpha/beta` only.
 */
export function checkTakesGradients(
  dtype: Dtype,
  config: Pick<ParameterConfig, "optimizer">,
  parameter: string,
): void {
  const { name } = config.optimizer;
  if (DTYPES[dtype].float || name === "none") return;
  throw new PserverError(
    "UNSUPPORTED",
    `${parameter}: gradients are for float32 and float64, or for optimizer none; ` +
      `the parameter is ${dtype} with ${name}`,
    { parameter, expected: ["float32", "float64"], received: dtype, optimizer: name },
  );
}
