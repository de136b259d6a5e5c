import { type Tensor, tensorBytes } from "../../protocol/tensor.ts";
import { visible } from "../../protocol/visible.ts";
import { formatBytes } from "./amounts.ts";
import { shortElement } from "./elements.ts";

/** Elements shown at each end of a dimension that is cut. */
const EDGE = 3;

/** Tensors up to this many elements are shown whole, as numpy does with its threshold of 1000. */
const WHOLE_MAX = 1000;

/** A shape as numpy prints it: `(3, 4)`, `(3,)`, `()`. */
export function formatShape(shape: readonly number[]): string {
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
}

/** Lines that show a tensor as numpy prints an array: small ones whole, else each axis's ends. */
export function summarizeTensor(name: string, tensor: Tensor): string[] {
  const { dtype, shape, data } = tensor;
  const bytes = formatBytes(tensorBytes(dtype, shape));
  const head = `${visible(name)}  ${dtype} ${formatShape(shape)}  ${bytes}`;
  if (shape.length === 0) return [head, shortElement(data, 0)];
  const edge = data.length > WHOLE_MAX ? EDGE : Number.POSITIVE_INFINITY;
  const width = Math.max(
    ...shownIndexes(shape, edge).map((index) => shortElement(data, index).length),
  );
  return [head, ...arrayLines(shape, edge, (index) => shortElement(data, index).padStart(width))];
}

/** Prints one axis: rows of the inner axes, indented under their bracket. */
function arrayLines(
  shape: readonly number[],
  edge: number,
  element: (index: number) => string,
  axis = 0,
  start = 0,
): string[] {
  const size = shape[axis] ?? 0;
  const stride = shape.slice(axis + 1).reduce((product, dimension) => product * dimension, 1);
  const kept = keptPositions(size, edge);
  if (axis === shape.length - 1) {
    const parts = kept.map((i) => (i === undefined ? "..." : element(start + i)));
    return wrap(parts);
  }
  const lines: string[] = [];
  for (const [n, i] of kept.entries()) {
    const inner =
      i === undefined ? ["..."] : arrayLines(shape, edge, element, axis + 1, start + i * stride);
    const opened = inner.map((line, row) => (n === 0 && row === 0 ? `[${line}` : ` ${line}`));
    lines.push(...opened);
  }
  lines[lines.length - 1] += "]";
  return lines;
}

/** A row of elements in lines of at most 75 characters. */
function wrap(parts: readonly string[]): string[] {
  const lines: string[] = [];
  let line = "";
  for (const part of parts) {
    if (line !== "" && line.length + part.length + 1 > 74) {
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
