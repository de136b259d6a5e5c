import { type Tensor, tensorBytes } from "../../protocol/tensor.ts";
import { visible } from "../../protocol/visible.ts";
import { formatBytes } from "./amounts.ts";
import { shortElement } from "./elements.ts";
import { hangingLines } from "./wrap.ts";

/** Elements shown at each end of a dimension that is cut. */
const EDGE = 3;

/** Tensors up to this many elements are shown whole, as numpy does with its threshold of 1000. */
const WHOLE_MAX = 1000;

/** A shape as numpy prints it: `(3, 4)`, `(3,)`, `()`. */
export function formatShape(shape: readonly number[]): string {
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
}

/** Characters of a line of elements, where the terminal is no narrower. */
const LINE_MAX = 75;

/**
 * Lines that show a tensor as numpy prints an array: small ones whole, else each axis's ends. `facts`
 * are further things to say of it above.
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
  const head = hangingLines("", `${visible(name)}  ${parts.join("  ")}`, lineWidth);
  if (shape.length === 0) return [...head, shortElement(data, 0)];
  const edge = data.length > WHOLE_MAX ? EDGE : Number.POSITIVE_INFINITY;
  const width = Math.max(
    ...shownIndexes(shape, edge).map((index) => shortElement(data, index).length),
  );
  const element = (index: number): string => shortElement(data, index).padStart(width);
  const lineMax = Math.min(LINE_MAX, lineWidth);
  return [...head, ...arrayLines({ shape, edge, element, lineMax })];
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

/** A row of elements in lines of at most so many characters, or of one element. */
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

/** Positions of an axis that are shown; undefined stands for those between. */
function keptPositions(size: number, edge: number): (number | undefined)[] {
  if (size <= 2 * edge) return Array.from({ length: size }, (_, i) => i);
  const ends = Array.from({ length: edge }, (_, i) => i);
  return [...ends, undefined, ...ends.map((i) => size - edge + i)];
}

/** Every element that will be shown, to make them equally wide. */
function shownIndexes(shape: readonly number[], edge: number): number[] {
  let indexes = [0];
  for (const size of shape) {
    const kept = keptPositions(size, edge).filter((i) => i !== undefined);
    indexes = indexes.flatMap((base) => kept.map((i) => base * size + i));
  }
  return indexes;
}
