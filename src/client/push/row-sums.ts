import { allocateData, dtypeOf, type TensorData } from "../../protocol/dtypes.ts";
import { type Distinct, distinct, isAscending, type Numbers } from "../parts/part-index.ts";

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
  const result = allocateData(dtypeOf(values), sums.values.length * rowElements);
  addRows(sums, values, result, rowElements);
  return { rows: sums.values, values: result };
}

function addRows(
  { places }: Distinct,
  values: TensorData,
  result: TensorData,
  rowElements: number,
): void {
  if (isBig(values) && isBig(result)) {
    places.forEach((place, i) => {
      for (let j = 0; j < rowElements; j++) {
        const to = place * rowElements + j;
        result[to] = (result[to] as bigint) + (values[i * rowElements + j] as bigint);
      }
    });
  } else if (!isBig(values) && !isBig(result)) {
    const seen = new Uint8Array(result.length / rowElements);
    places.forEach((place, i) => {
      for (let j = 0; j < rowElements; j++) {
        const [to, value] = [place * rowElements + j, values[i * rowElements + j] as number];
        // The first one is copied: adding it to 0 would lose the sign of a negative zero.
        result[to] = seen[place] === 0 ? value : (result[to] as number) + value;
      }
      seen[place] = 1;
    });
  }
}

function isBig(data: TensorData): data is BigInt64Array | BigUint64Array {
  return data instanceof BigInt64Array || data instanceof BigUint64Array;
}
