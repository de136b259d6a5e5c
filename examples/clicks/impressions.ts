import { Random } from "../digits/random.ts";

/** Some impressions: the rows of their features, one after the other, and whether each was clicked. */
export interface Impressions {
  /** Row numbers, `FIELDS` for each impression. */
  readonly rows: Uint32Array;
  readonly clicked: Uint8Array;
}

/** Features of an impression: user, advertisement, page, and the hour of the week. */
export const FIELDS = 4;

/** How unevenly users, advertisements and pages are spread: a few of them make most of the impressions. */
const SKEW = 8;
const HOURS = 168;

/**
 * Impressions of a market that exists only as numbers: each feature has a hidden taste, and a click is more
 * likely the better the tastes of an impression go together. The seed decides which impressions come; the
 * tastes are the same for every seed.
 */
export class Market {
  readonly #random: Random;
  readonly #tableRows: number;

  /** Makes a market with `tableRows` rows of the embedding, which the fields share. */
  constructor(seed: number, tableRows: number) {
    this.#random = new Random(seed);
    this.#tableRows = tableRows;
  }

  /** Returns the next impressions. */
  next(count: number): Impressions {
    const rows = new Uint32Array(count * FIELDS);
    const clicked = new Uint8Array(count);
    for (let i = 0; i < count; i++) {
      let bias = -1;
      let [x, y] = [0, 0];
      let alone = 0;
      for (let field = 0; field < FIELDS; field++) {
        const row = this.#row(field);
        rows[i * FIELDS + field] = row;
        const liking = 1.5 * hidden(row, 1);
        const [tasteX, tasteY] = [hidden(row, 2), hidden(row, 3)];
        bias += liking;
        [x, y] = [x + tasteX, y + tasteY];
        alone += tasteX ** 2 + tasteY ** 2;
      }
      // The sum over all pairs of features of the products of their tastes.
      const logit = bias + (x ** 2 + y ** 2 - alone) / 2;
      clicked[i] = this.#random.uniform() < 1 / (1 + Math.exp(-logit)) ? 1 : 0;
    }
    return { rows, clicked };
  }

  #row(field: number): number {
    const fieldRows = Math.floor(this.#tableRows / FIELDS);
    const kinds = field === FIELDS - 1 ? Math.min(HOURS, fieldRows) : fieldRows;
    const rank = Math.floor(kinds * this.#random.uniform() ** SKEW);
    // Frequent features are spread over the table, as hashed names are.
    return field * fieldRows + ((rank * 7_919) % kinds);
  }
}

/** Returns a hidden number of a feature, from −1 to 1. */
function hidden(row: number, which: number): number {
  let bits = Math.imul(row + 1, 0x9e3779b1) ^ Math.imul(which, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 15), 0x2c1b3c6d);
  bits = Math.imul(bits ^ (bits >>> 12), 0x297a2d39);
  return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 31 - 1;
}
