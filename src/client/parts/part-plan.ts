import { type BlockPlace, blockPlace, type Layout } from "../../protocol/layout.ts";
import { blockRows, type PartIndex } from "../../protocol/parts.ts";
import { isAscending } from "../../protocol/row-lists/ascending.ts";
import {
  countTo,
  type Distinct,
  distinct,
  type Numbers,
} from "../../protocol/row-lists/distinct.ts";
import { elementCount } from "../../protocol/tensor.ts";
import { type IndexList, normalizeIndices, offsetsInRow, productOfLengths } from "./part-index.ts";

/** Pairs of places: one in the caller's tensor, one in a message. */
export interface Matching {
  /** Ascending. */
  readonly tensor: Uint32Array;
  readonly message: Uint32Array;
}

/**
 * The elements of a part that lie in one block. An element of the caller's tensor is a row and a place in the row:
 * element `rows.tensor[i] · tensorRowElements + inner.tensor[j]` of the tensor is element
 * `rows.message[i] · messageRowElements + inner.message[j]` of the message, for every i and j.
 */
export interface BlockPart {
  readonly place: BlockPlace;
  /** The elements of the block in the message; undefined for all of them. */
  readonly index: PartIndex | undefined;
  readonly rows: Matching;
  /** Undefined: a row of the tensor is a row of the message. */
  readonly inner: Matching | undefined;
  readonly tensorRowElements: number;
  readonly messageRows: number;
  readonly messageRowElements: number;
  /** The first element, if those of the message are consecutive in the tensor. */
  readonly tensorStart: number | undefined;
}

/** A part of a parameter, cut along the parameter's blocks. */
export interface PartPlan {
  /** Lengths of the lists: shape of the caller's tensor. A dimension may be 0. */
  readonly shape: readonly number[];
  readonly elements: number;
  /** Blocks with elements of the part, in their order. */
  readonly blocks: readonly BlockPart[];
}

/** The parameter that a plan is made for. */
export interface Cut {
  readonly name: string;
  readonly shape: readonly number[];
  readonly layout: Layout;
}

/**
 * Cuts the cartesian product of index lists, one for each dimension, along the parameter's blocks.
 * Memory is in proportion to the elements of the part.
 * @throws BAD_INDEX, TOO_LARGE as `normalizeIndices` does.
 */
export function planPart(cut: Cut, indices: readonly IndexList[]): PartPlan {
  const [rows = Float64Array.of(0), ...lists] = normalizeIndices(cut.name, cut.shape, indices);
  const shape = indices.map((list) => list.length);
  const elements = rows.length * productOfLengths(lists);
  if (elements === 0) return { shape, elements, blocks: [] };
  const offsets = offsetsInRow(cut.shape.slice(1), lists);
  const blocks = isCutBetweenRows(cut)
    ? planRows(cut, rows, offsets)
    : planElements(cut, rows, offsets);
  return { shape, elements, blocks };
}

/**
 * Cuts rows of a parameter that is cut between rows.
 * @param rows in the order of the caller's tensor; from 0 to the parameter's last.
 */
export function planRows(cut: Cut, rows: Numbers, offsets?: Numbers): BlockPart[] {
  const rowElements = rowElementsOf(cut);
  const blockRowCount = cut.layout.blockElements / rowElements;
  const columns = offsets === undefined ? undefined : distinct(offsets);
  const wholeRows = columns === undefined || columns.values.length === rowElements;
  const tensorRowElements = offsets?.length ?? rowElements;
  const inner = columns === undefined ? undefined : matchingOf(columns);
  const innerIndex = wholeRows ? undefined : new Uint32Array(columns.values);
  return groupByBlock(rows, blockRowCount).map((group) => {
    const { tensor, values, places } = group;
    const place = blockPlace(cut.layout, group.block);
    const isWhole = wholeRows && values.length === place.count / rowElements;
    const index = innerIndex === undefined ? { rows: values } : { rows: values, inner: innerIndex };
    const isStraight = inner === undefined && group.isAscending && isConsecutive(tensor);
    return {
      place,
      index: isWhole ? undefined : index,
      rows: { tensor, message: places },
      inner,
      tensorRowElements,
      messageRows: values.length,
      messageRowElements: columns?.values.length ?? rowElements,
      tensorStart: isStraight ? (tensor[0] ?? 0) * tensorRowElements : undefined,
    };
  });
}

/** Plans a parameter whose rows are cut: each of its blocks counts as one row. */
function planElements(cut: Cut, rows: Numbers, offsets: Numbers | undefined): BlockPart[] {
  const rowElements = rowElementsOf(cut);
  const width = offsets?.length ?? rowElements;
  const elements = new Float64Array(rows.length * width);
  rows.forEach((row, i) => {
    for (let j = 0; j < width; j++) {
      elements[i * width + j] = row * rowElements + (offsets === undefined ? j : (offsets[j] ?? 0));
    }
  });
  return groupByBlock(elements, cut.layout.blockElements).map((group) => {
    const { tensor, values, places } = group;
    const place = blockPlace(cut.layout, group.block);
    const isStraight = group.isAscending && isConsecutive(tensor);
    return {
      place,
      index: values.length === place.count ? undefined : { rows: Uint32Array.of(0), inner: values },
      rows: { tensor: Uint32Array.of(0), message: Uint32Array.of(0) },
      inner: { tensor, message: places },
      tensorRowElements: 0,
      messageRows: 1,
      messageRowElements: values.length,
      tensorStart: isStraight ? (tensor[0] ?? 0) : undefined,
    };
  });
}

/** Numbers of one block, relative to its first element. */
interface Group {
  readonly block: number;
  /** Their places in the original list. */
  readonly tensor: Uint32Array;
  /** Ascending, each once. */
  readonly values: Uint32Array;
  /** For each of the numbers, in the order of the list, its place among `values`. */
  readonly places: Uint32Array;
  /** Whether they ascend in the list, too. */
  readonly isAscending: boolean;
}

/** Sorts numbers into blocks of `size`. */
function groupByBlock(numbers: Numbers, size: number): Group[] {
  return isAscending(numbers) ? cutByBlock(numbers, size) : sortByBlock(numbers, size);
}

/** As {@link groupByBlock}, of numbers in any order. */
function sortByBlock(numbers: Numbers, size: number): Group[] {
  const counts = new Map<number, number>();
  for (const number of numbers) {
    const block = Math.floor(number / size);
    counts.set(block, (counts.get(block) ?? 0) + 1);
  }
  const lists = new Map<number, { tensor: Uint32Array; own: Numbers; filled: number }>();
  for (const [block, count] of counts) {
    lists.set(block, { tensor: new Uint32Array(count), own: new Float64Array(count), filled: 0 });
  }
  numbers.forEach((number, place) => {
    const block = Math.floor(number / size);
    const list = lists.get(block);
    if (list === undefined) return;
    list.tensor[list.filled] = place;
    list.own[list.filled] = number - block * size;
    list.filled += 1;
  });
  return [...lists]
    .sort(([a], [b]) => a - b)
    .map(([block, { tensor, own }]) => {
      const { values, places } = distinct(own);
      return {
        ...{ block, tensor, places },
        values: new Uint32Array(values),
        isAscending: isAscending(own),
      };
    });
}

/** As {@link groupByBlock}, of ascending numbers: the lists of all groups are views of two arrays. */
function cutByBlock(numbers: Numbers, size: number): Group[] {
  const groups: Group[] = [];
  const all = new Uint32Array(numbers.length);
  const counting = countTo(numbers.length);
  for (let start = 0; start < numbers.length; ) {
    const block = Math.floor((numbers[start] as number) / size);
    const first = block * size;
    const end = firstFrom(numbers, start, first + size);
    for (let i = start; i < end; i++) all[i] = (numbers[i] as number) - first;
    groups.push({
      block,
      tensor: counting.subarray(start, end),
      values: all.subarray(start, end),
      places: counting.subarray(0, end - start),
      isAscending: true,
    });
    start = end;
  }
  return groups;
}

/** Place of the first of ascending numbers, from `start` on, that is at least `bound`. */
function firstFrom(numbers: Numbers, start: number, bound: number): number {
  let low = start;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] as number) < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}

function isCutBetweenRows({ shape, layout }: Cut): boolean {
  const { start, count } = blockPlace(layout, 0);
  return blockRows({ shape, start, count }).rowElements === elementCount(shape) / (shape[0] ?? 1);
}

function rowElementsOf({ shape }: Cut): number {
  return elementCount(shape) / (shape[0] ?? 1);
}

function matchingOf({ places }: Distinct): Matching {
  return { tensor: countTo(places.length), message: places };
}

/** Whether ascending places have no gaps. */
function isConsecutive(tensor: Uint32Array): boolean {
  return (tensor.at(-1) ?? 0) - (tensor[0] ?? 0) === tensor.length - 1;
}
