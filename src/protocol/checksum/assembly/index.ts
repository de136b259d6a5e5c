// Shortens bytes without changing their CRC-32. Compiled by scripts/build-kernels.mjs into ../wasm.ts;
// run it after every change.
//
// A CRC is a remainder modulo a polynomial P. With y = x^128, the power by which a vector of 16 bytes
// is above the next, P divides y^300 + y^155 + y^117 + y^89 + 1. So a vector may be replaced by adding
// it, that is by XOR, to those 145, 183, 211 and 300 behind it: no table, and no multiplication, which
// WebAssembly lacks for polynomials. The idea of such multiples is that of "Chorba: a novel CRC32
// implementation" (Russell, 2024); among those of five terms this has the least degree.

/** Bytes that what is replaced reaches ahead: as many bytes are left in the end. */
export const REACH: u32 = 4800;

const FIRST: usize = 145 * 16;
const SECOND: usize = 183 * 16;
const THIRD: usize = 211 * 16;
const LAST: usize = 300 * 16;

// Vectors are addressed by what lies LAST before them: WebAssembly adds a constant to an address for nothing, but
// takes an instruction to subtract one.

/** Adds to the vector LAST behind `base` what replaces those before it; returns what it was. */
// @ts-ignore: decorator
@inline
function receive(base: usize): v128 {
  const own = v128.load(base, LAST);
  const far = v128.xor(v128.load(base), v128.load(base, LAST - THIRD));
  const near = v128.xor(v128.load(base, LAST - SECOND), v128.load(base, LAST - FIRST));
  v128.store(base, v128.xor(own, v128.xor(far, near)), LAST);
  return own;
}

/**
 * Where the largest of what has been read are: of each 16 bits of a vector, as a number without its
 * highest bit. They say of floats of any width whether one is infinite or NaN, because the upper 16 bits of
 * a float hold its exponent.
 */
export const LARGEST: usize = memory.data(16, 16);

/** The larger of `largest` and a vector, 16 bits at a time. */
// @ts-ignore: decorator
@inline
function larger(largest: v128, vector: v128): v128 {
  return i16x8.max_s(largest, v128.and(vector, i16x8.splat(0x7fff)));
}

/**
 * Surveys the first vector of all, at `at`, and nothing before; then adds to it the register that the CRC
 * begins with, and replaces it.
 */
export function begin(at: usize, register: u32): void {
  v128.store(LARGEST, larger(i16x8.splat(0), v128.load(at)));
  store<u32>(at, load<u32>(at) ^ register);
  receive(at - LAST);
}

/** Reads the `n` vectors from `at` on, and changes nothing but what is at LARGEST. */
export function survey(at: usize, n: u32): void {
  let largest = v128.load(LARGEST);
  for (; n > 0; n--) {
    largest = larger(largest, v128.load(at));
    at += 16;
  }
  v128.store(LARGEST, largest);
}

/** Replaces the `n` vectors from `at` on, and surveys them; those of the REACH before have been. */
export function replace(at: usize, n: u32): void {
  let largest = v128.load(LARGEST);
  let base = at - LAST;
  for (; n >= 4; n -= 4) {
    largest = larger(largest, receive(base));
    largest = larger(largest, receive(base + 16));
    largest = larger(largest, receive(base + 32));
    largest = larger(largest, receive(base + 48));
    base += 64;
  }
  for (; n > 0; n--) {
    largest = larger(largest, receive(base));
    base += 16;
  }
  v128.store(LARGEST, largest);
}

/** Adds what is `lag` bytes before the `lag` bytes at `at`, and was replaced, to these. */
// @ts-ignore: decorator
@inline
function settleOne(at: usize, lag: usize): void {
  for (let from = at - lag; from < at; from += 16) {
    v128.store(from + lag, v128.xor(v128.load(from + lag), v128.load(from)));
  }
}

/** Adds what is before `at`, and was replaced, to the REACH behind `at`, which are not replaced. */
export function settle(at: usize): void {
  settleOne(at, FIRST);
  settleOne(at, SECOND);
  settleOne(at, THIRD);
  settleOne(at, LAST);
}
