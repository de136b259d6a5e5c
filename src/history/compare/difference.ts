import type { TensorData } from "../../protocol/dtypes.ts";

/** How the values of one parameter differ between two models, A and B. */
export interface TensorDifference {
  /** Elements that differ; NaNs are equal, and 0 and −0 are not. */
  readonly differing: number;
  readonly elements: number;
  /** Largest |B − A|; NaN if one of them is a NaN and the other is not, or is another one. */
  readonly largest: number;
  /** Sum of |B − A| over all elements, divided by their number. */
  readonly mean: number;
  readonly normA: number;
  readonly normB: number;
  /** First element that differs, as its place in C order; undefined if none does. */
  readonly first: FirstDifference | undefined;
}

/** An element that differs, with both values as text. */
export interface FirstDifference {
  readonly element: number;
  readonly a: string;
  readonly b: string;
}

/** Compares the elements of two tensors of one type and size, piece by piece, in order. */
export class DifferenceTally {
  readonly #show: (data: TensorData, index: number) => string;
  #elements = 0;
  #differing = 0;
  #largest = 0;
  #sum = 0;
  #squaresA = 0;
  #squaresB = 0;
  #first: FirstDifference | undefined;

  /** `show` prints an element. */
  constructor(show: (data: TensorData, index: number) => string) {
    this.#show = show;
  }

  /** Takes the next elements of both, equally many. */
  take(a: TensorData, b: TensorData): void {
    for (let i = 0; i < a.length; i++) this.#element(a, b, i);
    this.#elements += a.length;
  }

  /** The difference of all that was taken. */
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

  #element(a: TensorData, b: TensorData, i: number): void {
    const [left, right] = [a[i] ?? 0, b[i] ?? 0];
    const [x, y] = [Number(left), Number(right)];
    this.#squaresA += x * x;
    this.#squaresB += y * y;
    if (Object.is(left, right)) return;
    this.#differing += 1;
    // Integers of 64 bits are subtracted as such: as floats, large ones would lose their difference.
    const change = Math.abs(
      typeof left === "bigint" && typeof right === "bigint" ? Number(right - left) : y - x,
    );
    this.#largest = Number.isNaN(change) ? change : Math.max(this.#largest, change);
    this.#sum += change;
    this.#first ??= {
      element: this.#elements + i,
      a: this.#show(a, i),
      b: this.#show(b, i),
    };
  }
}

/** The indices of an element of a tensor by its place in C order. */
export function indicesOf(element: number, shape: readonly number[]): number[] {
  const indices: number[] = [];
  let rest = element;
  for (const size of [...shape].reverse()) {
    indices.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return indices;
}
