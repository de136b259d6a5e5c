import { allocateData, bytesOf, DTYPES, type Dtype, isHalf, type TensorData } from "../dtypes.ts";
import { toHalfFloats, toNumbers } from "../encoding/half-floats.ts";
import { PserverError } from "../errors.ts";
import { ROW_LISTS_WASM_BASE64 } from "./wasm.ts";

/** Adds rows to sums; see assembly/index.ts. */
type AddRowsKernel = (
  target: number,
  begun: number,
  first: number,
  sums: number,
  rows: number,
  places: number,
  n: number,
  elements: number,
) => void;

/** Exports of assembly/index.ts. */
interface RowListKernels {
  readonly ascending: (numbers: number, n: number) => number;
  readonly distinct: (numbers: number, places: number, n: number, work: number) => number;
  readonly addRowsF32: AddRowsKernel;
  readonly addRowsF64: AddRowsKernel;
  readonly addRowsI32: AddRowsKernel;
  readonly addRowsI64: AddRowsKernel;
}

/** Memory for one operation at a time, with the kernels that work in it. */
interface RowListMemory {
  readonly kernels: RowListKernels;
  /** Address of the first byte. */
  readonly start: number;
  readonly buffer: ArrayBuffer;
}

const PAGE_BYTES = 65_536;
/**
 * Largest memory that is kept for the next operation. Larger memory is left to the garbage collector: a
 * WebAssembly memory cannot shrink.
 */
const KEPT_BYTES = 20 * 1024 * 1024;

let keptMemory: (RowListMemory & { readonly bytes: number }) | undefined;
let compiled: WebAssembly.Module | undefined;

/**
 * Returns memory of at least this many bytes, with undefined contents, for one operation. It belongs to the
 * thread, and the next operation may get it again.
 * @throws RangeError if the process has no addresses left for it.
 */
function rowListMemory(bytes: number): RowListMemory {
  if (keptMemory !== undefined && keptMemory.bytes >= bytes) return keptMemory;
  // The module's constants have the first page.
  const pages = 1 + Math.ceil(Math.max(bytes, (keptMemory?.bytes ?? 0) * 2) / PAGE_BYTES);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
  compiled ??= new WebAssembly.Module(Buffer.from(ROW_LISTS_WASM_BASE64, "base64"));
  const { exports } = new WebAssembly.Instance(compiled, { env: { memory } });
  const kernels = exports as unknown as RowListKernels;
  const room = {
    kernels,
    start: PAGE_BYTES,
    buffer: memory.buffer,
    bytes: (pages - 1) * PAGE_BYTES,
  };
  if (room.bytes <= KEPT_BYTES) keptMemory = room;
  return room;
}

/** Shorter lists are checked faster one by one than copied for the kernel. */
const LIST_MIN = 64;
const NUMBER_BYTES = 4;
/** Numbers checked at a time; few enough to stay in a near cache. */
const CHUNK_NUMBERS = 16_384;

/** Returns whether each number is greater than the one before. */
export function isAscending(numbers: ArrayLike<number>): boolean {
  if (numbers instanceof Uint32Array && numbers.length >= LIST_MIN) return isAscendingList(numbers);
  for (let i = 1; i < numbers.length; i++) {
    if ((numbers[i] as number) <= (numbers[i - 1] as number)) return false;
  }
  return true;
}

function isAscendingList(numbers: Uint32Array): boolean {
  const { kernels, start, buffer } = rowListMemory(CHUNK_NUMBERS * NUMBER_BYTES);
  // Chunks overlap by a number, so that all neighbours are compared.
  for (let at = 0; at < numbers.length - 1; at += CHUNK_NUMBERS - 1) {
    const chunk = numbers.subarray(at, at + CHUNK_NUMBERS);
    new Uint32Array(buffer, start, chunk.length).set(chunk);
    if (kernels.ascending(start, chunk.length) === 0) return false;
  }
  return true;
}

/** Non-negative whole numbers up to 2^53: a dimension may be longer than 2^32. */
export type Numbers = Float64Array;

/** Numbers without repeats. */
export interface Distinct {
  /** Ascending, each once. */
  readonly values: Numbers;
  /** For each of the original numbers, in their order, its place among `values`. */
  readonly places: Uint32Array;
}

const WIDE_NUMBER_BYTES = 8;
const PLACE_BYTES = 4;
/** Bytes that the kernel needs to sort a number. */
const WORK_BYTES = 32;

/** Sorts numbers and removes repeats. The numbers are not copied if they are ascending. */
export function distinct(numbers: Numbers): Distinct {
  if (isAscending(numbers)) return { values: numbers, places: countTo(numbers.length) };
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
export function countTo(count: number): Uint32Array {
  const numbers = new Uint32Array(count);
  for (let i = 0; i < count; i++) numbers[i] = i;
  return numbers;
}

/** Types that kernels add up; the others are added up in a wider one. */
type SummedDtype = keyof typeof KERNELS;

const KERNELS = {
  float32: "addRowsF32",
  float64: "addRowsF64",
  int32: "addRowsI32",
  uint32: "addRowsI32",
  int64: "addRowsI64",
  uint64: "addRowsI64",
} as const satisfies Partial<Record<Dtype, keyof RowListKernels>>;

/** Sums are made in windows of this many bytes, and rows read in chunks of as many at most. */
const WINDOW_BYTES = 16 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const ALIGN_BYTES = 16;

/** Rows of a tensor, with the sum that each is added to. */
export interface PlacedRows {
  readonly dtype: Dtype;
  readonly values: TensorData;
  readonly rowElements: number;
  /** For each row the number of its sum. */
  readonly places: Uint32Array;
  /** Number of sums; each has a row. */
  readonly sums: number;
}

/**
 * Adds rows up, in order and in their element type; integers wrap around. Half floats are added up as float32, and each
 * sum is rounded once.
 * @throws UNSUPPORTED for bools.
 */
export function sumByPlace(rows: PlacedRows): TensorData {
  const { dtype, values } = rows;
  if (isHalf(dtype)) {
    const sums = addUp({ ...rows, dtype: "float32", values: toNumbers(dtype, values) });
    return toHalfFloats(dtype, sums as Float32Array);
  }
  if (dtype === "int8" || dtype === "uint8") {
    const wide = Int32Array.from(values as Int8Array | Uint8Array);
    const sums = addUp({ ...rows, dtype: "int32", values: wide }) as Int32Array;
    return dtype === "int8" ? Int8Array.from(sums) : Uint8Array.from(sums);
  }
  if (dtype !== "bool") return addUp({ ...rows, dtype });
  throw new PserverError("UNSUPPORTED", "expected numbers to add up; received bool");
}

type SummedRows = PlacedRows & { readonly dtype: SummedDtype };

function addUp(rows: SummedRows): TensorData {
  const { dtype, rowElements, sums } = rows;
  const result = allocateData(dtype, sums * rowElements);
  const rowBytes = rowElements * DTYPES[dtype].bytes;
  const windowSums = Math.max(1, Math.floor(WINDOW_BYTES / rowBytes));
  for (let first = 0; first < sums; first += windowSums) {
    sumWindow(rows, first, Math.min(windowSums, sums - first), result);
  }
  return result;
}

/** Computes `sums` sums from number `first` on, and writes them to their place in the result. */
function sumWindow(rows: SummedRows, first: number, sums: number, result: TensorData): void {
  const { dtype, values, rowElements, places } = rows;
  const rowBytes = rowElements * DTYPES[dtype].bytes;
  const chunkRows = Math.min(places.length, Math.max(1, Math.floor(CHUNK_BYTES / rowBytes)));
  const begunAt = aligned(sums * rowBytes);
  const placesAt = begunAt + aligned(sums);
  const rowsAt = placesAt + aligned(chunkRows * 4);
  const { kernels, start, buffer } = rowListMemory(rowsAt + chunkRows * rowBytes);
  const addRows: AddRowsKernel = kernels[KERNELS[dtype]];
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

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGN_BYTES) * ALIGN_BYTES;
}
