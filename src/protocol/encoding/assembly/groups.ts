// A group is up to 256 consecutive elements of an entry, with a float32 scale. The groups of an entry follow each
// other; an entry begins with a new one.

/** Elements of a group that is not the last one of its entry. */
export const GROUP: u32 = 256;

/** The bits of infinity. */
export const INFINITE: i32 = 0x7f800000;

/** What is wrong with groups that were received, as bits. */
export const BAD_SCALE: i32 = 1;
export const BAD_CODE: i32 = 2;

/** Bits of the scale that says that an element is not finite, from the largest of them: NaN if one is NaN. */
// @ts-ignore: decorator
@inline
export function specialScale(largest: i32): i32 {
  return largest > INFINITE ? 0x7fc00000 : INFINITE;
}

/** Whether a scale, by its bits, is NaN or infinite. */
// @ts-ignore: decorator
@inline
export function isSpecial(scale: i32): bool {
  return (scale & INFINITE) == INFINITE;
}

/** Writes what `n` elements of a group are whose scale is not finite: infinities or NaN. */
export function fillSpecial(to: usize, scale: i32, n: u32): void {
  const value = specialScale(scale & 0x7fffffff);
  for (; n > 0; n--) {
    store<i32>(to, value);
    to += 4;
  }
}

/** `to += from` over `n` float32. */
export function addF32(to: usize, from: usize, n: u32): void {
  for (; n >= 4; n -= 4) {
    v128.store(to, f32x4.add(v128.load(to), v128.load(from)));
    to += 16;
    from += 16;
  }
  for (; n > 0; n--) {
    store<f32>(to, load<f32>(to) + load<f32>(from));
    to += 4;
    from += 4;
  }
}

/**
 * `errors = values - sent` over the elements of `n` entries, whose lengths are at `counts`. The errors of a group
 * whose scale is not finite stay.
 */
export function errorsF32(
  errors: usize, values: usize, sent: usize, scales: usize, counts: usize, n: u32,
): void {
  for (; n > 0; n--) {
    let left = load<u32>(counts);
    counts += 4;
    while (left > 0) {
      const size = min<u32>(left, GROUP);
      if (!isSpecial(load<i32>(scales))) subtract(errors, values, sent, size);
      const bytes = <usize>size << 2;
      errors += bytes;
      values += bytes;
      sent += bytes;
      scales += 4;
      left -= size;
    }
  }
}

// @ts-ignore: decorator
@inline
function subtract(to: usize, from: usize, what: usize, n: u32): void {
  for (; n >= 4; n -= 4) {
    v128.store(to, f32x4.sub(v128.load(from), v128.load(what)));
    to += 16;
    from += 16;
    what += 16;
  }
  for (; n > 0; n--) {
    store<f32>(to, load<f32>(from) - load<f32>(what));
    to += 4;
    from += 4;
    what += 4;
  }
}
