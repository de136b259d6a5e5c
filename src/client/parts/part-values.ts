import { allocateData, bytesOf, DTYPES, dtypeOf, type TensorData } from "../../protocol/dtypes.ts";
import { type PartIndex, partCounts, partIndexBytes } from "../../protocol/parts.ts";
import { countTo } from "../../protocol/row-lists/distinct.ts";
import type { BlockPart, Matching } from "./part-plan.ts";

/** A rectangle of a block's elements that fits into one message. */
export interface PartSlice {
  readonly part: BlockPart;
  /** Undefined for the whole block. */
  readonly index: PartIndex | undefined;
  readonly elements: number;
  readonly firstRow: number;
  readonly firstInner: number;
}

/** Elements of any type are moved as words of 4 bytes, so that no bit of a NaN or int64 is lost. */
const WORD_BYTES = 4;
/** Up to so many words a loop is faster than a view and a copy of it. */
const LOOP_WORDS_MAX = 32;

/** Copies a message's elements to their places in the caller's tensor, each as often as it is named. */
export function scatterPart(part: BlockPart, message: TensorData, tensor: TensorData): void {
  const words = DTYPES[dtypeOf(tensor)].bytes / WORD_BYTES;
  const [from, to] = [wordsOf(message), wordsOf(tensor)];
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
 * The elements of a message, taken from the caller's tensor: of an element that is named repeatedly
 * the last one, in C order. A view of the tensor where they lie in it as they travel.
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
  const dtype = dtypeOf(tensor);
  const words = DTYPES[dtype].bytes / WORD_BYTES;
  const message = allocateData(dtype, elements);
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
 * Cuts what travels of a block into messages of at most `bytesMax` bytes of index and elements.
 * Elements of one block come in several messages only if its index makes them too many bytes.
 */
export function slicePart(part: BlockPart, elementBytes: number, bytesMax: number): PartSlice[] {
  const { index, messageRows, messageRowElements } = part;
  const elements = messageRows * messageRowElements;
  const whole = { part, index, elements, firstRow: 0, firstInner: 0 };
  if (index === undefined) return [whole];
  if (partIndexBytes(partCounts(index)) + elements * elementBytes <= bytesMax) return [whole];
  const slices: PartSlice[] = [];
  // Half of the room for an index, at most, is enough for messages of any shape.
  const width = Math.max(
    1,
    Math.min(messageRowElements, Math.floor(bytesMax / 2 / (elementBytes + WORD_BYTES))),
  );
  const inner =
    index.inner ?? (width < messageRowElements ? countTo(messageRowElements) : undefined);
  const innerBytes = inner === undefined ? 0 : width * WORD_BYTES;
  const height = Math.max(
    1,
    Math.floor((bytesMax - innerBytes - WORD_BYTES) / (width * elementBytes + WORD_BYTES)),
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

/** For each place in the message the last place in the tensor that goes with it. */
function lastPlaces({ tensor, message }: Matching, count: number): Uint32Array {
  const last = new Uint32Array(count);
  for (let i = 0; i < tensor.length; i++) last[message[i] as number] = tensor[i] as number;
  return last;
}

/** Copies words from one array to another; more than some, by the engine's own copy. */
function copyWords(
  to: Uint32Array,
  toStart: number,
  from: Uint32Array,
  fromStart: number,
  words: number,
): void {
  if (words > LOOP_WORDS_MAX) {
    to.set(from.subarray(fromStart, fromStart + words), toStart);
    return;
  }
  for (let word = 0; word < words; word++) to[toStart + word] = from[fromStart + word] as number;
}

function wordsOf(data: TensorData): Uint32Array {
  const { buffer, byteOffset, byteLength } = bytesOf(data);
  return new Uint32Array(buffer, byteOffset, byteLength / WORD_BYTES);
}
