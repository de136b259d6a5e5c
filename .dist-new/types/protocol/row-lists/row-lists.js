import { allocateData, bytesOf, DTYPES, dtypeOf } from "../dtypes.js";
import { ROW_LISTS_WASM_BASE64 } from "./wasm.js";
const PAGE_BYTES = 65_536;
/**
 * Largest memory that is kept for the next operation. Larger memory is left to the garbage collector: a
 * WebAssembly memory cannot shrink.
 */
const KEPT_BYTES = 20 * 1024 * 1024;
let keptMemory;
let compiled;
/**
 * Returns memory of at least this many bytes, with undefined contents, for one operation. It belongs to the
 * thread, and the next operation may get it again.
 * @throws RangeError if the process has no addresses left for it.
 */
function rowListMemory(bytes) {
    if (keptMemory !== undefined && keptMemory.bytes >= bytes)
        return keptMemory;
    // The module's constants have the first page.
    const pages = 1 + Math.ceil(Math.max(bytes, (keptMemory?.bytes ?? 0) * 2) / PAGE_BYTES);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    compiled ??= new WebAssembly.Module(Buffer.from(ROW_LISTS_WASM_BASE64, "base64"));
    const { exports } = new WebAssembly.Instance(compiled, { env: { memory } });
    const kernels = exports;
    const room = {
        kernels,
        start: PAGE_BYTES,
        buffer: memory.buffer,
        bytes: (pages - 1) * PAGE_BYTES,
    };
    if (room.bytes <= KEPT_BYTES)
        keptMemory = room;
    return room;
}
/** Shorter lists are checked faster one by one than copied for the kernel. */
const LIST_MIN = 64;
const NUMBER_BYTES = 4;
/** Numbers checked at a time; few enough to stay in a near cache. */
const CHUNK_NUMBERS = 16_384;
/** Returns whether each number is greater than the one before. */
export function isAscending(numbers) {
    if (numbers instanceof Uint32Array && numbers.length >= LIST_MIN)
        return isAscendingList(numbers);
    for (let i = 1; i < numbers.length; i++) {
        if (numbers[i] <= numbers[i - 1])
            return false;
    }
    return true;
}
function isAscendingList(numbers) {
    const { kernels, start, buffer } = rowListMemory(CHUNK_NUMBERS * NUMBER_BYTES);
    // Chunks overlap by a number, so that all neighbours are compared.
    for (let at = 0; at < numbers.length - 1; at += CHUNK_NUMBERS - 1) {
        const chunk = numbers.subarray(at, at + CHUNK_NUMBERS);
        new Uint32Array(buffer, start, chunk.length).set(chunk);
        if (kernels.ascending(start, chunk.length) === 0)
            return false;
    }
    return true;
}
const WIDE_NUMBER_BYTES = 8;
const PLACE_BYTES = 4;
/** Bytes that the kernel needs to sort a number. */
const WORK_BYTES = 32;
/** Sorts numbers and removes repeats. The numbers are not copied if they are ascending. */
export function distinct(numbers) {
    if (isAscending(numbers))
        return { values: numbers, places: countTo(numbers.length) };
    const n = numbers.length;
    const room = rowListMemory(n * (WORK_BYTES + WIDE_NUMBER_BYTES + PLACE_BYTES));
    const { kernels, start, buffer } = room;
    const values = start + n * WORK_BYTES;
    const places = values + n * WIDE_NUMBER_BYTES;
    const list = new Float64Array(buffer, values, n);
    list.set(numbers);
    const distinctCount = kernels.distinct(values, places, n, start);
    return {
        values: list.slice(0, distinctCount),
        places: new Uint32Array(buffer, places, n).slice(),
    };
}
/** Returns the numbers from 0 to `count` - 1. */
export function countTo(count) {
    const numbers = new Uint32Array(count);
    for (let i = 0; i < count; i++)
        numbers[i] = i;
    return numbers;
}
const KERNELS = {
    float32: "addRowsF32",
    float64: "addRowsF64",
    int32: "addRowsI32",
    uint32: "addRowsI32",
    int64: "addRowsI64",
    uint64: "addRowsI64",
};
/** Sums are made in windows of this many bytes, and rows read in chunks of as many at most. */
const WINDOW_BYTES = 16 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const ALIGN_BYTES = 16;
/** Adds rows up, in order and in their element type; integers wrap around. */
export function sumByPlace(rows) {
    const { values, rowElements, sums } = rows;
    const result = allocateData(dtypeOf(values), sums * rowElements);
    const rowBytes = rowElements * DTYPES[dtypeOf(values)].bytes;
    const windowSums = Math.max(1, Math.floor(WINDOW_BYTES / rowBytes));
    for (let first = 0; first < sums; first += windowSums) {
        sumWindow(rows, first, Math.min(windowSums, sums - first), result);
    }
    return result;
}
/** Computes `sums` sums from number `first` on, and writes them to their place in the result. */
function sumWindow(rows, first, sums, result) {
    const { values, rowElements, places } = rows;
    const rowBytes = rowElements * DTYPES[dtypeOf(values)].bytes;
    const chunkRows = Math.min(places.length, Math.max(1, Math.floor(CHUNK_BYTES / rowBytes)));
    const begunAt = aligned(sums * rowBytes);
    const placesAt = begunAt + aligned(sums);
    const rowsAt = placesAt + aligned(chunkRows * 4);
    const { kernels, start, buffer } = rowListMemory(rowsAt + chunkRows * rowBytes);
    const addRows = kernels[KERNELS[dtypeOf(values)]];
    const memory = new Uint8Array(buffer, start);
    memory.fill(0, begunAt, begunAt + sums);
    const source = bytesOf(values);
    for (let row = 0; row < places.length; row += chunkRows) {
        const n = Math.min(chunkRows, places.length - row);
        memory.set(bytesOf(places.subarray(row, row + n)), placesAt);
        memory.set(source.subarray(row * rowBytes, (row + n) * rowBytes), rowsAt);
        const begun = start + begunAt;
        addRows(start, begun, first, sums, start + rowsAt, start + placesAt, n, rowElements);
    }
    bytesOf(result).set(memory.subarray(0, sums * rowBytes), first * rowBytes);
}
function aligned(bytes) {
    return Math.ceil(bytes / ALIGN_BYTES) * ALIGN_BYTES;
}
//# sourceMappingURL=row-lists.js.map