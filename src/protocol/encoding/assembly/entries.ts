import { narrowE3m0Group, widenE3m0Group } from "./e3m0";
import { BAD_CODE, BAD_SCALE, GROUP } from "./groups";
import { narrowInt8Group, widenInt8Group } from "./int8";

// The groups of entries, one after the other. Which encoding they have is known where these functions are inlined.

/** Bytes of the codes of so many elements of a group. */
// @ts-ignore: decorator
@inline
function codeBytes(isInt8: bool, elements: u32): usize {
  return isInt8 ? elements : (elements + 1) >> 1;
}

// @ts-ignore: decorator
@inline
function narrow(
  isInt8: bool, scales: usize, codes: usize, from: usize, counts: usize, n: u32,
): void {
  for (; n > 0; n--) {
    let left = load<u32>(counts);
    counts += 4;
    while (left > 0) {
      const size = min<u32>(left, GROUP);
      store<i32>(scales, isInt8 ? narrowInt8Group(codes, from, size) : narrowE3m0Group(codes, from, size));
      scales += 4;
      codes += codeBytes(isInt8, size);
      from += <usize>size << 2;
      left -= size;
    }
  }
}

// @ts-ignore: decorator
@inline
function widen(
  isInt8: bool, to: usize, scales: usize, codes: usize, counts: usize, n: u32,
): i32 {
  let wrong: i32 = 0;
  for (; n > 0; n--) {
    let left = load<u32>(counts);
    counts += 4;
    while (left > 0) {
      const size = min<u32>(left, GROUP);
      const scale = load<i32>(scales);
      if (scale < 0) wrong |= BAD_SCALE;
      const isUnused = isInt8
        ? widenInt8Group(to, codes, scale, size)
        : widenE3m0Group(to, codes, scale, size);
      if (isUnused) wrong |= BAD_CODE;
      scales += 4;
      codes += codeBytes(isInt8, size);
      to += <usize>size << 2;
      left -= size;
    }
  }
  return wrong;
}

/** Encodes the elements of `n` entries, whose lengths are at `counts`: scales and codes of all, each in whole bytes. */
export function narrowInt8(scales: usize, codes: usize, from: usize, counts: usize, n: u32): void {
  narrow(true, scales, codes, from, counts, n);
}

/** As narrowInt8. */
export function narrowE3m0(scales: usize, codes: usize, from: usize, counts: usize, n: u32): void {
  narrow(false, scales, codes, from, counts, n);
}

/** Decodes what narrowInt8 writes, exactly; returns what is wrong with it. */
export function widenInt8(to: usize, scales: usize, codes: usize, counts: usize, n: u32): i32 {
  return widen(true, to, scales, codes, counts, n);
}

/** As widenInt8, for what narrowE3m0 writes. */
export function widenE3m0(to: usize, scales: usize, codes: usize, counts: usize, n: u32): i32 {
  return widen(false, to, scales, codes, counts, n);
}
