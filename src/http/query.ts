import { mismatch } from "../protocol/index.ts";

/**
 * Returns the values of a query by name, undefined where one is not given.
 * @throws BAD_VALUE for a name that is not among those known, or is given twice.
 */
export function queryValues<Name extends string>(
  query: URLSearchParams,
  known: readonly Name[],
): Readonly<Partial<Record<Name, string>>> {
  const values: Partial<Record<Name, string>> = {};
  for (const name of new Set(query.keys())) {
    const found = known.find((each) => each === name);
    if (found === undefined) {
      const expected = known.length === 0 ? "nothing" : `only ${known.join(", ")}`;
      throw mismatch("BAD_VALUE", "the query", expected, name);
    }
    const [value = "", ...others] = query.getAll(name);
    if (others.length > 0) throw mismatch("BAD_VALUE", name, "one value", "several");
    values[found] = value;
  }
  return values;
}
