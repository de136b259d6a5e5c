import { ROW_LISTS_WASM_BASE64 } from "./wasm.ts";

/** Adds rows to sums; see assembly/index.ts. */
export type AddRowsKernel = (
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
export interface RowListKernels {
  readonly ascending: (numbers: number, n: number) => number;
  readonly distinct: (numbers: number, places: number, n: number, work: number) => number;
  readonly addRowsF32: AddRowsKernel;
  readonly addRowsF64: AddRowsKernel;
  readonly addRowsI32: AddRowsKernel;
  readonly addRowsI64: AddRowsKernel;
}

/** Memory for one operation at a time, with the kernels that work in it. */
export interface RowListMemory {
  readonly kernels: RowListKernels;
  /** Address of the first byte. */
  readonly start: number;
  readonly buffer: ArrayBuffer;
}

const PAGE_BYTES = 65_536;
/** The memory of a larger operation is not kept: it could not be given back otherwise. */
const KEPT_BYTES = 20 * 1024 * 1024;

let kept: (RowListMemory & { readonly bytes: number }) | undefined;
let compiled: WebAssembly.Module | undefined;

/**
 * Memory of at least this many bytes, with undefined contents, for one operation. It is the thread's own,
 * so that the next operation may get the same.
 * @throws RangeError if the process has no addresses left for it.
 */
export function rowListMemory(bytes: number): RowListMemory {
  if (kept !== undefined && kept.bytes >= bytes) return kept;
  // The module's constants have the first page.
  const pages = 1 + Math.ceil(Math.max(bytes, (kept?.bytes ?? 0) * 2) / PAGE_BYTES);
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
  if (room.bytes <= KEPT_BYTES) kept = room;
  return room;
}
