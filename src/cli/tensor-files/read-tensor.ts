import { type JsonBounds, parseBoundedJson } from "../../model-files/json-bounds.ts";
import { ModelFile } from "../../model-files/model-file.ts";
import { NPY_PREFIX_BYTES, npyTextRange, parseNpyText } from "../../model-files/npy-header.ts";
import { RANK_MAX } from "../../protocol/limits.ts";
import { mismatch } from "../../protocol/mismatch.ts";
import { elementCount, sameShape, type Tensor, tensorBytes } from "../../protocol/tensor.ts";
import { readTensor } from "../job/tensor-work.ts";
import { type ExpectedTensor, tensorMismatch } from "./expected-tensor.ts";
import { tensorFileKind } from "./file-kind.ts";
import { decodeJsonTensor } from "./json-tensor.ts";

/** JSON is read as one string, and Node.js cannot hold one above 512 MiB. */
const JSON_BYTES_MAX = 256 * 1024 * 1024;

/**
 * The tensor in a file: `.npy`, `.json`, or the little-endian bytes in C order.
 * @throws BAD_VALUE for another ending; IO; BAD_FILE; BAD_DTYPE, BAD_SHAPE, BAD_LENGTH or BAD_VALUE if it does not fit the
 * parameter; TOO_LARGE for JSON above 256 MiB.
 */
export async function readTensorFile(path: string, expected: ExpectedTensor): Promise<Tensor> {
  const file = await ModelFile.open(path);
  try {
    const kind = tensorFileKind(path);
    if (kind === "json") return await readJson(file, expected);
    const begin = kind === "npy" ? await checkNpyHeader(file, expected) : 0;
    return await readBytes(file, begin, expected);
  } finally {
    await file.close();
  }
}

/** Checks type and shape in the header; returns the position of the elements. */
async function checkNpyHeader(file: ModelFile, expected: ExpectedTensor): Promise<number> {
  const what = "the array";
  const prefix = await file.read(0, NPY_PREFIX_BYTES, what);
  const range = npyTextRange(file.path, what, prefix);
  const text = await file.read(range.begin, range.end - range.begin, what);
  const header = parseNpyText(file.path, what, Buffer.from(text).toString("latin1"));
  if (header.dtype !== expected.dtype) {
    throw tensorMismatch("BAD_DTYPE", "dtype", expected.dtype, header.dtype, expected);
  }
  if (!sameShape(header.shape, expected.shape)) {
    const received = `[${header.shape}]`;
    throw tensorMismatch("BAD_SHAPE", "shape", `[${expected.shape}]`, received, expected);
  }
  return range.end;
}

async function readBytes(
  file: ModelFile,
  begin: number,
  expected: ExpectedTensor,
): Promise<Tensor> {
  const expectedBytes = tensorBytes(expected.dtype, expected.shape);
  const received = file.bytes - begin;
  if (received !== expectedBytes) {
    throw tensorMismatch("BAD_LENGTH", "bytes", String(expectedBytes), String(received), expected);
  }
  const chunks = (): AsyncIterable<Uint8Array> => file.stream(begin, expectedBytes, "the elements");
  return await readTensor({ header: expected, chunks });
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

/** Bounds for the JSON of a tensor of this shape: nested lists or a flat one, in an object or not. */
function jsonBounds(shape: readonly number[]): JsonBounds {
  const outer = shape.slice(0, -1);
  const lists = outer.map((_, axis) => elementCount(outer.slice(0, axis + 1)));
  return {
    depth: Math.max(2, shape.length + 1),
    containers: 3 + lists.reduce((sum, count) => sum + count, 0),
    commas: elementCount(shape) + RANK_MAX + 8,
  };
}
