import { DTYPES, type Dtype } from "../protocol/dtypes.ts";

/** Reads an element as the 32 bits of the element that a parameter holds for it. */
type ReadBits = (view: DataView, at: number, isLittleEndian: boolean) => number;

/** Element types of files that no parameter has, and how a parameter holds every value of them exactly. */
const WIDENED = {
  uint16: { bytes: 2, dtype: "int32", bits: (view, at, little) => view.getUint16(at, little) },
  int16: { bytes: 2, dtype: "int32", bits: (view, at, little) => view.getInt16(at, little) },
} as const satisfies Record<string, { bytes: number; dtype: Dtype; bits: ReadBits }>;

/** Name of an element type that files may hold: those of parameters, and others. */
export type StoredTypeName = Dtype | keyof typeof WIDENED;

/** How the elements of a tensor lie in a file. */
export interface StoredType {
  readonly name: StoredTypeName;
  readonly isLittleEndian: boolean;
}

/** Returns the element type in which a parameter holds a stored one; each value stays the same. */
export function heldAs({ name }: StoredType): Dtype {
  return isWidened(name) ? WIDENED[name].dtype : name;
}

/** Returns the bytes of a stored element. */
export function storedBytes({ name }: StoredType): number {
  return isWidened(name) ? WIDENED[name].bytes : DTYPES[name].bytes;
}

/** What {@link convertElements} converts, for a message; undefined if values keep their type. */
export function conversionOf(stored: StoredType): string | undefined {
  return isWidened(stored.name) ? `${stored.name} as ${heldAs(stored)}` : undefined;
}

/**
 * Yields the elements as a parameter holds them, little-endian, of the type {@link heldAs} returns. Chunks
 * may end inside an element; those of a type that stays are passed on.
 */
export function convertElements(
  chunks: AsyncIterable<Uint8Array>,
  stored: StoredType,
): AsyncIterable<Uint8Array> {
  const isKept = !isWidened(stored.name) && stored.isLittleEndian;
  return isKept ? chunks : convertChunks(chunks, stored);
}

async function* convertChunks(
  chunks: AsyncIterable<Uint8Array>,
  stored: StoredType,
): AsyncGenerator<Uint8Array, void, undefined> {
  const bytes = storedBytes(stored);
  let rest: Uint8Array = new Uint8Array();
  for await (const chunk of chunks) {
    const joined = rest.byteLength === 0 ? chunk : Buffer.concat([rest, chunk]);
    const wholeBytes = joined.byteLength - (joined.byteLength % bytes);
    if (wholeBytes > 0) yield convertWhole(joined.subarray(0, wholeBytes), stored);
    rest = joined.subarray(wholeBytes);
  }
}

function convertWhole(elements: Uint8Array, { name, isLittleEndian }: StoredType): Uint8Array {
  const from = new DataView(elements.buffer, elements.byteOffset, elements.byteLength);
  if (!isWidened(name)) return swapped(from, DTYPES[name].bytes);
  const { bytes, bits } = WIDENED[name];
  const to = new DataView(new ArrayBuffer((elements.byteLength / bytes) * 4));
  for (let at = 0, toAt = 0; at < from.byteLength; at += bytes, toAt += 4) {
    to.setInt32(toAt, bits(from, at, isLittleEndian), true);
  }
  return new Uint8Array(to.buffer);
}

/** Turns big-endian elements of so many bytes into little-endian ones. */
function swapped({ buffer, byteOffset, byteLength }: DataView, bytes: number): Uint8Array {
  const to = Buffer.from(new Uint8Array(buffer, byteOffset, byteLength));
  if (bytes === 2) return to.swap16();
  if (bytes === 4) return to.swap32();
  return bytes === 8 ? to.swap64() : to;
}

/**
 * Yields a tensor's elements in C order that come in Fortran order: the first index
 * changes fastest. Memory holds the tensor twice.
 */
export async function* toRowOrder(
  chunks: AsyncIterable<Uint8Array>,
  shape: readonly number[],
  dtype: Dtype,
): AsyncGenerator<Uint8Array, void, undefined> {
  // Joined at the end: what a file claims of its size allocates nothing.
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  const { bytes } = DTYPES[dtype];
  const words = Math.max(1, bytes / 4);
  const Words = bytes === 1 ? Uint8Array : bytes === 2 ? Uint16Array : Uint32Array;
  const from = new Words(new Uint8Array(Buffer.concat(parts)).buffer);
  const to = new Words(from.length);
  let position = 0;
  const copy = ([size = 1, ...inner]: readonly number[], start: number, stride: number): void => {
    for (let i = 0; i < size; i++) {
      const at = start + i * stride;
      if (inner.length > 0) copy(inner, at, stride * size);
      else for (let word = 0; word < words; word++) to[position++] = from[at + word] ?? 0;
    }
  };
  if (from.length > 0) copy(shape, 0, words);
  yield new Uint8Array(to.buffer);
}

function isWidened(name: StoredTypeName): name is keyof typeof WIDENED {
  return Object.hasOwn(WIDENED, name);
}
