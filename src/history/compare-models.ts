import { mergeSparse, type TensorHeader } from "../model-files/index.ts";
import { DTYPES, type Dtype, type TensorData, viewData } from "../protocol/dtypes.ts";
import { toNumbers } from "../protocol/encoding/half-floats.ts";
import { sameShape } from "../protocol/tensor.ts";

/**
 * Returns a view, not a copy, of elements in little-endian bytes, which must begin where an element of the type may
 * begin.
 */
export function viewElements(dtype: Dtype, bytes: Uint8Array): TensorData {
  const { buffer, byteOffset, length } = bytes;
  return viewData(dtype, buffer as ArrayBuffer, length / DTYPES[dtype].bytes, byteOffset);
}

/** Bytes of the chunks in which two streams are compared: a multiple of every element's size. */
const CHUNK_BYTES = 1024 * 1024;

/** Yields a stream of bytes as chunks of one size, the last one smaller; each in a buffer of its own. */
async function* alignedChunks(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  let aligned = new Uint8Array(CHUNK_BYTES);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + CHUNK_BYTES - filled);
      aligned.set(part, filled);
      filled += part.length;
      at += part.length;
      if (filled < CHUNK_BYTES) continue;
      yield aligned;
      aligned = new Uint8Array(CHUNK_BYTES);
      filled = 0;
    }
  }
  if (filled > 0) yield aligned.slice(0, filled);
}

/** Difference of the values of one parameter between two models, A and B. */
export interface TensorDifference {
  /** Elements that differ; NaNs are equal, and 0 and −0 are not. */
  readonly differing: number;
  readonly elements: number;
  /** Largest |B − A|; NaN if an element is NaN in only one of them. */
  readonly largest: number;
  /** Sum of |B − A| over all elements, divided by their number. */
  readonly mean: number;
  readonly normA: number;
  readonly normB: number;
  /** First element that differs, in C order; undefined if none does. */
  readonly first: FirstDifference | undefined;
}

/** An element that differs, with both values as text. */
interface FirstDifference {
  readonly element: number;
  readonly a: string;
  readonly b: string;
}

/** Compares the elements of two tensors of one type and size, chunk by chunk, in order. */
class DifferenceTally {
  readonly #dtype: Dtype;
  readonly #show: CompareOptions["show"];
  #elements = 0;
  #differing = 0;
  #largest = 0;
  #sum = 0;
  #squaresA = 0;
  #squaresB = 0;
  #first: FirstDifference | undefined;

  constructor(dtype: Dtype, show: CompareOptions["show"]) {
    this.#dtype = dtype;
    this.#show = show;
  }

  /** Compares the next elements of both, equally many. */
  take(a: TensorData, b: TensorData): void {
    const [numbersA, numbersB] = [toNumbers(this.#dtype, a), toNumbers(this.#dtype, b)];
    for (let i = 0; i < a.length; i++) {
      if (!this.#isSame(numbersA[i] ?? 0, numbersB[i] ?? 0)) this.#note(a, b, i);
    }
    this.#elements += a.length;
  }

  /** The difference of all elements compared so far. */
  get result(): TensorDifference {
    return {
      differing: this.#differing,
      elements: this.#elements,
      largest: this.#largest,
      mean: this.#elements === 0 ? 0 : this.#sum / this.#elements,
      normA: Math.sqrt(this.#squaresA),
      normB: Math.sqrt(this.#squaresB),
      first: this.#first,
    };
  }

  /** Compares two elements, and counts their difference if there is one. */
  #isSame(left: number | bigint, right: number | bigint): boolean {
    const [x, y] = [Number(left), Number(right)];
    this.#squaresA += x * x;
    this.#squaresB += y * y;
    if (Object.is(left, right)) return true;
    this.#differing += 1;
    // Integers of 64 bits are subtracted as such: as floats, large ones would lose their difference.
    const change = Math.abs(
      typeof left === "bigint" && typeof right === "bigint" ? Number(right - left) : y - x,
    );
    this.#largest = Number.isNaN(change) ? change : Math.max(this.#largest, change);
    this.#sum += change;
    return false;
  }

  /** Notes the elements at a place if they are the first that differ. */
  #note(a: TensorData, b: TensorData, i: number): void {
    this.#first ??= {
      element: this.#elements + i,
      a: this.#show(this.#dtype, a, i),
      b: this.#show(this.#dtype, b, i),
    };
  }
}

/** Returns the indices of an element of a tensor, by its place in C order. */
export function indicesOf(element: number, shape: readonly number[]): number[] {
  const indices: number[] = [];
  let rest = element;
  for (const size of [...shape].reverse()) {
    indices.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return indices;
}

/** A tensor of one of two models that are compared. */
export interface ComparedTensor {
  readonly header: TensorHeader;
  /** Yields its bytes, little-endian, in C order. */
  chunks(): AsyncIterable<Uint8Array>;
}

/** Result of the comparison of one parameter. */
export type ParameterDifference =
  | { readonly kind: "only-a" | "only-b"; readonly name: string; readonly header: TensorHeader }
  | {
      readonly kind: "other-form";
      readonly name: string;
      readonly a: TensorHeader;
      readonly b: TensorHeader;
    }
  | {
      readonly kind: "compared";
      readonly name: string;
      readonly header: TensorHeader;
      readonly difference: TensorDifference;
    };

/** Options of {@link compareModels}. */
export interface CompareOptions {
  /** Prints an element. */
  readonly show: (dtype: Dtype, data: TensorData, index: number) => string;
  readonly signal: AbortSignal;
  /** Called now and then with the bytes of A that were compared, of those of all parameters that both have. */
  readonly onProgress?: (doneBytes: number) => void;
}

/**
 * Compares two models parameter by parameter, by name; holds a few MiB of them at a time.
 * @throws errors of reading them; the reason of the signal.
 */
export async function* compareModels(
  a: readonly ComparedTensor[],
  b: readonly ComparedTensor[],
  options: CompareOptions,
): AsyncGenerator<ParameterDifference, void, undefined> {
  const [byNameA, byNameB] = [byName(a), byName(b)];
  let doneBytes = 0;
  const onProgress = (bytes: number): void => options.onProgress?.(doneBytes + bytes);
  for (const name of [...new Set([...byNameA.keys(), ...byNameB.keys()])].sort()) {
    const [left, right] = [byNameA.get(name), byNameB.get(name)];
    if (left === undefined || right === undefined) {
      const header = (left ?? right)?.header;
      const kind = left === undefined ? "only-b" : "only-a";
      if (header !== undefined) yield { kind, name, header };
    } else if (!isSameForm(left.header, right.header)) {
      yield { kind: "other-form", name, a: left.header, b: right.header };
    } else {
      const difference = await compareTensors(left, right, { ...options, onProgress });
      doneBytes += difference.elements * DTYPES[left.header.dtype].bytes;
      yield { kind: "compared", name, header: left.header, difference };
    }
  }
}

/** Whether two models agree in this parameter. */
export function isEqual(found: ParameterDifference): boolean {
  return found.kind === "compared" && found.difference.differing === 0;
}

/** Joins tensors as a save does: those of sparse shards become one. */
export function joinSparse(tensors: readonly ComparedTensor[]): ComparedTensor[] {
  const byHeader = new Map(tensors.map((tensor) => [tensor.header, tensor]));
  return mergeSparse(tensors.map(({ header }) => header)).map(({ header, parts }) => ({
    header,
    chunks: async function* () {
      for (const part of parts) yield* byHeader.get(part)?.chunks() ?? [];
    },
  }));
}

async function compareTensors(
  a: ComparedTensor,
  b: ComparedTensor,
  { show, signal, onProgress }: CompareOptions,
): Promise<TensorDifference> {
  const { dtype } = a.header;
  const tally = new DifferenceTally(dtype, show);
  const others = alignedChunks(b.chunks());
  let doneBytes = 0;
  for await (const chunk of alignedChunks(a.chunks())) {
    signal.throwIfAborted();
    const { value: other = new Uint8Array(0) } = await others.next();
    tally.take(viewElements(dtype, chunk), viewElements(dtype, other));
    doneBytes += chunk.length;
    onProgress?.(doneBytes);
  }
  return tally.result;
}

function byName(tensors: readonly ComparedTensor[]): Map<string, ComparedTensor> {
  return new Map(tensors.map((tensor) => [tensor.header.name, tensor]));
}

function isSameForm(a: TensorHeader, b: TensorHeader): boolean {
  return a.dtype === b.dtype && sameShape(a.shape, b.shape);
}
