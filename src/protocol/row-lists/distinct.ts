import { isAscending } from "./ascending.ts";
import { rowListMemory } from "./row-kernels.ts";

/** Non-negative whole numbers up to 2^53: a dimension may be longer than 2^32. */
export type Numbers = Float64Array;

/** Numbers without repeats. */
export interface Distinct {
  /** Ascending, each once. */
  readonly values: Numbers;
  /** For each of the original numbers, in their order, its place among `values`. */
  readonly places: Uint32Array;
}

const NUMBER_BYTES = 8;
const PLACE_BYTES = 4;
/** Bytes a number that the kernel sorts in. */
const WORK_BYTES = 32;

/** Sorts numbers and removes repeats. The numbers are not copied if they are ascending. */
export function distinct(numbers: Numbers): Distinct {
  if (isAscending(numbers)) return { values: numbers, places: countTo(numbers.length) };
  const n = numbers.length;
  const room = rowListMemory(n * (WORK_BYTES + NUMBER_BYTES + PLACE_BYTES));
  const { kernels, start, buffer } = room;
  const values = start + n * WORK_BYTES;
  const places = values + n * NUMBER_BYTES;
  const list = new Float64Array(buffer, values, n);
  list.set(numbers);
  const found = kernels.distinct(values, places, n, start);
  return { values: list.slice(0, found), places: new Uint32Array(buffer, places, n).slice() };
}

/** The numbers from 0 on, below a count. */
export function countTo(count: number): Uint32Array {
  const numbers = new Uint32Array(count);
  for (let i = 0; i < count; i++) numbers[i] = i;
  return numbers;
}
