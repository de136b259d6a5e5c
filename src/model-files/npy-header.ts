import { type Dtype, isDtype } from "../protocol/dtypes.ts";
import { badFile, badFileDtype } from "./bad-file.ts";
import { parsePythonDict } from "./python-dict.ts";
import { isShape, showShape, type TensorHeader } from "./tensor.ts";

/** numpy's names of the element types. */
const NUMPY_DTYPES = {
  int32: "<i4",
  uint32: "<u4",
  int64: "<i8",
  uint64: "<u8",
  float32: "<f4",
  float64: "<f8",
} as const satisfies Record<Dtype, string>;

/** Bytes that say how long the header is, at most: magic, version, length. */
export const NPY_PREFIX_BYTES = 12;

const MAGIC = "\x93NUMPY";
const ALIGNMENT = 64;
const DICT_BYTES_MAX = 64 * 1024;
const dtypesByName = new Map<string, Dtype>(
  Object.entries(NUMPY_DTYPES).flatMap(([dtype, name]) => (isDtype(dtype) ? [[name, dtype]] : [])),
);

/** Type and shape in a `.npy` header. */
export type NpyHeader = Pick<TensorHeader, "dtype" | "shape">;

/** Where the text of the header lies; the elements follow it. */
export interface NpyTextRange {
  readonly begin: number;
  readonly end: number;
}

/** A version 1 `.npy` header for elements in C order, padded so that they begin at a multiple of 64. */
export function encodeNpyHeader(dtype: Dtype, shape: readonly number[]): Uint8Array {
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
  const dict = `{'descr': '${NUMPY_DTYPES[dtype]}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const unpadded = MAGIC.length + 4 + dict.length + 1;
  const bytes = Math.ceil(unpadded / ALIGNMENT) * ALIGNMENT;
  const textBytes = bytes - MAGIC.length - 4;
  const version = "\x01\x00";
  const length = String.fromCharCode(textBytes & 0xff, textBytes >> 8);
  const text = `${dict.padEnd(textBytes - 1)}\n`;
  return Buffer.from(MAGIC + version + length + text, "latin1");
}

/**
 * Where the text of the header lies, from the first {@link NPY_PREFIX_BYTES} of a `.npy` file.
 * @throws BAD_FILE unless it is version 1, 2 or 3 and at most 64 KiB long.
 */
export function npyTextRange(path: string, what: string, prefix: Uint8Array): NpyTextRange {
  const magic = Buffer.from(prefix.subarray(0, MAGIC.length)).toString("latin1");
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.byteLength);
  if (magic !== MAGIC || prefix.byteLength < NPY_PREFIX_BYTES) {
    throw badFile(path, what, "an array in numpy's format", "other bytes");
  }
  const major = view.getUint8(6);
  if (major < 1 || major > 3) throw badFile(path, `version of ${what}`, "1, 2 or 3", major);
  const begin = major === 1 ? 10 : 12;
  const textBytes = major === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (textBytes > DICT_BYTES_MAX) {
    throw badFile(path, `header of ${what}`, `at most ${DICT_BYTES_MAX} bytes`, textBytes);
  }
  return { begin, end: begin + textBytes };
}

/**
 * Reads the text of a `.npy` header: a Python dictionary with `descr`, `fortran_order` and `shape`.
 * @throws BAD_DTYPE for element types no parameter has, big-endian ones too; BAD_FILE for Fortran
 * order and for anything else.
 */
export function parseNpyText(path: string, what: string, text: string): NpyHeader {
  const dict = parsePythonDict(text);
  const descr = dict?.get("descr");
  const order = dict?.get("fortran_order");
  const shape = dict?.get("shape");
  if (
    dict?.size !== 3 ||
    descr === undefined ||
    typeof order !== "boolean" ||
    !Array.isArray(shape)
  ) {
    const shown = text.trim().slice(0, 120);
    throw badFile(path, `header of ${what}`, "descr, fortran_order and shape, each once", shown);
  }
  // The `descr` of a structured type is a list, which is refused, too.
  const dtype = typeof descr === "string" ? dtypesByName.get(descr) : undefined;
  if (dtype === undefined) {
    const received = JSON.stringify(descr).slice(0, 120);
    throw badFileDtype(path, what, [...dtypesByName.keys()].join(", "), received);
  }
  if (order) throw badFile(path, `order of ${what}`, "C order", "Fortran order");
  if (!isShape(shape)) {
    throw badFile(path, `shape of ${what}`, "a shape that can be counted", showShape(shape));
  }
  return { dtype, shape };
}
