import { sameArray, type TensorData } from "../protocol/dtypes.ts";
import { PserverError } from "../protocol/errors.ts";
import { type BlockPlace, blockPlace, type Layout } from "../protocol/layout.ts";
import {
  blockRows,
  type PartIndex,
  partCounts,
  partIndexBytes,
} from "../protocol/messages/parts.ts";
import { quoteName } from "../protocol/names.ts";
import {
  countTo,
  type Distinct,
  distinct,
  isAscending,
  type Numbers,
} from "../protocol/row-lists/row-lists.ts";
import { elementCount } from "../protocol/tensor.ts";

/** Numbers of elements along one dimension; negative ones count from its end. */
export type IndexList = readonly number[] | Int32Array | Uint32Array;

/** Most elements of a part, so that one array can hold them. */
const PART_ELEMENTS_MAX = 2 ** 32 - 1;

/**
 * Returns one list for each dimension, with negative numbers resolved.
 * @throws BAD_INDEX for a wrong number of lists, and for a number that is not whole or outside its
 * dimension; TOO_LARGE if the lists name 2^32 elements or more.
 */
function normalizeIndices(
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

/** Returns the number of elements in the product of lists. */
function productOfLengths(lists: readonly Numbers[]): number {
  return lists.reduce((product, list) => product * list.length, 1);
}

/** Returns whether a list names every one of `size` numbers in order. */
function isEverything(list: Numbers, size: number): boolean {
  return list.length === size && isAscending(list);
}

/**
 * Returns the offsets in a row, in C order, of the elements that the lists of all dimensions but the first
 * name; undefined for all elements of the row in their order.
 */
function offsetsInRow(rowShape: readonly number[], lists: readonly Numbers[]): Numbers | undefined {
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

/** Pairs of places, one in the caller's tensor and one in a message. */
interface Matching {
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
  /** Places in a row; undefined if a row of the message has the same elements as a row of the tensor. */
  readonly inner: Matching | undefined;
  readonly tensorRowElements: number;
  readonly messageRows: number;
  readonly messageRowElements: number;
  /** Place of the message's first element in the tensor, if its elements are consecutive there. */
  readonly tensorStart: number | undefined;
}

/** A part of a parameter, cut along the parameter's blocks. */
export interface PartPlan {
  /** Lengths of the lists: shape of the caller's tensor. A dimension may be 0. */
  readonly shape: readonly number[];
  readonly elements: number;
  /** Blocks that have elements of the part, in order. */
  readonly blocks: readonly BlockPart[];
}

/** The parameter for which a plan is made. */
export interface PlannedParameter {
  readonly name: string;
  readonly shape: readonly number[];
  readonly layout: Layout;
}

/**
 * Cuts the cartesian product of index lists, one for each dimension, along the parameter's blocks.
 * Memory is in proportion to the elements of the part.
 * @throws BAD_INDEX, TOO_LARGE as `normalizeIndices` does.
 */
export function planPart(cut: PlannedParameter, indices: readonly IndexList[]): PartPlan {
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
export function planRows(cut: PlannedParameter, rows: Numbers, offsets?: Numbers): BlockPart[] {
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
function planElements(
  cut: PlannedParameter,
  rows: Numbers,
  offsets: Numbers | undefined,
): BlockPart[] {
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
  /** The numbers, ascending, each once. */
  readonly values: Uint32Array;
  /** For each of the numbers, in the order of the list, its place among `values`. */
  readonly places: Uint32Array;
  /** Whether the numbers also ascend in the list. */
  readonly isAscending: boolean;
}

/** Sorts numbers into blocks of `size`. */
function groupByBlock(numbers: Numbers, size: number): Group[] {
  return isAscending(numbers) ? cutByBlock(numbers, size) : sortByBlock(numbers, size);
}

/** Does as {@link groupByBlock} does, for numbers in any order. */
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

/**
 * Does as {@link groupByBlock} does, for ascending numbers: the lists of all groups are views of two arrays.
 */
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

/**
 * Finds the first of ascending numbers, from place `start` on, that is at least `bound`; returns its place.
 */
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

function isCutBetweenRows({ shape, layout }: PlannedParameter): boolean {
  const { start, count } = blockPlace(layout, 0);
  return blockRows({ shape, start, count }).rowElements === elementCount(shape) / (shape[0] ?? 1);
}

function rowElementsOf({ shape }: PlannedParameter): number {
  return elementCount(shape) / (shape[0] ?? 1);
}

function matchingOf({ places }: Distinct): Matching {
  return { tensor: countTo(places.length), message: places };
}

/** Returns whether ascending places have no gaps. */
function isConsecutive(tensor: Uint32Array): boolean {
  return (tensor.at(-1) ?? 0) - (tensor[0] ?? 0) === tensor.length - 1;
}

/** A rectangle of a block's elements that fits into one message. */
export interface PartSlice {
  readonly part: BlockPart;
  /** The elements of the block in the message; undefined for all. */
  readonly index: PartIndex | undefined;
  readonly elements: number;
  readonly firstRow: number;
  readonly firstInner: number;
}

/** Bytes of a row number in a message. */
const NUMBER_BYTES = 4;
/**
 * Elements of any type are moved as words, whole elements of 1 or 2 bytes and 4 bytes of longer ones, so that no bit of
 * a NaN or int64 is lost.
 */
const WORD_BYTES_MAX = 4;
/** Up to this many words a loop is faster than a view and a copy of it. */
const LOOP_WORDS_MAX = 32;

/** Copies a message's elements to their places in the caller's tensor, each as often as it is named. */
export function scatterPart(part: BlockPart, message: TensorData, tensor: TensorData): void {
  const [from, to] = [wordsOf(message), wordsOf(tensor)];
  const words = wordsOfElement(tensor);
  const { rows, inner, tensorRowElements, messageRowElements } = part;
  const [toWords, fromWords] = [tensorRowElements * words, messageRowElements * words];
  for (let i = 0; i < rows.tensor.length; i++) {
    const toRow = (rows.tensor[i] as number) * toWords;
    const fromRow = (rows.message[i] as number) * fromWords;
    if (inner === undefined) {
      copyWords(to, toRow, from, fromRow, toWords);
      continue;
    }
    for (let j = 0; j < inner.tensor.length; j++) {
      const toElement = toRow + (inner.tensor[j] as number) * words;
      const fromElement = fromRow + (inner.message[j] as number) * words;
      for (let word = 0; word < words; word++) {
        to[toElement + word] = from[fromElement + word] as number;
      }
    }
  }
}

/**
 * Takes the elements of a message from the caller's tensor; of an element that is named repeatedly, the last
 * one in C order. Returns a view of the tensor if they lie in it in the order of the message.
 */
export function gatherPart(slice: PartSlice, tensor: TensorData): TensorData {
  const { part, index, elements, firstRow, firstInner } = slice;
  const { tensorStart, messageRows, messageRowElements } = part;
  const rows = index?.rows.length ?? messageRows;
  const width = index?.inner?.length ?? messageRowElements;
  const isStraight = width === messageRowElements || rows === 1;
  if (tensorStart !== undefined && isStraight) {
    const start = tensorStart + firstRow * messageRowElements + firstInner;
    return tensor.subarray(start, start + elements);
  }
  const words = wordsOfElement(tensor);
  const message = sameArray(tensor, new ArrayBuffer(elements * tensor.BYTES_PER_ELEMENT), elements);
  const [from, to] = [wordsOf(tensor), wordsOf(message)];
  const tensorRows = lastPlaces(part.rows, messageRows);
  const tensorInner =
    part.inner === undefined ? undefined : lastPlaces(part.inner, messageRowElements);
  let next = 0;
  for (let i = firstRow; i < firstRow + rows; i++) {
    const fromRow = (tensorRows[i] as number) * part.tensorRowElements;
    if (tensorInner === undefined) {
      copyWords(to, next, from, (fromRow + firstInner) * words, width * words);
      next += width * words;
      continue;
    }
    for (let j = firstInner; j < firstInner + width; j++) {
      const element = fromRow + (tensorInner[j] as number);
      for (let word = 0; word < words; word++) to[next++] = from[element * words + word] as number;
    }
  }
  return message;
}

/**
 * Cuts a part of a block into messages of at most `bytesMax` bytes of index and elements. It takes several
 * messages only if the index and the elements do not fit into one.
 */
export function slicePart(part: BlockPart, elementBytes: number, bytesMax: number): PartSlice[] {
  const { index, messageRows, messageRowElements } = part;
  const elements = messageRows * messageRowElements;
  const whole = { part, index, elements, firstRow: 0, firstInner: 0 };
  if (index === undefined) return [whole];
  if (partIndexBytes(partCounts(index)) + elements * elementBytes <= bytesMax) return [whole];
  const slices: PartSlice[] = [];
  // At most half of the room is for the index: that is enough for messages of any shape.
  const width = Math.max(
    1,
    Math.min(messageRowElements, Math.floor(bytesMax / 2 / (elementBytes + NUMBER_BYTES))),
  );
  const inner =
    index.inner ?? (width < messageRowElements ? countTo(messageRowElements) : undefined);
  const innerBytes = inner === undefined ? 0 : width * NUMBER_BYTES;
  const height = Math.max(
    1,
    Math.floor((bytesMax - innerBytes - NUMBER_BYTES) / (width * elementBytes + NUMBER_BYTES)),
  );
  for (let row = 0; row < messageRows; row += height) {
    const rows = index.rows.subarray(row, row + height);
    for (let column = 0; column < messageRowElements; column += width) {
      const columns = inner?.subarray(column, column + width);
      slices.push({
        part,
        index: columns === undefined ? { rows } : { rows, inner: columns },
        elements: rows.length * (columns?.length ?? messageRowElements),
        firstRow: row,
        firstInner: column,
      });
    }
  }
  return slices;
}

/** Returns for each place in the message the last place in the tensor that is paired with it. */
function lastPlaces({ tensor, message }: Matching, count: number): Uint32Array {
  const last = new Uint32Array(count);
  for (let i = 0; i < tensor.length; i++) last[message[i] as number] = tensor[i] as number;
  return last;
}

/** Copies words from one array to another, a few by a loop, more by the engine's own copy. */
function copyWords(
  to: Words,
  toStart: number,
  from: Words,
  fromStart: number,
  words: number,
): void {
  if (words > LOOP_WORDS_MAX) {
    to.set(from.subarray(fromStart, fromStart + words), toStart);
    return;
  }
  for (let word = 0; word < words; word++) to[toStart + word] = from[fromStart + word] as number;
}

type Words = Uint8Array | Uint16Array | Uint32Array;

function wordsOf({ buffer, byteOffset, byteLength, BYTES_PER_ELEMENT }: TensorData): Words {
  if (BYTES_PER_ELEMENT === 1) return new Uint8Array(buffer, byteOffset, byteLength);
  if (BYTES_PER_ELEMENT === 2) return new Uint16Array(buffer, byteOffset, byteLength / 2);
  return new Uint32Array(buffer, byteOffset, byteLength / WORD_BYTES_MAX);
}

function wordsOfElement({ BYTES_PER_ELEMENT }: TensorData): number {
  return Math.max(1, BYTES_PER_ELEMENT / WORD_BYTES_MAX);
}
