import { PserverError, quoteName } from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { StoredRecord } from "../jetstream/kv-bucket.ts";
import { change } from "./compare-and-swap.ts";
import { PARAMETER_KEYS, parameterKey, parameterOfKey } from "./keys.ts";
import { type Parameter, parseParameterRecord, toParameterRecord } from "./parameter-record.ts";
import type { Surroundings } from "./settings.ts";

/** A parameter as it stands; undefined if it was never declared. */
export async function readParameter(
  around: Surroundings,
  name: string,
): Promise<Parameter | undefined> {
  return parseParameterRecord(await around.records.read(parameterKey(name)), name);
}

/** Every parameter that was ever declared, in no order. */
export async function readAllParameters(around: Surroundings): Promise<Parameter[]> {
  const keys = await around.records.keys(PARAMETER_KEYS);
  const parameters = await mapConcurrently(keys, (key) =>
    readParameter(around, parameterOfKey(key)),
  );
  return parameters.filter((parameter) => parameter !== undefined);
}

/**
 * Changes one parameter by compare-and-swap; the parameter as it then stands. `decide` may be
 * called several times; it leaves the record alone by giving back what it was given. `first`
 * saves a read where the record was read already.
 */
export async function changeParameter(
  around: Surroundings,
  name: string,
  decide: (known: Parameter | undefined) => Parameter | Promise<Parameter>,
  first?: { readonly record: StoredRecord | undefined },
): Promise<Parameter> {
  const { result, revision } = await change({
    records: around.records,
    key: parameterKey(name),
    pause: around.pause,
    ...(first === undefined ? {} : { first }),
    decide: async (current) => {
      const before = parseParameterRecord(current, name);
      const after = await decide(before);
      if (after === before) return { result: after };
      return { write: toParameterRecord(after), result: after };
    },
  });
  return { ...result, revision };
}

/** The parameter itself; @throws UNKNOWN_PARAMETER if there is none. */
export function requireKnown(known: Parameter | undefined, name: string): Parameter {
  if (known !== undefined) return known;
  throw new PserverError("UNKNOWN_PARAMETER", `no parameter ${quoteName(name)}`, {
    parameter: name,
  });
}
