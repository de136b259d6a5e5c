/** One side of a factorization: `width` numbers for each row, row by row. */
export interface Factor {
  readonly values: Float64Array;
  readonly width: number;
}

/** What to solve for. */
export interface RowProblem {
  /** Row by row, as wide as `other` has rows. */
  readonly matrix: Float64Array;
  /** Rows of the matrix; `own` has these rows and no other. */
  readonly rows: readonly number[];
  readonly own: Factor;
  readonly other: Factor;
  /** Columns of `own` that are solved for; the others stay. */
  readonly factors: readonly number[];
}

/**
 * The numbers of `own` in `factors` for which own · otherᵀ is nearest to the rows of the matrix, row by
 * row, by the normal equations. A little is added to their diagonal, so that they can be solved.
 */
export function solveRows({ matrix, rows, own, other, factors }: RowProblem): Float64Array {
  const count = factors.length;
  const columns = other.values.length / other.width;
  const chosen = (column: number, i: number): number =>
    other.values[column * other.width + (factors[i] as number)] as number;
  const gram = new Float64Array(count * count);
  for (let i = 0; i < count; i++) {
    for (let j = 0; j < count; j++) {
      let sum = i === j ? 1e-9 : 0;
      for (let column = 0; column < columns; column++) sum += chosen(column, i) * chosen(column, j);
      gram[i * count + j] = sum;
    }
  }
  const solved = new Float64Array(rows.length * count);
  const kept = own.values.slice();
  for (const place of rows.keys()) {
    for (const factor of factors) kept[place * own.width + factor] = 0;
  }
  for (const [place, row] of rows.entries()) {
    const right = new Float64Array(count);
    for (let column = 0; column < columns; column++) {
      let rest = matrix[row * columns + column] as number;
      for (let factor = 0; factor < own.width; factor++) {
        rest -=
          (kept[place * own.width + factor] as number) *
          (other.values[column * other.width + factor] as number);
      }
      for (let i = 0; i < count; i++) right[i] = (right[i] as number) + rest * chosen(column, i);
    }
    solved.set(solve(gram, right), place * count);
  }
  return solved;
}

/** The solution of a symmetric, positive definite system, by elimination. */
function solve(matrix: Float64Array, right: Float64Array): Float64Array {
  const n = right.length;
  const [a, x] = [matrix.slice(), right.slice()];
  const at = (i: number, j: number): number => a[i * n + j] as number;
  for (let pivot = 0; pivot < n; pivot++) {
    for (let row = pivot + 1; row < n; row++) {
      const factor = at(row, pivot) / at(pivot, pivot);
      for (let j = pivot; j < n; j++) a[row * n + j] = at(row, j) - factor * at(pivot, j);
      x[row] = (x[row] as number) - factor * (x[pivot] as number);
    }
  }
  for (let row = n - 1; row >= 0; row--) {
    let sum = x[row] as number;
    for (let j = row + 1; j < n; j++) sum -= at(row, j) * (x[j] as number);
    x[row] = sum / at(row, row);
  }
  return x;
}

/** The share of the matrix's squares that own · otherᵀ leaves over: 1 for nothing learnt, 0 for all. */
export function residualShare(matrix: Float64Array, own: Factor, other: Factor): number {
  const columns = other.values.length / other.width;
  let left = 0;
  let all = 0;
  for (const [place, value] of matrix.entries()) {
    const row = Math.floor(place / columns);
    const column = place % columns;
    let rest = value;
    for (let factor = 0; factor < own.width; factor++) {
      rest -=
        (own.values[row * own.width + factor] as number) *
        (other.values[column * other.width + factor] as number);
    }
    left += rest * rest;
    all += value * value;
  }
  return left / all;
}

/** A matrix of `columns` columns with rows and columns exchanged. */
export function transposed(matrix: Float64Array, columns: number): Float64Array {
  const rows = matrix.length / columns;
  return Float64Array.from(matrix, (_, place) => {
    const row = Math.floor(place / rows);
    return matrix[(place % rows) * columns + row] as number;
  });
}
