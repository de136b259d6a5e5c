import type { TensorData } from "../../protocol/dtypes.ts";
import { isAscending } from "../../protocol/row-lists/ascending.ts";
import { distinct, type Numbers } from "../../protocol/row-lists/distinct.ts";
import { sumByPlace } from "../../protocol/row-lists/sum-by-place.ts";

/** Rows of a gradient, each once, ascending. */
export interface RowSums {
  readonly rows: Numbers;
  /** As many rows of elements as there are rows. */
  readonly values: TensorData;
}

/**
 * Adds up the rows that are named repeatedly, in the order given and in the element type (integers
 * wrap around), and sorts them. The data is not copied if there is nothing to do.
 * @param rows normalized; `values` has `rowElements` elements for each.
 */
export function sumRows(rows: Numbers, values: TensorData, rowElements: number): RowSums {
  if (isAscending(rows)) return { rows, values };
  const sums = distinct(rows);
  const placed = { values, rowElements, places: sums.places, sums: sums.values.length };
  return { rows: sums.values, values: sumByPlace(placed) };
}
