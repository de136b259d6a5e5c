import type { ParameterConfig } from "../protocol/config/index.ts";
import { DTYPES, type Dtype, isDtype } from "../protocol/dtypes.ts";
import { mismatch, PserverError } from "../protocol/errors.ts";
import { RANK_MAX } from "../protocol/limits.ts";
import { escapeName, quoteName } from "../protocol/names.ts";

/** Most tensors of one model file; bounds what the headers of a hostile file can allocate. */
export const TENSORS_MAX = 100_000;

/**
 * Bytes of names, shapes and metadata that a reader accepts from one file: the limit of the
 * safetensors implementation, for every format.
 */
export const DESCRIPTION_BYTES_MAX = 100_000_000;

/** Most values that describe the tensors of one file: a name, shape and place for each, and metadata. */
export const DESCRIPTION_VALUES_MAX = TENSORS_MAX * (RANK_MAX + 8);

/** Description of a tensor in a model file. `shape` is `[]` for a scalar. */
export interface TensorHeader {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
}

/** A tensor of an open model file. */
export interface TensorSource {
  readonly header: TensorHeader;
  /** Present if the file holds another element type: `float16 as float32`. Values are the same. */
  readonly conversion?: string;
  /**
   * Yields the tensor's bytes, little-endian, in C order, from the start at each call. Chunks belong to the
   * receiver and may end inside an element. The number of bytes is checked, so a loop that ends without an
   * error had them all.
   */
  chunks(): AsyncIterable<Uint8Array>;
}

/** A model to be written: checked headers, and the source of their bytes. */
export interface OutgoingModel {
  readonly tensors: readonly TensorHeader[];
  readonly metadata: Metadata;
  /**
   * Yields exactly `dataBytes(header)` bytes. The writer does not use a chunk after it has asked for the
   * next.
   */
  readonly chunks: (header: TensorHeader) => AsyncIterable<Uint8Array>;
}

/** A tensor that no parameter can hold. */
export interface SkippedTensor {
  readonly name: string;
  /** Its element type, as the file names it. */
  readonly type: string;
}

/** The state of a parameter's optimizer in an open file. */
export interface RestorableState {
  readonly config: ParameterConfig;
  /**
   * Returns how many updates by gradients the elements from `start` on, `count` of them, have gone through: the most of
   * the blocks that had them.
   */
  readonly updates: (start: number, count: number) => number;
  readonly slots: readonly TensorSource[];
}

/** The optimizers' states in an open file. */
interface RestorableOptimizers {
  /** Version of the rules under which they were computed. */
  readonly rules: number;
  /** By parameter. */
  readonly states: ReadonlyMap<string, RestorableState>;
}

/** Contents of a model file. */
export interface IncomingModel {
  readonly tensors: readonly TensorSource[];
  /** Tensors of element types of which a parameter cannot hold every value; they are not read. */
  readonly skipped: readonly SkippedTensor[];
  readonly metadata: Metadata;
  /** What optimizers keep of the values; absent in most files. */
  readonly optimizers?: RestorableOptimizers;
}

/** Returns whether a tensor can have this shape. */
export function isShape(value: unknown): value is readonly number[] {
  return elementsOf(value) !== undefined;
}

/**
 * Returns the elements of a tensor of this shape; undefined if no tensor can have it. A dimension may be 0,
 * which a parameter's may not be: files of other programs hold such tensors.
 */
export function elementsOf(shape: unknown): number | undefined {
  if (!Array.isArray(shape) || shape.length > RANK_MAX) return undefined;
  let elements = 1;
  for (const dimension of shape) {
    if (!Number.isSafeInteger(dimension) || dimension < 0 || Object.is(dimension, -0))
      return undefined;
    elements *= dimension;
    // The number of bytes must be exact, too; an element has at most 8 bytes.
    if (elements * 8 > Number.MAX_SAFE_INTEGER) return undefined;
  }
  return elements;
}

/**
 * Returns the bytes of the tensor's elements.
 * @throws BAD_SHAPE if the shape is not valid.
 */
export function dataBytes(header: TensorHeader): number {
  const elements = elementsOf(header.shape);
  if (elements !== undefined) return elements * DTYPES[header.dtype].bytes;
  const expected = `at most ${RANK_MAX} dimensions, whole and not negative, with a product that can be counted`;
  const received = showShape(header.shape);
  const details = { parameter: header.name };
  throw mismatch("BAD_SHAPE", `shape of ${quoteName(header.name)}`, expected, received, details);
}

/**
 * Checks that a file can be made of these headers.
 * @throws EMPTY, TOO_LARGE for the list; BAD_NAME for a name no parameter can have, or one given
 * twice; BAD_DTYPE, BAD_SHAPE.
 */
export function checkHeaders(headers: readonly TensorHeader[]): void {
  if (headers.length === 0) {
    throw new PserverError("EMPTY", "a model needs at least one parameter; received none");
  }
  if (headers.length > TENSORS_MAX) {
    throw new PserverError(
      "TOO_LARGE",
      `parameters of a model file: expected at most ${TENSORS_MAX}; received ${headers.length}`,
      { expected: TENSORS_MAX, received: headers.length },
    );
  }
  const names = new Set<string>();
  for (const header of headers) {
    escapeName(header.name);
    if (names.has(header.name)) throw badName(header.name, "each name once");
    names.add(header.name);
    if (!isDtype(header.dtype)) {
      const expected = Object.keys(DTYPES);
      throw new PserverError(
        "BAD_DTYPE",
        `dtype of ${quoteName(header.name)}: expected ${expected.join(", ")}; received ${quoteName(header.dtype)}`,
        { parameter: header.name, expected, received: header.dtype },
      );
    }
    dataBytes(header);
  }
}

/**
 * Passes the chunks on and counts them.
 * @throws BAD_LENGTH once there are more bytes than the header says, or at the end if there are
 * fewer.
 */
export async function* exactly(
  header: TensorHeader,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const expected = dataBytes(header);
  let received = 0;
  for await (const chunk of chunks) {
    received += chunk.byteLength;
    if (received > expected) break;
    if (chunk.byteLength > 0) yield chunk;
  }
  if (received === expected) return;
  throw new PserverError(
    "BAD_LENGTH",
    `bytes of ${quoteName(header.name)}: expected ${expected}; received ${received > expected ? "at least " : ""}${received}`,
    { parameter: header.name, expected, received },
  );
}

/** Makes a BAD_NAME about a parameter that cannot be saved under its name. */
export function badName(name: string, expected: string): PserverError {
  return mismatch("BAD_NAME", "parameter name", expected, quoteName(name), { parameter: name });
}

/** Shows a shape in messages, cut when long. */
export function showShape(shape: unknown): string {
  const text = JSON.stringify(shape) ?? String(shape);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/** Most bytes of a model's metadata as JSON: the longest comment of a zip archive. */
const METADATA_BYTES_MAX = 65_535;

/** Text about a model, by key. */
export type Metadata = Readonly<Record<string, string>>;

/**
 * Refuses metadata that not every format can hold.
 * @throws BAD_VALUE naming the key of a value that is not well-formed text; TOO_LARGE above 65,535
 * bytes as JSON.
 */
export function checkMetadata(metadata: Readonly<Record<string, unknown>>): void {
  for (const [key, value] of Object.entries(metadata)) {
    if (typeof value === "string" && value.isWellFormed() && key.isWellFormed()) continue;
    const received = typeof value === "string" ? "a lone surrogate" : `a ${typeof value}`;
    throw new PserverError(
      "BAD_VALUE",
      `metadata ${quoteName(key)}: expected well-formed text; received ${received}`,
      { key, received },
    );
  }
  const bytes = Buffer.byteLength(JSON.stringify(metadata));
  if (bytes <= METADATA_BYTES_MAX) return;
  throw new PserverError(
    "TOO_LARGE",
    `metadata: expected at most ${METADATA_BYTES_MAX} bytes as JSON; received ${bytes}`,
    { expected: METADATA_BYTES_MAX, received: bytes },
  );
}

/** Writes metadata as JSON, `""` if there is none. */
export function encodeMetadata(metadata: Metadata): string {
  return Object.keys(metadata).length > 0 ? JSON.stringify(metadata) : "";
}

/** Reads metadata from JSON text; undefined if it is not an object of texts, or too large. */
export function parseMetadata(text: string): Metadata | undefined {
  if (text.length > METADATA_BYTES_MAX) return undefined;
  try {
    return metadataFrom(JSON.parse(text));
  } catch {
    // The caller knows whether the text had to be metadata.
    return undefined;
  }
}

/** Returns a parsed JSON value as metadata; undefined if it is not an object of texts. */
export function metadataFrom(value: unknown): Metadata | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const entries = Object.entries(value);
  if (entries.some(([, text]) => typeof text !== "string")) return undefined;
  // Made at once, not key by key: a key may be called __proto__.
  return Object.fromEntries(entries);
}
