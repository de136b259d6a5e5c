import { PserverError } from "../../protocol/errors.ts";
import type { TensorLike } from "../../protocol/tensor.ts";

/** Tensors by parameter name. */
export type TensorRecord = Readonly<Record<string, TensorLike>> | ReadonlyMap<string, TensorLike>;

/** Names with the value given for each. */
export type Entries<Given> = readonly (readonly [name: string, given: Given])[];

/** What a call was given for each name. @throws EMPTY if it was given nothing. */
export function entriesOf<Given>(
  given: Readonly<Record<string, Given>> | ReadonlyMap<string, Given>,
  what: string,
): Entries<Given> {
  const entries = given instanceof Map ? [...given] : Object.entries(given);
  if (entries.length > 0) return entries;
  throw new PserverError("EMPTY", `${what}: expected at least one tensor; received none`);
}
