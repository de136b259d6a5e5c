import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  allocateData,
  DTYPES,
  type Dtype,
  isHalf,
  type TensorData,
} from "../../src/protocol/dtypes.ts";

/** What numpy made of one part of an array; see test/fixtures/parts. */
interface NumpyCase {
  readonly name: string;
  readonly indices: readonly (readonly number[])[];
  readonly pulledShape: readonly number[];
  readonly pulled: TensorData;
  readonly alpha: number;
  readonly beta: number;
  readonly new: TensorData;
  readonly pushed: TensorData;
}

/** An array and its cases. */
export interface NumpyArray {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly array: TensorData;
  readonly cases: readonly NumpyCase[];
  /** Index lists for which numpy raises IndexError. */
  readonly refused: readonly Pick<NumpyCase, "name" | "indices">[];
}

type Plain<T> = {
  readonly [Key in keyof T]: T[Key] extends TensorData ? readonly (number | string)[] : T[Key];
};

/** Element types of which numpy has made cases. */
export const NUMPY_DTYPES = (Object.keys(DTYPES) as Dtype[]).filter(
  (dtype) => dtype !== "bool" && !isHalf(dtype),
);

const FOLDER = join(import.meta.dirname, "../fixtures/parts");

/** The arrays of an element type. */
export function numpyArrays(dtype: Dtype): NumpyArray[] {
  const { arrays } = JSON.parse(readFileSync(join(FOLDER, `${dtype}.json`), "utf8")) as {
    arrays: (Plain<Omit<NumpyArray, "cases">> & { cases: Plain<NumpyCase>[] })[];
  };
  const toData = (plain: readonly (number | string)[]): TensorData => fill(dtype, plain);
  return arrays.map(({ shape, array, cases, refused }) => ({
    dtype,
    shape,
    array: toData(array),
    refused,
    cases: cases.map((each) => ({
      ...each,
      pulled: toData(each.pulled),
      new: toData(each.new),
      pushed: toData(each.pushed),
    })),
  }));
}

function fill(dtype: Dtype, plain: readonly (number | string)[]): TensorData {
  const data = allocateData(dtype, plain.length);
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
    data.set(plain.map(BigInt));
  } else {
    data.set(plain.map(Number));
  }
  return data;
}
