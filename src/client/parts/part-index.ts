import { PserverError } from "../../protocol/errors.ts";
import { quoteName } from "../../protocol/names.ts";
import { isAscending } from "../../protocol/row-lists/ascending.ts";
import type { Numbers } from "../../protocol/row-lists/distinct.ts";

/** Numbers of elements along one dimension; negative ones count from its end. */
export type IndexList = readonly number[] | Int32Array | Uint32Array;

/** Elements of a part at most, so that one array can hold them. */
const PART_ELEMENTS_MAX = 2 ** 32 - 1;

/**
 * Returns one list for each dimension, with negative numbers resolved.
 * @throws BAD_INDEX for a wrong number of lists, and for a number that is not whole or outside its
 * dimension; TOO_LARGE if the lists name 2^32 elements or more.
 */
export function normalizeIndices(
  parameter: string,
  shape: readonly number[],
  indices: readonly IndexList[],
): Numbers[] {
  if (!Array.isArray(indices) || indices.length !== shape.length) {
    const received = Array.isArray(indices) ? indices.length : typeof indices;
    throw new PserverError(
      "BAD_INDEX",
      `${quoteName(parameter)}: expected one list of indices for each of ${shape.length} dimensions; received ${received}`,
      { parameter, expected: shape.length, received },
    );
  }
  const lists = shape.map((size, axis) =>
    normalizeList(parameter, size, indices[axis] as IndexList, axis),
  );
  const elements = productOfLengths(lists);
  if (elements <= PART_ELEMENTS_MAX) return lists;
  throw new PserverError(
    "TOO_LARGE",
    `${quoteName(parameter)}: expected indices of at most ${PART_ELEMENTS_MAX} elements; received ${elements}`,
    { parameter, expected: PART_ELEMENTS_MAX, received: elements },
  );
}

/** Resolves negative numbers of one dimension's list. @throws BAD_INDEX as {@link normalizeIndices} does. */
export function normalizeList(
  parameter: string,
  size: number,
  list: IndexList,
  axis: number,
): Numbers {
  if (!Array.isArray(list) && !(list instanceof Int32Array) && !(list instanceof Uint32Array)) {
    throw badIndex(
      parameter,
      axis,
      "a list of whole numbers",
      list === null ? "null" : typeof list,
    );
  }
  const numbers = new Float64Array(list.length);
  for (let i = 0; i < list.length; i++) {
    const given: unknown = list[i];
    if (!Number.isSafeInteger(given) || (given as number) < -size || (given as number) >= size) {
      throw badIndex(parameter, axis, `whole numbers from ${-size} to ${size - 1}`, String(given));
    }
    numbers[i] = (given as number) < 0 ? (given as number) + size : (given as number);
  }
  return numbers;
}

/** The number of elements in the product of lists. */
export function productOfLengths(lists: readonly Numbers[]): number {
  return lists.reduce((product, list) => product * list.length, 1);
}

/** Whether a list names every one of `size` numbers in order. */
export function isEverything(list: Numbers, size: number): boolean {
  return list.length === size && isAscending(list);
}

/**
 * Offsets in a row of the elements that lists of the dimensions after the first name, in C order;
 * undefined if they are all elements of the row in their order.
 */
export function offsetsInRow(
  rowShape: readonly number[],
  lists: readonly Numbers[],
): Numbers | undefined {
  if (rowShape.every((size, axis) => isEverything(lists[axis] as Numbers, size))) return undefined;
  let offsets = Float64Array.of(0);
  rowShape.forEach((size, axis) => {
    const list = lists[axis] as Numbers;
    const longer = new Float64Array(offsets.length * list.length);
    let next = 0;
    for (const offset of offsets) {
      for (const number of list) longer[next++] = offset * size + number;
    }
    offsets = longer;
  });
  return offsets;
}

function badIndex(
  parameter: string,
  axis: number,
  expected: string,
  received: string,
): PserverError {
  return new PserverError(
    "BAD_INDEX",
    `${quoteName(parameter)}: indices of dimension ${axis}: expected ${expected}; received ${received}`,
    { parameter, dimension: axis, expected, received },
  );
}
