// Functions whose last bits differ between JavaScript engines and machines. Here they are compiled
// from AssemblyScript's library into basic arithmetic, which rounds alike everywhere.

/** `base` to the power `exponent`. */
export function powF64(base: f64, exponent: f64): f64 {
  return Math.pow(base, exponent);
}

/** The cosine of `angle` radians. */
export function cosF64(angle: f64): f64 {
  return Math.cos(angle);
}
