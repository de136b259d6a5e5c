/** Writes a number in a few characters: `0.0312`, `12.5`, `1.3e-9`; `-` for none. */
export function compactNumber(value: number | undefined): string {
  if (value === undefined) return "-";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "inf" : "-inf";
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  if (size >= 1e-2 && size < 1e5) return rounded(value, size);
  return value.toExponential(2).replace("e+", "e").replace(".00e", "e");
}

/** Rounds a number of a size from 0.01 to 100,000 to four digits; faster than `toPrecision`. */
function rounded(value: number, size: number): string {
  const scale = size < 0.1 ? 1e5 : size < 1 ? 1e4 : size < 10 ? 1e3 : size < 100 ? 100 : 10;
  return String(Math.round(value * scale) / scale);
}

/** Writes a number with four significant digits. */
export function fourDigits(value: number): string {
  return String(Number(value.toPrecision(4)));
}
