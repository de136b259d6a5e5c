import { mismatch } from "../../protocol/errors.ts";
import type { WireArray } from "./frames.ts";

/** About the memory that sorting one point takes. */
export const POINT_BYTES = 512;

/** Points of one request at most. */
const POINTS_MAX = 262_144;

/** Some points as a cartesian product: a list of indices for each dimension, and where the values are. */
export interface PointProduct {
  readonly lists: readonly number[][];
  /** Numbers of the points in the request, in C order of the product. */
  readonly places: readonly number[];
}

/**
 * The points of an array of indices, one in each row.
 * @param shape of the parameter; a negative index counts from the end of its dimension.
 * @throws BAD_SHAPE unless the array has a column for each dimension; BAD_DTYPE unless it is of integers;
 * TOO_LARGE; BAD_INDEX.
 */
export function parsePoints(
  { dtype, shape: given, data }: WireArray,
  shape: readonly number[],
): number[][] {
  const [count = 0, columns] = given;
  if (given.length !== 2 || columns !== shape.length) {
    const expected = `a row of ${shape.length} for each point`;
    throw mismatch("BAD_SHAPE", "indices", expected, `shape [${given.join(", ")}]`);
  }
  if (dtype.startsWith("float")) throw mismatch("BAD_DTYPE", "indices", "integers", dtype);
  if (count > POINTS_MAX)
    throw mismatch("TOO_LARGE", "indices", `at most ${POINTS_MAX} points`, `${count}`);
  return Array.from({ length: count }, (_, point) =>
    shape.map((size, axis) => {
      const index = Number(data[point * columns + axis]);
      if (Number.isSafeInteger(index) && index >= -size && index < size) {
        return index < 0 ? index + size : index;
      }
      const expected = `in dimension ${axis} from ${-size} to ${size - 1}`;
      throw mismatch("BAD_INDEX", "indices", expected, `${index}`);
    }),
  );
}

/**
 * Covers points with few cartesian products. Each point is in one product, with the place of its last
 * occurrence. Points that differ in their first index alone are joined.
 */
export function toProducts(points: readonly (readonly number[])[]): PointProduct[] {
  const last = new Map<string, number>();
  points.forEach((point, place) => {
    last.set(point.join(), place);
  });
  const places = [...last.values()];
  if (places.length === 0) return [];
  return split(points, places, 0);
}

function split(
  points: readonly (readonly number[])[],
  places: readonly number[],
  axis: number,
): PointProduct[] {
  const rank = points[places[0] ?? 0]?.length ?? 0;
  if (axis === rank) return [{ lists: [], places: [...places] }];
  const byIndex = new Map<number, number[]>();
  for (const place of places) {
    const index = points[place]?.[axis] ?? 0;
    const same = byIndex.get(index);
    if (same === undefined) byIndex.set(index, [place]);
    else same.push(place);
  }
  const merged = new Map<
    string,
    { indices: number[]; lists: readonly number[][]; places: number[] }
  >();
  for (const index of [...byIndex.keys()].sort((a, b) => a - b)) {
    for (const { lists, places: of } of split(points, byIndex.get(index) ?? [], axis + 1)) {
      const key = JSON.stringify(lists);
      const same = merged.get(key);
      if (same === undefined) merged.set(key, { indices: [index], lists, places: [...of] });
      else {
        same.indices.push(index);
        for (const place of of) same.places.push(place);
      }
    }
  }
  return [...merged.values()].map(({ indices, lists, places: of }) => ({
    lists: [indices, ...lists],
    places: of,
  }));
}
