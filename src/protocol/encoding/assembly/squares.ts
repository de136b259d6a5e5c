import { squares, total } from "./lanes";

/** The sum of the squares of `n` float32, in f64; NaN or infinite exactly if an element is. */
export function squaresF32(from: usize, n: u32): f64 {
  // Two sums keep two additions in flight.
  let sums = f64x2.splat(0);
  let more = f64x2.splat(0);
  for (; n >= 8; n -= 8) {
    sums = f64x2.add(sums, squares(v128.load(from)));
    more = f64x2.add(more, squares(v128.load(from, 16)));
    from += 32;
  }
  for (; n > 0; n--) {
    sums = f64x2.add(sums, squares(v128.load32_zero(from)));
    from += 4;
  }
  return total(f64x2.add(sums, more));
}
