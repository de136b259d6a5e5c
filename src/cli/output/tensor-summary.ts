import type { KnownVersions } from "../../client/admin/job-admin.ts";
import { type HalfDtype, isHalf } from "../../protocol/dtypes.ts";
import { toHalfFloats, toNumbers } from "../../protocol/encoding/half-floats.ts";
import { visible } from "../../protocol/errors.ts";
import type { BlockVersions } from "../../protocol/messages/reads.ts";
import { type Tensor, tensorBytes } from "../../protocol/tensor.ts";
import { formatBytes, formatCount, formatNumber, formatRanges } from "./amounts.ts";
import { hangingLines } from "./wrap.ts";

/** Elements, and their type, which tells what the data means. */
export type Elements = Pick<Tensor, "dtype" | "data">;

/**
 * Writes one element as a short text that reads back as the same value of its type: a float32 as `0.1`, not as
 * `0.10000000149011612`, and a bool as `True` or `False`.
 */
export function formatElement(elements: Elements, index: number): string {
  const { dtype } = elements;
  const value = valueAt(elements, index);
  if (value === undefined) return "";
  if (dtype === "bool") return value === 1 ? "True" : "False";
  const isPlain = typeof value === "bigint" || !(dtype === "float32" || isHalf(dtype));
  // Also keeps the sign of a zero, which toPrecision drops.
  if (isPlain || value === 0 || !Number.isFinite(value)) return showNumber(value);
  for (let digits = isHalf(dtype) ? 1 : 6; digits < 9; digits++) {
    const shorter = Number(value.toPrecision(digits));
    if (readsBack(dtype, shorter, value)) return showNumber(shorter);
  }
  return showNumber(Number(value.toPrecision(9)));
}

/** Whether a number is rounded to this value of a type. */
function readsBack(dtype: "float32" | HalfDtype, shorter: number, value: number): boolean {
  if (dtype === "float32") return Math.fround(shorter) === value;
  const [bits = 0] = toHalfFloats(dtype, Float32Array.of(value));
  // The gap to the next smaller size is the smaller one of the two beside a value.
  const [below = 0] = toNumbers(dtype, Uint16Array.of((bits & 0x7fff) - 1));
  return Math.abs(shorter - value) < (Math.abs(value) - Number(below)) / 2;
}

/** Returns an element as a number; undefined if there is none. */
function valueAt({ dtype, data }: Elements, index: number): number | bigint | undefined {
  return toNumbers(dtype, data.subarray(index, index + 1))[0];
}

/** Writes one element, shortened: floats with at most six significant digits. */
function shortElement(elements: Elements, index: number): string {
  const value = valueAt(elements, index);
  if (typeof value !== "number" || Number.isInteger(value) || !Number.isFinite(value)) {
    return formatElement(elements, index);
  }
  return showNumber(Number(value.toPrecision(6)));
}

/**
 * Returns one element as JSON, as protobuf's JSON has it: numbers, but 64-bit integers and NaN, Infinity and
 * -Infinity as strings, because JSON readers cannot hold them as numbers.
 */
export function jsonElement(elements: Elements, index: number): string {
  const text = formatElement(elements, index);
  const value = valueAt(elements, index);
  if (elements.dtype === "bool") return text.toLowerCase();
  return typeof value === "bigint" || !Number.isFinite(value) ? `"${text}"` : text;
}

function showNumber(value: number | bigint): string {
  // String(-0) is "0", which reads back as another value.
  return Object.is(value, -0) ? "-0" : String(value);
}

/** Elements shown at each end of a dimension that is cut. */
const EDGE = 3;

/** Tensors up to this many elements are shown whole, as numpy does with its threshold of 1000. */
const WHOLE_MAX = 1000;

/** Writes a shape as numpy prints it: `(3, 4)`, `(3,)`, `()`. */
export function formatShape(shape: readonly number[]): string {
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
}

/** Characters of a line of elements, where the terminal is no narrower. */
const LINE_MAX = 75;

/**
 * Shows a tensor in lines, as numpy prints an array: small ones whole, else each axis's ends. `facts` are
 * further entries of the line above.
 */
export function summarizeTensor(
  name: string,
  tensor: Tensor,
  facts: readonly string[] = [],
  lineWidth: number = Number.POSITIVE_INFINITY,
): string[] {
  const { dtype, shape, data } = tensor;
  const bytes = formatBytes(tensorBytes(dtype, shape));
  const parts = [`${dtype} ${formatShape(shape)}`, bytes, ...facts];
  const heading = hangingLines("", `${visible(name)}  ${parts.join("  ")}`, lineWidth);
  if (shape.length === 0) return [...heading, shortElement(tensor, 0)];
  const edge = data.length > WHOLE_MAX ? EDGE : Number.POSITIVE_INFINITY;
  const width = Math.max(
    ...shownIndexes(shape, edge).map((index) => shortElement(tensor, index).length),
  );
  const element = (index: number): string => shortElement(tensor, index).padStart(width);
  const lineMax = Math.min(LINE_MAX, lineWidth);
  return [...heading, ...arrayLines({ shape, edge, element, lineMax })];
}

/** An array as it is shown. */
interface ShownArray {
  readonly shape: readonly number[];
  /** Positions shown at each end of an axis. */
  readonly edge: number;
  readonly element: (index: number) => string;
  /** Columns of a line. */
  readonly lineMax: number;
}

/** Prints one axis: rows of the inner axes, indented under their bracket. */
function arrayLines(array: ShownArray, axis = 0, start = 0): string[] {
  const { shape, edge, element, lineMax } = array;
  const size = shape[axis] ?? 0;
  const stride = shape.slice(axis + 1).reduce((product, dimension) => product * dimension, 1);
  const kept = keptPositions(size, edge);
  if (axis === shape.length - 1) {
    const parts = kept.map((i) => (i === undefined ? "..." : element(start + i)));
    // The brackets of the axes around it take a column each, at either end.
    return wrap(parts, lineMax - 2 * axis);
  }
  const lines: string[] = [];
  for (const [n, i] of kept.entries()) {
    const inner = i === undefined ? ["..."] : arrayLines(array, axis + 1, start + i * stride);
    const opened = inner.map((line, row) => (n === 0 && row === 0 ? `[${line}` : ` ${line}`));
    lines.push(...opened);
  }
  lines[lines.length - 1] += "]";
  return lines;
}

/** Breaks a row of elements into lines of at most so many characters, or of one element. */
function wrap(parts: readonly string[], lineMax: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const part of parts) {
    if (line !== "" && line.length + part.length + 3 > lineMax) {
      lines.push(line);
      line = "";
    }
    line += line === "" ? part : ` ${part}`;
  }
  lines.push(line);
  return lines.map((text, i) => (i === 0 ? "[" : " ") + text + (i === lines.length - 1 ? "]" : ""));
}

/** Lists the positions of an axis that are shown; undefined stands for those between. */
function keptPositions(size: number, edge: number): (number | undefined)[] {
  if (size <= 2 * edge) return Array.from({ length: size }, (_, i) => i);
  const ends = Array.from({ length: edge }, (_, i) => i);
  return [...ends, undefined, ...ends.map((i) => size - edge + i)];
}

/** Lists every element that will be shown, to make them equally wide. */
function shownIndexes(shape: readonly number[], edge: number): number[] {
  let indexes = [0];
  for (const size of shape) {
    const kept = keptPositions(size, edge).filter((i) => i !== undefined);
    indexes = indexes.flatMap((base) => kept.map((i) => base * size + i));
  }
  return indexes;
}

/** Says why some versions are not known; undefined if all are. */
export function describeUnknown({ silentShards, refusal }: KnownVersions): string | undefined {
  if (refusal !== undefined) return `versions are not known: ${refusal}`;
  if (silentShards.length === 0) return undefined;
  const shards = formatCount(silentShards.length, "shard");
  const verb = silentShards.length === 1 ? "does" : "do";
  return `${shards} ${verb} not answer, so versions of what they hold are not known: ${formatRanges(silentShards)}`;
}

/** Returns versions as `--json` has them; both null where they are not known. */
export function versionEntries(known: BlockVersions | undefined): {
  readonly version: { readonly least: number; readonly most: number } | null;
  readonly updates: number | null;
} {
  if (known === undefined) return { version: null, updates: null };
  const { least, most, updates } = known;
  return { version: { least, most }, updates };
}

/**
 * Writes the version for people: one number if all blocks agree, else the lowest and the highest; `?` if
 * unknown.
 */
export function describeVersion(known: BlockVersions | undefined): string {
  if (known === undefined) return "?";
  const { least, most } = known;
  return least === most ? formatNumber(least) : `${formatNumber(least)}–${formatNumber(most)}`;
}

/** Writes the changes of blocks for people; `?` if unknown. */
export function describeUpdates(known: BlockVersions | undefined): string {
  return known === undefined ? "?" : formatNumber(known.updates);
}
