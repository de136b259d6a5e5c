import type { Dtype } from "../protocol/dtypes.ts";
import { quoteName } from "../protocol/names.ts";
import {
  conversionOf,
  convertElements,
  heldAs,
  type StoredType,
  type StoredTypeName,
  storedBytes,
  toRowOrder,
} from "./element-types.ts";
import { badFile } from "./file-text.ts";
import type { ModelFile } from "./model-file.ts";
import { checkNamesApart, memberName, trueNameOf } from "./model-path.ts";
import {
  DESCRIPTION_BYTES_MAX,
  dataBytes,
  elementsOf,
  encodeMetadata,
  type IncomingModel,
  isShape,
  type OutgoingModel,
  parseMetadata,
  type SkippedTensor,
  showShape,
  type TensorSource,
} from "./tensor-headers.ts";
import { readZip, unpack, unpackBeginning, type ZipEntry } from "./zip-reader.ts";
import { writeZip } from "./zip-writer.ts";

/** A value of a {@link parsePythonDict} dictionary; tuples and lists are arrays. */
type PythonValue = string | boolean | number | readonly PythonValue[];

// Each token is found in one step without going back, so hostile text costs no more than its length.
const TOKEN =
  /\s*(?:'([^'\\\n]*)'|"([^"\\\n]*)"|(\d+)L?(?![A-Za-z0-9_])|(True|False)(?![A-Za-z0-9_])|([{}()[\],:]))/y;
const DEPTH_MAX = 8;
const CLOSING: Readonly<Record<string, string>> = { "(": ")", "[": "]" };

interface Token {
  readonly mark: string;
  readonly value: PythonValue | undefined;
}

/**
 * Parses a Python dictionary of an array header: strings without escapes, `True`, `False`, whole numbers,
 * tuples and lists. Undefined for anything else, and if a key occurs twice.
 */
function parsePythonDict(text: string): Map<string, PythonValue> | undefined {
  const tokens = tokensOf(text.trim());
  if (tokens === undefined || tokens[0]?.mark !== "{") return undefined;
  const reader = new TokenReader(tokens, 1);
  const dict = new Map<string, PythonValue>();
  while (!reader.take("}")) {
    const key = reader.value(0);
    if (typeof key !== "string" || dict.has(key) || !reader.take(":")) return undefined;
    const value = reader.value(0);
    if (value === undefined) return undefined;
    dict.set(key, value);
    if (!reader.take(",") && !reader.sees("}")) return undefined;
  }
  return reader.atEnd() ? dict : undefined;
}

class TokenReader {
  readonly #tokens: readonly Token[];
  #next: number;

  constructor(tokens: readonly Token[], next: number) {
    this.#tokens = tokens;
    this.#next = next;
  }

  atEnd(): boolean {
    return this.#next === this.#tokens.length;
  }

  sees(mark: string): boolean {
    return this.#tokens[this.#next]?.mark === mark;
  }

  take(mark: string): boolean {
    if (!this.sees(mark)) return false;
    this.#next++;
    return true;
  }

  /** Reads the value that begins here; undefined if none does. */
  value(depth: number): PythonValue | undefined {
    const token = this.#tokens[this.#next++];
    if (token === undefined || token.value !== undefined) return token?.value;
    const closing = CLOSING[token.mark];
    if (closing === undefined || depth === DEPTH_MAX) return undefined;
    const values: PythonValue[] = [];
    while (!this.take(closing)) {
      const value = this.value(depth + 1);
      if (value === undefined || (!this.take(",") && !this.sees(closing))) return undefined;
      values.push(value);
    }
    return values;
  }
}

function tokensOf(text: string): Token[] | undefined {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  for (let end = 0; end < text.length; end = TOKEN.lastIndex) {
    const match = TOKEN.exec(text);
    if (match === null) return undefined;
    const [, single, double, digits, word, mark = ""] = match;
    const number = digits === undefined ? undefined : Number(digits);
    const boolean = word === undefined ? undefined : word === "True";
    tokens.push({ mark, value: single ?? double ?? number ?? boolean });
  }
  return tokens;
}

/** numpy's names of the element types. */
const NUMPY_DTYPES = {
  int32: "<i4",
  uint32: "<u4",
  int64: "<i8",
  uint64: "<u8",
  float32: "<f4",
  float64: "<f8",
  bool: "|b1",
  uint8: "|u1",
  int8: "|i1",
  float16: "<f2",
  // numpy has no bfloat16. This is how it writes that of ml_dtypes; `view(ml_dtypes.bfloat16)` reads it.
  bfloat16: "<V2",
} as const satisfies Record<Dtype, string>;

/** Most bytes before the text of the header: magic, version and length. */
export const NPY_PREFIX_BYTES = 12;

const MAGIC = "\x93NUMPY";
const ALIGNMENT = 64;
const DICT_BYTES_MAX = 64 * 1024;

/** numpy's names of all element types that are read, without the byte order that stands before them. */
const TYPES_BY_NAME: Readonly<Record<string, StoredTypeName>> = {
  i4: "int32",
  u4: "uint32",
  i8: "int64",
  u8: "uint64",
  f4: "float32",
  f8: "float64",
  f2: "float16",
  b1: "bool",
  u1: "uint8",
  i1: "int8",
  u2: "uint16",
  i2: "int16",
};

/** Type, order and shape in a `.npy` header. */
export interface NpyHeader {
  /** numpy's name of the element type, for messages. */
  readonly type: string;
  /** Undefined for an element type that no parameter can hold. */
  readonly stored: StoredType | undefined;
  readonly isFortranOrder: boolean;
  readonly shape: readonly number[];
}

/** Where the text of the header lies; the elements follow it. */
export interface NpyTextRange {
  readonly begin: number;
  readonly end: number;
}

/** Makes a version 1 `.npy` header for elements in C order, padded so that they begin at a multiple of 64. */
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
 * Finds where the text of the header lies, from the first {@link NPY_PREFIX_BYTES} of a `.npy` file.
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
 * @throws BAD_FILE for anything else.
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
  if (!isShape(shape)) {
    throw badFile(path, `shape of ${what}`, "a shape that can be counted", showShape(shape));
  }
  // The `descr` of a structured type is a list.
  const type = typeof descr === "string" ? descr : JSON.stringify(descr).slice(0, 120);
  if (type === UNTYPED_PAIRS) {
    const hint = `${type}: bytes without a type; bfloat16 must be saved with the dtype of ml_dtypes`;
    return { type: hint, stored: undefined, isFortranOrder: order, shape };
  }
  return { type, stored: storedTypeOf(type), isFortranOrder: order, shape };
}

/** What bfloat16 becomes when numpy loads it and saves it again: any two bytes. */
const UNTYPED_PAIRS = "|V2";

/** Reads numpy's name of an element type, such as `<f4`, `>i8` or `|b1`; undefined if it is not read. */
function storedTypeOf(descr: string): StoredType | undefined {
  if (descr === NUMPY_DTYPES.bfloat16) return { name: "bfloat16", isLittleEndian: true };
  const [, order = "", rest = ""] = /^([<>|])(\w+)$/.exec(descr) ?? [];
  const name = Object.hasOwn(TYPES_BY_NAME, rest) ? TYPES_BY_NAME[rest] : undefined;
  if (name === undefined) return undefined;
  const stored = { name, isLittleEndian: order !== ">" };
  // Only a single byte has no order.
  return order === "|" && storedBytes(stored) > 1 ? undefined : stored;
}

/**
 * Turns the elements of an array as a file holds them into those of a parameter: little-endian, in C order,
 * of a type that parameters have.
 */
export function npyElements(
  chunks: AsyncIterable<Uint8Array>,
  { isFortranOrder, shape }: NpyHeader,
  stored: StoredType,
): AsyncIterable<Uint8Array> {
  const elements = convertElements(chunks, stored);
  return isFortranOrder && shape.length > 1
    ? toRowOrder(elements, shape, heldAs(stored))
    : elements;
}

const SUFFIX = ".npy";

/** Prefix of the comment of a member with an escaped name; the true name follows as JSON. */
const NAME_COMMENT = "PSERVER.name=";

/**
 * Yields the bytes of an npz file, as numpy's `savez` lays it out: a zip archive with a stored member
 * `<name>.npy` per tensor. The format has no place for metadata; it becomes the archive's comment, a JSON
 * object, which numpy does not look at. A name that would unpack to elsewhere is escaped; the member's
 * comment keeps it.
 * @throws what `model.chunks` throws.
 */
export async function* writeNpz(model: OutgoingModel): AsyncGenerator<Uint8Array, void, undefined> {
  const members = model.tensors.map((tensor) => {
    const { name, trueName } = memberName(tensor.name);
    const header = encodeNpyHeader(tensor.dtype, tensor.shape);
    return {
      name: name + SUFFIX,
      ...(trueName === undefined ? {} : { comment: NAME_COMMENT + JSON.stringify(trueName) }),
      bytes: header.byteLength + dataBytes(tensor),
      chunks: async function* () {
        yield header;
        yield* model.chunks(tensor);
      },
    };
  });
  yield* writeZip(members, encodeMetadata(model.metadata));
}

/**
 * Reads the table of contents and the array headers of an npz file, stored or deflated. Checksums are checked
 * as the bytes are read. A comment of another program is not taken for metadata.
 * @throws BAD_FILE, IO.
 */
export async function readNpz(file: ModelFile): Promise<IncomingModel> {
  const { entries, comment } = await readZip(file);
  const tensors: TensorSource[] = [];
  const skipped: SkippedTensor[] = [];
  let sumBytes = 0;
  for (const entry of entries) {
    const { tensor, headerBytes } = await readMember(file, entry);
    sumBytes += headerBytes;
    if (sumBytes > DESCRIPTION_BYTES_MAX) {
      const expected = `at most ${DESCRIPTION_BYTES_MAX}`;
      throw badFile(file.path, "bytes of the arrays' headers", expected, sumBytes);
    }
    if ("type" in tensor) skipped.push(tensor);
    else tensors.push(tensor);
  }
  checkNamesApart(
    file.path,
    tensors.map(({ header }) => header),
  );
  return { tensors, skipped, metadata: parseMetadata(comment) ?? {} };
}

/** Reads a member's header; returns its tensor and the bytes of the header. */
async function readMember(
  file: ModelFile,
  entry: ZipEntry,
): Promise<{ readonly tensor: TensorSource | SkippedTensor; readonly headerBytes: number }> {
  const what = `member ${quoteName(entry.name)}`;
  const member = entry.name.slice(0, -SUFFIX.length);
  if (!entry.name.endsWith(SUFFIX) || member === "") {
    throw badFile(file.path, "members", `names ending in ${SUFFIX}`, what);
  }
  const isNamed = entry.comment.startsWith(NAME_COMMENT);
  const storedName = isNamed ? entry.comment.slice(NAME_COMMENT.length) : undefined;
  const name = trueNameOf(file.path, member, storedName);
  const range = npyTextRange(file.path, what, await unpackBeginning(file, entry, NPY_PREFIX_BYTES));
  const prefix = await unpackBeginning(file, entry, range.end);
  if (prefix.byteLength < range.end) {
    throw badFile(file.path, `header of ${what}`, `${range.end} bytes`, prefix.byteLength);
  }
  const text = Buffer.from(prefix.subarray(range.begin)).toString("latin1");
  const header = parseNpyText(file.path, what, text);
  const { stored, shape, type } = header;
  const headerBytes = range.end;
  if (stored === undefined) {
    await checkSum(file, entry);
    return { tensor: { name, type }, headerBytes };
  }
  const expected = headerBytes + (elementsOf(shape) ?? 0) * storedBytes(stored);
  if (entry.bytes !== expected) {
    throw badFile(file.path, `bytes of ${what}`, expected, entry.bytes);
  }
  const conversion = conversionOf(stored);
  const tensor = {
    header: { name, dtype: heldAs(stored), shape },
    ...(conversion === undefined ? {} : { conversion }),
    chunks: () => npyElements(unpack(file, entry, headerBytes), header, stored),
  };
  return { tensor, headerBytes };
}

/** Reads a member to its checksum: one that is left out must not be one whose type was damaged. */
async function checkSum(file: ModelFile, entry: ZipEntry): Promise<void> {
  for await (const _chunk of unpack(file, entry, entry.bytes));
}
