import { PIXELS, type Samples } from "../../../examples/digits/dataset.ts";

const WIDTH = Math.sqrt(PIXELS);
const PLACES = (WIDTH - 1) ** 2;

/** What four pixels that meet can look like, each dark or bright, but for all of them dark. */
const PATTERNS = 15;

/** How many features there are: every pattern at every place where four pixels meet. */
export const PATCHES: number = PLACES * PATTERNS;

const BRIGHT = 128;

/** The numbers of the features that an image has, ascending: about 2 % of all. */
export function patchesOf({ pixels }: Samples, image: number): number[] {
  const start = image * PIXELS;
  const bright = (row: number, column: number): number =>
    (pixels[start + row * WIDTH + column] as number) >= BRIGHT ? 1 : 0;
  const features: number[] = [];
  for (let place = 0; place < PLACES; place++) {
    const row = Math.floor(place / (WIDTH - 1));
    const column = place % (WIDTH - 1);
    const pattern =
      bright(row, column) +
      2 * bright(row, column + 1) +
      4 * bright(row + 1, column) +
      8 * bright(row + 1, column + 1);
    if (pattern > 0) features.push(place * PATTERNS + pattern - 1);
  }
  return features;
}
