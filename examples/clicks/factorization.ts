import { FIELDS, type Impressions } from "./impressions.ts";

/** Numbers of a feature: its weight, and factors whose products with those of others count. */
export const ROW_ELEMENTS = 9;
const FACTORS = ROW_ELEMENTS - 1;

/** Loss and gradients of one batch. */
export interface BatchResult {
  /** Mean logistic loss of the batch, before the model has learned from it. */
  readonly loss: number;
  /** A gradient for each of the rows in the argument, in the same order. */
  readonly gradients: Float32Array;
}

/** Lists the rows that a batch uses, each once, ascending. */
export function rowsOf({ rows }: Impressions): number[] {
  return [...new Set(rows)].sort((a, b) => a - b);
}

/**
 * Predicts clicks by a factorization machine: the weights of an impression's features and the
 * products of their factors, pair by pair (S. Rendle, "Factorization Machines", 2010). `named` are
 * the rows of the batch, which {@link rowsOf} returns; `table` holds their elements.
 */
export function learn(
  impressions: Impressions,
  named: readonly number[],
  table: Float32Array,
): BatchResult {
  const places = new Map(named.map((row, place) => [row, place * ROW_ELEMENTS]));
  const gradients = new Float32Array(table.length);
  const count = impressions.clicked.length;
  const sums = new Float64Array(FACTORS);
  let loss = 0;
  for (let i = 0; i < count; i++) {
    const features = impressions.rows.subarray(i * FIELDS, (i + 1) * FIELDS);
    const at = [...features].map((row) => places.get(row) ?? 0);
    const logit = predict(table, at, sums);
    const clicked = impressions.clicked[i] ?? 0;
    // log(1 + e^x) without overflow.
    loss += Math.max(logit, 0) - logit * clicked + Math.log1p(Math.exp(-Math.abs(logit)));
    const error = 1 / (1 + Math.exp(-logit)) - clicked;
    for (const start of at) {
      gradients[start] = (gradients[start] ?? 0) + error;
      for (let f = 0; f < FACTORS; f++) {
        const place = start + 1 + f;
        const others = (sums[f] ?? 0) - (table[place] ?? 0);
        gradients[place] = (gradients[place] ?? 0) + error * others;
      }
    }
  }
  return { loss: loss / count, gradients };
}

/**
 * Returns the logit of features whose rows begin `at` these places; leaves the sums of their
 * factors in `sums`.
 */
function predict(table: Float32Array, at: readonly number[], sums: Float64Array): number {
  sums.fill(0);
  let logit = 0;
  let squares = 0;
  for (const start of at) {
    logit += table[start] ?? 0;
    for (let f = 0; f < FACTORS; f++) {
      const factor = table[start + 1 + f] ?? 0;
      sums[f] = (sums[f] ?? 0) + factor;
      squares += factor ** 2;
    }
  }
  const products = sums.reduce((sum, each) => sum + each ** 2, 0);
  return logit + (products - squares) / 2;
}
