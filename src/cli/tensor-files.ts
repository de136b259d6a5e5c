import { open, realpath, stat } from "node:fs/promises";
import { dirname, extname } from "node:path";
import { FILE_MODES, writeFileAtomically } from "../model-files/atomic-write.ts";
import { heldAs, storedBytes } from "../model-files/element-types.ts";
import { type JsonBounds, jsonObjectOf, parseBoundedJson } from "../model-files/file-text.ts";
import type { TensorHeader, TensorSource } from "../model-files/index.ts";
import { ModelFile } from "../model-files/model-file.ts";
import {
  encodeNpyHeader,
  NPY_PREFIX_BYTES,
  npyElements,
  npyTextRange,
  parseNpyText,
} from "../model-files/npz.ts";
import { allocateData, isHalf } from "../protocol/dtypes.ts";
import { staysFinite } from "../protocol/encoding/encoding.ts";
import { type NumericData, toHalfFloats } from "../protocol/encoding/half-floats.ts";
import { mismatch, PserverError } from "../protocol/errors.ts";
import { BATCH_BYTES, PARAMETERS_PER_REQUEST_MAX, RANK_MAX } from "../protocol/limits.ts";
import {
  elementCount,
  sameShape,
  type Tensor,
  tensorBytes,
  tensorView,
  zeros,
} from "../protocol/tensor.ts";
import { errnoCode, fileError, io } from "../system/file-errors.ts";
import { jsonElement } from "./output/tensor-summary.ts";
import { visibleJson } from "./output/wrap.ts";

/** The parameter that the tensor of a file is for. */
export type ExpectedTensor = TensorHeader;

/** Makes the error for a file that does not fit the parameter. */
function tensorMismatch(
  code: "BAD_DTYPE" | "BAD_SHAPE" | "BAD_LENGTH" | "BAD_VALUE",
  what: string,
  expected: string,
  received: string,
  parameter: ExpectedTensor,
): PserverError {
  const shown = received.slice(0, 120);
  const { name } = parameter;
  return mismatch(code, `${name}: ${what}`, expected, shown, { parameter: name });
}

/** Format of a file with one tensor: numpy's `.npy`, JSON, or the bare little-endian bytes. */
type TensorFileKind = "npy" | "json" | "raw";

const KINDS: Readonly<Record<string, TensorFileKind>> = {
  ".npy": "npy",
  ".json": "json",
  ".bin": "raw",
  ".raw": "raw",
  "": "raw",
};

/**
 * Returns the format for the ending of a file's name, in upper or lower case; raw bytes without an ending.
 * @throws BAD_VALUE for another ending.
 */
function tensorFileKind(path: string): TensorFileKind {
  const kind = KINDS[extname(path).toLowerCase()];
  if (kind !== undefined) return kind;
  const expected = "a file ending in .npy, .json, .bin or .raw, or without an ending";
  throw mismatch("BAD_VALUE", "tensor file", expected, JSON.stringify(path));
}

/** Elements in one chunk of text, which has some hundred KiB. */
const PIECE_ELEMENTS = 16_384;

/** Encodes `{"name":…,"dtype":…,"shape":[…],…entries,"values":[…]}` in chunks, the values flat in C order. */
export function* encodeJsonTensor(
  name: string,
  tensor: Tensor,
  entries: Readonly<Record<string, unknown>> = {},
): Generator<string, void> {
  const { dtype, shape, data } = tensor;
  yield `${visibleJson({ name, dtype, shape, ...entries }).slice(0, -1)},"values":[`;
  for (let start = 0; start < data.length; start += PIECE_ELEMENTS) {
    const count = Math.min(PIECE_ELEMENTS, data.length - start);
    const texts = Array.from({ length: count }, (_, i) => jsonElement(tensor, start + i));
    yield (start > 0 ? "," : "") + texts.join(",");
  }
  yield "]}\n";
}

/**
 * Reads a tensor from JSON: an array of values, flat or nested as the shape says, or the object that {@link
 * encodeJsonTensor} writes.
 * @throws BAD_DTYPE, BAD_SHAPE, BAD_LENGTH if it is of another type or shape; BAD_VALUE for an element that the
 *   type cannot hold exactly, or only as another value.
 */
export function decodeJsonTensor(value: unknown, expected: ExpectedTensor): Tensor {
  const values = checkedValues(value, expected);
  const { dtype, shape } = expected;
  const elements = elementCount(shape);
  const data = isHalf(dtype) ? new Float32Array(elements) : allocateData(dtype, elements);
  const flat = values.every((element) => !Array.isArray(element));
  fill(data as NumericData, 0, values, flat ? [data.length] : shape, expected);
  if (!isHalf(dtype)) return { dtype, shape, data };
  return { dtype, shape, data: toHalfFloats(dtype, data as Float32Array) };
}

function checkedValues(value: unknown, expected: ExpectedTensor): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (typeof value === "number" && expected.shape.length === 0) return [value];
  const { dtype = expected.dtype, shape = expected.shape, values } = jsonObjectOf(value);
  if (dtype !== expected.dtype) {
    throw tensorMismatch("BAD_DTYPE", "dtype", expected.dtype, String(dtype), expected);
  }
  if (!Array.isArray(shape) || !sameShape(shape, expected.shape)) {
    const received = JSON.stringify(shape);
    throw tensorMismatch("BAD_SHAPE", "shape", `[${expected.shape}]`, received, expected);
  }
  if (Array.isArray(values)) return values;
  const expectedForm = "an array, or an object with values";
  throw tensorMismatch("BAD_VALUE", "JSON", expectedForm, typeof value, expected);
}

/** Copies nested arrays into flat data; returns the index for the next element. */
function fill(
  data: NumericData,
  start: number,
  values: readonly unknown[],
  shape: readonly number[],
  expected: ExpectedTensor,
): number {
  const [size = 1, ...inner] = shape;
  if (values.length !== size) {
    const code = inner.length === 0 && shape.length <= 1 ? "BAD_LENGTH" : "BAD_SHAPE";
    throw tensorMismatch(code, "values of one axis", String(size), String(values.length), expected);
  }
  let at = start;
  for (const value of values) {
    if (inner.length > 0) {
      if (!Array.isArray(value))
        throw tensorMismatch("BAD_SHAPE", "element", "an array", show(value), expected);
      at = fill(data, at, value, inner, expected);
    } else {
      setElement(data, at++, value, expected);
    }
  }
  return at;
}

function setElement(data: NumericData, at: number, value: unknown, expected: ExpectedTensor): void {
  if (isSet(data, at, value, expected)) return;
  const expectedForm = `a value of ${expected.dtype}`;
  throw tensorMismatch("BAD_VALUE", `element ${at}`, expectedForm, show(value), expected);
}

/** Sets an element unless its type cannot hold the value; returns whether it did. */
function isSet(data: NumericData, at: number, value: unknown, { dtype }: ExpectedTensor): boolean {
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
    return setBig(data, at, value);
  }
  if (dtype === "bool") return typeof value === "boolean" && setPlain(data, at, Number(value));
  // Checked as it will be rounded: a number that only float32 holds would become an infinity.
  const isTooLarge =
    isHalf(dtype) && typeof value === "number" && !staysFinite(Float32Array.of(value), dtype);
  return !isTooLarge && setPlain(data, at, value);
}

type BigData = Extract<NumericData, { readonly [at: number]: bigint }>;

function setBig(data: BigData, at: number, value: unknown): boolean {
  const text = typeof value === "number" && Number.isSafeInteger(value) ? String(value) : value;
  if (typeof text !== "string" || !/^-?\d{1,20}$/.test(text)) return false;
  const integer = BigInt(text);
  data[at] = integer;
  return data[at] === integer;
}

function setPlain(data: Exclude<NumericData, BigData>, at: number, value: unknown): boolean {
  const named = value === "NaN" || value === "Infinity" || value === "-Infinity";
  const number = named ? Number(value) : value;
  if (typeof number !== "number") return false;
  data[at] = number;
  const stored = data[at];
  // Rounding a float is intended; an integer that wraps or a float that overflows is an error.
  if (data instanceof Float32Array || data instanceof Float64Array) {
    return named || Number.isFinite(stored);
  }
  return stored === number;
}

function show(value: unknown): string {
  return (JSON.stringify(value) ?? typeof value).slice(0, 60);
}

/** Maximum number of groups that are read or sent at a time, and of their bytes; a larger tensor goes alone. */
const IN_WORK_MAX = 16;
const IN_WORK_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Maximum number of tensors in a group, and of the bytes of several: about what one request declares, and a
 * record of the journal holds.
 */
const GROUP_MAX = PARAMETERS_PER_REQUEST_MAX;
const GROUP_BYTES_MAX = BATCH_BYTES;

/**
 * Runs `work` for all sources in groups, some at a time: small ones that follow each other are a group, a large
 * one is by itself. After a failure no further one is started, and the call rejects when all have ended.
 */
export async function inBoundedOrder(
  sources: readonly TensorSource[],
  work: (group: readonly TensorSource[]) => Promise<void>,
): Promise<void> {
  const running = new Map<Promise<void>, number>();
  let failure: { readonly error: unknown } | undefined;
  let bytes = 0;
  for (const group of grouped(sources)) {
    const next = groupBytes(group);
    while (running.size > 0 && (running.size >= IN_WORK_MAX || bytes + next > IN_WORK_BYTES_MAX)) {
      await Promise.race(running.keys());
    }
    if (failure !== undefined) break;
    bytes += next;
    const task: Promise<void> = work(group)
      .catch((error: unknown) => {
        failure ??= { error };
      })
      .finally(() => {
        running.delete(task);
        bytes -= next;
      });
    running.set(task, next);
  }
  await Promise.all(running.keys());
  if (failure !== undefined) throw failure.error;
}

function grouped(sources: readonly TensorSource[]): TensorSource[][] {
  const groups: TensorSource[][] = [];
  let bytes = 0;
  for (const source of sources) {
    const own = headerBytes(source.header);
    const last = groups.at(-1);
    if (last !== undefined && last.length < GROUP_MAX && bytes + own <= GROUP_BYTES_MAX) {
      last.push(source);
      bytes += own;
    } else {
      groups.push([source]);
      bytes = own;
    }
  }
  return groups;
}

/** Reads a tensor of a model file. @throws what the file's reader throws. */
export async function readTensor(source: TensorSource): Promise<Tensor> {
  const tensor = zeros(source.header.dtype, source.header.shape);
  const target = tensorView(tensor);
  let filled = 0;
  for await (const chunk of source.chunks()) {
    target.set(chunk, filled);
    filled += chunk.length;
  }
  return tensor;
}

/** Returns the bytes of the elements of all tensors of a group. */
export function groupBytes(group: readonly TensorSource[]): number {
  return group.reduce((sum, { header }) => sum + headerBytes(header), 0);
}

/** Returns the bytes of a tensor's elements. */
function headerBytes({ dtype, shape }: TensorSource["header"]): number {
  return tensorBytes(dtype, shape);
}

/** JSON is read as one string, and Node.js cannot hold one above 512 MiB. */
const JSON_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Reads the tensor in a file: `.npy`, `.json`, or the little-endian bytes in C order.
 * @throws BAD_VALUE for another ending; IO; BAD_FILE; BAD_DTYPE, BAD_SHAPE, BAD_LENGTH or BAD_VALUE if it does
 *   not fit the parameter; TOO_LARGE for JSON above 256 MiB.
 */
export async function readTensorFile(path: string, expected: ExpectedTensor): Promise<Tensor> {
  const file = await ModelFile.open(path);
  try {
    const kind = tensorFileKind(path);
    if (kind === "json") return await readJson(file, expected);
    return kind === "npy" ? await readNpy(file, expected) : await readRaw(file, expected);
  } finally {
    await file.close();
  }
}

/** Reads an array whose header has the type and shape of the parameter, or a type that it holds exactly. */
async function readNpy(file: ModelFile, expected: ExpectedTensor): Promise<Tensor> {
  const what = "the array";
  const prefix = await file.read(0, NPY_PREFIX_BYTES, what);
  const range = npyTextRange(file.path, what, prefix);
  const text = await file.read(range.begin, range.end - range.begin, what);
  const header = parseNpyText(file.path, what, Buffer.from(text).toString("latin1"));
  const { stored, type } = header;
  if (stored === undefined || heldAs(stored) !== expected.dtype) {
    throw tensorMismatch("BAD_DTYPE", "dtype", expected.dtype, stored?.name ?? type, expected);
  }
  if (!sameShape(header.shape, expected.shape)) {
    const received = `[${header.shape}]`;
    throw tensorMismatch("BAD_SHAPE", "shape", `[${expected.shape}]`, received, expected);
  }
  const bytes = elementCount(expected.shape) * storedBytes(stored);
  checkBytes(file.bytes - range.end, bytes, expected);
  const elements = (): AsyncIterable<Uint8Array> => file.stream(range.end, bytes, "the elements");
  return await readTensor({
    header: expected,
    chunks: () => npyElements(elements(), header, stored),
  });
}

async function readRaw(file: ModelFile, expected: ExpectedTensor): Promise<Tensor> {
  const bytes = tensorBytes(expected.dtype, expected.shape);
  checkBytes(file.bytes, bytes, expected);
  return await readTensor({
    header: expected,
    chunks: () => file.stream(0, bytes, "the elements"),
  });
}

function checkBytes(received: number, bytes: number, expected: ExpectedTensor): void {
  if (received === bytes) return;
  throw tensorMismatch("BAD_LENGTH", "bytes", String(bytes), String(received), expected);
}

async function readJson(file: ModelFile, expected: ExpectedTensor): Promise<Tensor> {
  if (file.bytes > JSON_BYTES_MAX) {
    const limit = `at most ${JSON_BYTES_MAX} bytes of JSON`;
    throw mismatch("TOO_LARGE", file.path, limit, file.bytes, { path: file.path });
  }
  const bytes = await file.read(0, file.bytes, "JSON");
  const bounds = jsonBounds(expected.shape);
  return decodeJsonTensor(parseBoundedJson(file.path, "JSON", bytes, bounds).value, expected);
}

/**
 * Returns the bounds for the JSON of a tensor of this shape: nested lists or a flat one, in an object or not.
 */
function jsonBounds(shape: readonly number[]): JsonBounds {
  const outer = shape.slice(0, -1);
  const lists = outer.map((_, axis) => elementCount(outer.slice(0, axis + 1)));
  return {
    depth: Math.max(2, shape.length + 1),
    containers: 3 + lists.reduce((sum, count) => sum + count, 0),
    commas: elementCount(shape) + RANK_MAX + 8,
  };
}

/** Bytes written at a time; between two writes an interrupt is noticed. */
const CHUNK_BYTES = 16 * 1024 * 1024;

/** Options for writing a tensor. */
export interface WriteOptions {
  readonly signal: AbortSignal;
  /** Called with the bytes of elements written so far; not for JSON, whose length is not known. */
  readonly onProgress?: (doneBytes: number) => void;
}

/**
 * Writes a tensor into a file: `.npy`, `.json`, or the little-endian bytes in C order. A file
 * appears whole or not at all; a link is followed; a pipe or device is written to and never replaced.
 * Returns the number of bytes.
 * @throws BAD_VALUE for another ending; IO or DISK_FULL; the reason of `signal`.
 */
export async function writeTensorFile(
  path: string,
  name: string,
  tensor: Tensor,
  options: WriteOptions,
): Promise<number> {
  const content = chunks(path, name, tensor, options);
  const target = await findTarget(path);
  if (target.isFile) return await writeFileAtomically(target.path, content, FILE_MODES.byUmask);
  return await writeThrough(path, content);
}

/**
 * Checks, before the tensor is read, that it can be written into a file of this name.
 * @throws BAD_VALUE for another ending, IO if it names no place for a file.
 */
export async function checkTensorTarget(path: string): Promise<void> {
  tensorFileKind(path);
  await findTarget(path);
}

/** Whether a path leads to a file, or a new one can be made there; a file's path has its links resolved. */
async function findTarget(path: string): Promise<{ path: string; isFile: boolean }> {
  try {
    const isFile = (await stat(path)).isFile();
    return { path: isFile ? await realpath(path) : path, isFile };
  } catch (error) {
    if (errnoCode(error) !== "ENOENT") throw fileError("examine", path, error);
    await checkDirectory(path);
    return { path, isFile: true };
  }
}

/** @throws IO that names the directory of a new file where that does not exist. */
async function checkDirectory(path: string): Promise<void> {
  const directory = dirname(path);
  try {
    await stat(directory);
  } catch (error) {
    if (errnoCode(error) !== "ENOENT") throw fileError("examine", directory, error);
    const message = `cannot write ${path}: the directory ${directory} does not exist`;
    throw new PserverError("IO", message, { path: directory }, { cause: error });
  }
}

async function writeThrough(path: string, content: AsyncIterable<Uint8Array>): Promise<number> {
  const handle = await io("open", path, open(path, "w"));
  let bytes = 0;
  try {
    for await (const chunk of content) {
      for (let written = 0; written < chunk.length; ) {
        const part = await io("write", path, handle.write(chunk, written));
        written += part.bytesWritten;
      }
      bytes += chunk.length;
    }
  } finally {
    await io("close", path, handle.close());
  }
  return bytes;
}

async function* chunks(
  path: string,
  name: string,
  tensor: Tensor,
  { signal, onProgress }: WriteOptions,
): AsyncGenerator<Uint8Array, void> {
  const kind = tensorFileKind(path);
  if (kind === "json") {
    for (const text of encodeJsonTensor(name, tensor)) {
      signal.throwIfAborted();
      yield Buffer.from(text);
    }
    return;
  }
  if (kind === "npy") yield encodeNpyHeader(tensor.dtype, tensor.shape);
  const bytes = tensorView(tensor);
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    signal.throwIfAborted();
    yield bytes.subarray(start, start + CHUNK_BYTES);
    onProgress?.(Math.min(start + CHUNK_BYTES, bytes.length));
  }
}
