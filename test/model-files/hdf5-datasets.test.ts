// Proves that a tensor is cut into boxes that follow each other in C order, and that no two parameters
// have one dataset or one that leads through another.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { boxes, boxShape } from "../../src/model-files/hdf5/boxes.ts";
import { datasetPaths, groupsOf } from "../../src/model-files/hdf5/dataset-path.ts";

describe("boxes", () => {
  const shapes = fc.array(fc.nat(5), { maxLength: 4 });

  test("hold every element once, in C order, within their size", () => {
    fc.assert(
      fc.property(shapes, fc.integer({ min: 1, max: 60 }), (shape, elementsMax) => {
        const seen: number[] = [];
        for (const { begin, end, elements } of boxes(shape, elementsMax)) {
          let offsets = [0];
          shape.forEach((size, axis) => {
            const [first, last] = [begin[axis] ?? 0, end[axis] ?? 0];
            const indices = Array.from({ length: last - first }, (_, i) => first + i);
            offsets = offsets.flatMap((offset) => indices.map((index) => offset * size + index));
          });
          expect(offsets).toHaveLength(elements);
          expect(elements).toBeLessThanOrEqual(elementsMax);
          for (const offset of offsets) seen.push(offset);
        }
        const count = shape.reduce((product, size) => product * size, 1);
        expect(seen).toEqual(Array.from({ length: count }, (_, i) => i));
      }),
    );
  });

  test("are equal parts of one dimension", () => {
    expect(boxShape([2, 3, 131_073], 131_072)).toEqual([1, 1, 65_537]);
    expect(boxShape([700, 1_000], 262_144)).toEqual([234, 1_000]);
    expect(boxShape([], 10)).toEqual([]);
  });
});

describe("datasets", () => {
  test("are called as their parameters, escaped where HDF5 has no such path", () => {
    const names = ["w", "a/b", "a", "x/y", "../z", "c//d", "="];
    expect(datasetPaths(names).map(({ path }) => path)).toEqual([
      ...["w", "a=2Fb", "a", "x/y", "=2E=2E=2Fz", "c=2F=2Fd", "="],
    ]);
    expect(groupsOf("a/b/c")).toEqual(["a", "a/b"]);
  });

  test("never meet and never lead through each other", () => {
    const name = fc.stringMatching(/^[ab/.=2F]{1,8}$/);
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 12 }), (names) => {
        const paths = datasetPaths(names);
        expect(new Set(paths.map(({ path }) => path)).size).toBe(names.length);
        const taken = new Set(paths.map(({ path }) => path));
        for (const [i, { path, trueName }] of paths.entries()) {
          expect(trueName ?? path).toBe(names[i]);
          expect(groupsOf(path).filter((group) => group === "" || taken.has(group))).toEqual([]);
        }
      }),
    );
  });
});
