import { allocateData, bytesOf, DTYPES, dtypeOf } from "../protocol/dtypes.js";
import { PserverError } from "../protocol/errors.js";
import { blockPlace } from "../protocol/layout.js";
import { blockRows, partCounts, partIndexBytes, } from "../protocol/messages/parts.js";
import { quoteName } from "../protocol/names.js";
import { countTo, distinct, isAscending, } from "../protocol/row-lists/row-lists.js";
import { elementCount } from "../protocol/tensor.js";
/** Most elements of a part, so that one array can hold them. */
const PART_ELEMENTS_MAX = 2 ** 32 - 1;
/**
 * Returns one list for each dimension, with negative numbers resolved.
 * @throws BAD_INDEX for a wrong number of lists, and for a number that is not whole or outside its
 * dimension; TOO_LARGE if the lists name 2^32 elements or more.
 */
function normalizeIndices(parameter, shape, indices) {
    if (!Array.isArray(indices) || indices.length !== shape.length) {
        const received = Array.isArray(indices) ? indices.length : typeof indices;
        throw new PserverError("BAD_INDEX", `${quoteName(parameter)}: expected one list of indices for each of ${shape.length} dimensions; received ${received}`, { parameter, expected: shape.length, received });
    }
    const lists = shape.map((size, axis) => normalizeList(parameter, size, indices[axis], axis));
    const elements = productOfLengths(lists);
    if (elements <= PART_ELEMENTS_MAX)
        return lists;
    throw new PserverError("TOO_LARGE", `${quoteName(parameter)}: expected indices of at most ${PART_ELEMENTS_MAX} elements; received ${elements}`, { parameter, expected: PART_ELEMENTS_MAX, received: elements });
}
/** Resolves negative numbers of one dimension's list. @throws BAD_INDEX as {@link normalizeIndices} does. */
export function normalizeList(parameter, size, list, axis) {
    if (!Array.isArray(list) && !(list instanceof Int32Array) && !(list instanceof Uint32Array)) {
        throw badIndex(parameter, axis, "a list of whole numbers", list === null ? "null" : typeof list);
    }
    const numbers = new Float64Array(list.length);
    for (let i = 0; i < list.length; i++) {
        const given = list[i];
        if (!Number.isSafeInteger(given) || given < -size || given >= size) {
            throw badIndex(parameter, axis, `whole numbers from ${-size} to ${size - 1}`, String(given));
        }
        numbers[i] = given < 0 ? given + size : given;
    }
    return numbers;
}
/** Returns the number of elements in the product of lists. */
function productOfLengths(lists) {
    return lists.reduce((product, list) => product * list.length, 1);
}
/** Returns whether a list names every one of `size` numbers in order. */
function isEverything(list, size) {
    return list.length === size && isAscending(list);
}
/**
 * Returns the offsets in a row, in C order, of the elements that the lists of all dimensions but the first
 * name; undefined for all elements of the row in their order.
 */
function offsetsInRow(rowShape, lists) {
    if (rowShape.every((size, axis) => isEverything(lists[axis], size)))
        return undefined;
    let offsets = Float64Array.of(0);
    rowShape.forEach((size, axis) => {
        const list = lists[axis];
        const longer = new Float64Array(offsets.length * list.length);
        let next = 0;
        for (const offset of offsets) {
            for (const number of list)
                longer[next++] = offset * size + number;
        }
        offsets = longer;
    });
    return offsets;
}
function badIndex(parameter, axis, expected, received) {
    return new PserverError("BAD_INDEX", `${quoteName(parameter)}: indices of dimension ${axis}: expected ${expected}; received ${received}`, { parameter, dimension: axis, expected, received });
}
/**
 * Cuts the cartesian product of index lists, one for each dimension, along the parameter's blocks.
 * Memory is in proportion to the elements of the part.
 * @throws BAD_INDEX, TOO_LARGE as `normalizeIndices` does.
 */
export function planPart(cut, indices) {
    const [rows = Float64Array.of(0), ...lists] = normalizeIndices(cut.name, cut.shape, indices);
    const shape = indices.map((list) => list.length);
    const elements = rows.length * productOfLengths(lists);
    if (elements === 0)
        return { shape, elements, blocks: [] };
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
export function planRows(cut, rows, offsets) {
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
function planElements(cut, rows, offsets) {
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
/** Sorts numbers into blocks of `size`. */
function groupByBlock(numbers, size) {
    return isAscending(numbers) ? cutByBlock(numbers, size) : sortByBlock(numbers, size);
}
/** Does as {@link groupByBlock} does, for numbers in any order. */
function sortByBlock(numbers, size) {
    const counts = new Map();
    for (const number of numbers) {
        const block = Math.floor(number / size);
        counts.set(block, (counts.get(block) ?? 0) + 1);
    }
    const lists = new Map();
    for (const [block, count] of counts) {
        lists.set(block, { tensor: new Uint32Array(count), own: new Float64Array(count), filled: 0 });
    }
    numbers.forEach((number, place) => {
        const block = Math.floor(number / size);
        const list = lists.get(block);
        if (list === undefined)
            return;
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
function cutByBlock(numbers, size) {
    const groups = [];
    const all = new Uint32Array(numbers.length);
    const counting = countTo(numbers.length);
    for (let start = 0; start < numbers.length;) {
        const block = Math.floor(numbers[start] / size);
        const first = block * size;
        const end = firstFrom(numbers, start, first + size);
        for (let i = start; i < end; i++)
            all[i] = numbers[i] - first;
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
function firstFrom(numbers, start, bound) {
    let low = start;
    let high = numbers.length;
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (numbers[middle] < bound)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
function isCutBetweenRows({ shape, layout }) {
    const { start, count } = blockPlace(layout, 0);
    return blockRows({ shape, start, count }).rowElements === elementCount(shape) / (shape[0] ?? 1);
}
function rowElementsOf({ shape }) {
    return elementCount(shape) / (shape[0] ?? 1);
}
function matchingOf({ places }) {
    return { tensor: countTo(places.length), message: places };
}
/** Returns whether ascending places have no gaps. */
function isConsecutive(tensor) {
    return (tensor.at(-1) ?? 0) - (tensor[0] ?? 0) === tensor.length - 1;
}
/** Elements of any type are moved as words of 4 bytes, so that no bit of a NaN or int64 is lost. */
const WORD_BYTES = 4;
/** Up to this many words a loop is faster than a view and a copy of it. */
const LOOP_WORDS_MAX = 32;
/** Copies a message's elements to their places in the caller's tensor, each as often as it is named. */
export function scatterPart(part, message, tensor) {
    const words = DTYPES[dtypeOf(tensor)].bytes / WORD_BYTES;
    const [from, to] = [wordsOf(message), wordsOf(tensor)];
    const { rows, inner, tensorRowElements, messageRowElements } = part;
    const [toWords, fromWords] = [tensorRowElements * words, messageRowElements * words];
    for (let i = 0; i < rows.tensor.length; i++) {
        const toRow = rows.tensor[i] * toWords;
        const fromRow = rows.message[i] * fromWords;
        if (inner === undefined) {
            copyWords(to, toRow, from, fromRow, toWords);
            continue;
        }
        for (let j = 0; j < inner.tensor.length; j++) {
            const toElement = toRow + inner.tensor[j] * words;
            const fromElement = fromRow + inner.message[j] * words;
            for (let word = 0; word < words; word++) {
                to[toElement + word] = from[fromElement + word];
            }
        }
    }
}
/**
 * Takes the elements of a message from the caller's tensor; of an element that is named repeatedly, the last
 * one in C order. Returns a view of the tensor if they lie in it in the order of the message.
 */
export function gatherPart(slice, tensor) {
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
    const tensorInner = part.inner === undefined ? undefined : lastPlaces(part.inner, messageRowElements);
    let next = 0;
    for (let i = firstRow; i < firstRow + rows; i++) {
        const fromRow = tensorRows[i] * part.tensorRowElements;
        if (tensorInner === undefined) {
            copyWords(to, next, from, (fromRow + firstInner) * words, width * words);
            next += width * words;
            continue;
        }
        for (let j = firstInner; j < firstInner + width; j++) {
            const element = fromRow + tensorInner[j];
            for (let word = 0; word < words; word++)
                to[next++] = from[element * words + word];
        }
    }
    return message;
}
/**
 * Cuts a part of a block into messages of at most `bytesMax` bytes of index and elements. It takes several
 * messages only if the index and the elements do not fit into one.
 */
export function slicePart(part, elementBytes, bytesMax) {
    const { index, messageRows, messageRowElements } = part;
    const elements = messageRows * messageRowElements;
    const whole = { part, index, elements, firstRow: 0, firstInner: 0 };
    if (index === undefined)
        return [whole];
    if (partIndexBytes(partCounts(index)) + elements * elementBytes <= bytesMax)
        return [whole];
    const slices = [];
    // At most half of the room is for the index: that is enough for messages of any shape.
    const width = Math.max(1, Math.min(messageRowElements, Math.floor(bytesMax / 2 / (elementBytes + WORD_BYTES))));
    const inner = index.inner ?? (width < messageRowElements ? countTo(messageRowElements) : undefined);
    const innerBytes = inner === undefined ? 0 : width * WORD_BYTES;
    const height = Math.max(1, Math.floor((bytesMax - innerBytes - WORD_BYTES) / (width * elementBytes + WORD_BYTES)));
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
function lastPlaces({ tensor, message }, count) {
    const last = new Uint32Array(count);
    for (let i = 0; i < tensor.length; i++)
        last[message[i]] = tensor[i];
    return last;
}
/** Copies words from one array to another, a few by a loop, more by the engine's own copy. */
function copyWords(to, toStart, from, fromStart, words) {
    if (words > LOOP_WORDS_MAX) {
        to.set(from.subarray(fromStart, fromStart + words), toStart);
        return;
    }
    for (let word = 0; word < words; word++)
        to[toStart + word] = from[fromStart + word];
}
function wordsOf(data) {
    const { buffer, byteOffset, byteLength } = bytesOf(data);
    return new Uint32Array(buffer, byteOffset, byteLength / WORD_BYTES);
}
//# sourceMappingURL=part-plan.js.map