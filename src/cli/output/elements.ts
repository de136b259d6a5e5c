import type { TensorData } from "../../protocol/dtypes.ts";

/**
 * One element as a short text that reads back as the same value of its type: a float32 as `0.1`,
 * not as `0.10000000149011612`.
 */
export function formatElement(data: TensorData, index: number): string {
  const value = data[index];
  if (value === undefined) return "";
  if (typeof value === "bigint" || !(data instanceof Float32Array)) return showNumber(value);
  // Also keeps the sign of a zero, which toPrecision drops.
  if (value === 0 || !Number.isFinite(value)) return showNumber(value);
  for (let digits = 6; digits < 9; digits++) {
    const shorter = Number(value.toPrecision(digits));
    if (Math.fround(shorter) === value) return showNumber(shorter);
  }
  return showNumber(Number(value.toPrecision(9)));
}

/** One element, shortened: floats with at most six significant digits. */
export function shortElement(data: TensorData, index: number): string {
  const value = data[index];
  if (typeof value !== "number" || Number.isInteger(value) || !Number.isFinite(value)) {
    return formatElement(data, index);
  }
  return showNumber(Number(value.toPrecision(6)));
}

/**
 * One element as JSON, as protobuf's JSON has it: numbers, but 64-bit integers and NaN, Infinity
 * and -Infinity as strings, because JSON readers cannot hold them as numbers.
 */
export function jsonElement(data: TensorData, index: number): string {
  const text = formatElement(data, index);
  const value = data[index];
  return typeof value === "bigint" || !Number.isFinite(value) ? `"${text}"` : text;
}

function showNumber(value: number | bigint): string {
  // String(-0) is "0", which reads back as another value.
  return Object.is(value, -0) ? "-0" : String(value);
}
