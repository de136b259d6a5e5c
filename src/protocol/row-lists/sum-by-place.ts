import { allocateData, bytesOf, DTYPES, type Dtype, dtypeOf, type TensorData } from "../dtypes.ts";
import { type AddRowsKernel, type RowListKernels, rowListMemory } from "./row-kernels.ts";

const KERNELS = {
  float32: "addRowsF32",
  float64: "addRowsF64",
  int32: "addRowsI32",
  uint32: "addRowsI32",
  int64: "addRowsI64",
  uint64: "addRowsI64",
} as const satisfies Record<Dtype, keyof RowListKernels>;

/** Sums are made in windows of this many bytes, and rows read in chunks of as many at most. */
const WINDOW_BYTES = 16 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const ALIGN_BYTES = 16;

/** Rows of a tensor, with the sum that each is added to. */
export interface PlacedRows {
  readonly values: TensorData;
  readonly rowElements: number;
  /** For each row the number of its sum. */
  readonly places: Uint32Array;
  /** Number of sums; each has a row. */
  readonly sums: number;
}

/** Adds rows up, in order and in their element type; integers wrap around. */
export function sumByPlace(rows: PlacedRows): TensorData {
  const { values, rowElements, sums } = rows;
  const result = allocateData(dtypeOf(values), sums * rowElements);
  const rowBytes = rowElements * DTYPES[dtypeOf(values)].bytes;
  const windowSums = Math.max(1, Math.floor(WINDOW_BYTES / rowBytes));
  for (let first = 0; first < sums; first += windowSums) {
    sumWindow(rows, first, Math.min(windowSums, sums - first), result);
  }
  return result;
}

/** Makes the sums from number `first` on, and writes them to their place in the result. */
function sumWindow(rows: PlacedRows, first: number, sums: number, result: TensorData): void {
  const { values, rowElements, places } = rows;
  const rowBytes = rowElements * DTYPES[dtypeOf(values)].bytes;
  const chunkRows = Math.min(places.length, Math.max(1, Math.floor(CHUNK_BYTES / rowBytes)));
  const begunAt = aligned(sums * rowBytes);
  const placesAt = begunAt + aligned(sums);
  const rowsAt = placesAt + aligned(chunkRows * 4);
  const { kernels, start, buffer } = rowListMemory(rowsAt + chunkRows * rowBytes);
  const addRows: AddRowsKernel = kernels[KERNELS[dtypeOf(values)]];
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
