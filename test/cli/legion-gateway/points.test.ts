// Proves that single points become cartesian products without one lost or doubled, that arrays of other
// types are fitted as numpy would, where a save goes, and that memory is given out in turn.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { packageRoot } from "../../../src/broker/broker-config.ts";
import { fitDtype } from "../../../src/cli/legion-gateway/fit-dtype.ts";
import { MemoryBudget } from "../../../src/cli/legion-gateway/memory-budget.ts";
import {
  type PointProduct,
  parsePoints,
  toProducts,
} from "../../../src/cli/legion-gateway/points.ts";
import { savePath } from "../../../src/cli/legion-gateway/save-path.ts";

const shared = JSON.parse(
  readFileSync(join(packageRoot(), "test/vectors/points.json"), "utf8"),
) as { cases: { points: number[][]; products: PointProduct[] }[] };

/** The points of index lists, in C order. */
function product(lists: readonly (readonly number[])[]): number[][] {
  return lists.reduce<number[][]>(
    (points, list) => points.flatMap((point) => list.map((index) => [...point, index])),
    [[]],
  );
}

describe("products of points", () => {
  const points = fc
    .integer({ min: 1, max: 4 })
    .chain((rank) =>
      fc.array(fc.array(fc.nat(3), { minLength: rank, maxLength: rank }), { maxLength: 40 }),
    );

  test("hold each point once, where it is named last", () => {
    fc.assert(
      fc.property(points, (given) => {
        const last = new Map(given.map((point, place) => [point.join(), place]));
        const found = toProducts(given).flatMap(({ lists, places }) => {
          const members = product(lists);
          expect(places).toHaveLength(members.length);
          return members.map((member, i): [string, number] => [member.join(), places[i] ?? -1]);
        });
        expect(found).toHaveLength(last.size);
        expect(new Map(found)).toEqual(last);
      }),
    );
  });

  test.each(shared.cases)(
    "are those of the shared vectors: $points",
    ({ points: given, products }) => {
      const found = toProducts(given).map((each) => JSON.stringify(each));
      expect(found.sort()).toEqual(products.map((each) => JSON.stringify(each)).sort());
    },
  );

  test("are one for a product of lists, and for any points of one dimension", () => {
    expect(
      toProducts(
        product([
          [0, 3],
          [1, 2, 5],
          [4, 6],
        ]),
      ),
    ).toHaveLength(1);
    expect(toProducts([[5], [1], [3], [1]])).toEqual([{ lists: [[1, 3, 5]], places: [3, 2, 0] }]);
    expect(
      toProducts([
        [0, 0],
        [1, 1],
      ]),
    ).toHaveLength(2);
  });
});

test("indices are rows of integers within the shape", () => {
  const data = BigInt64Array.of(0n, -1n, 2n, 0n);
  expect(parsePoints({ dtype: "int64", shape: [2, 2], data }, [3, 4])).toEqual([
    [0, 3],
    [2, 0],
  ]);
  const parse = (shape: readonly number[], of: readonly number[]) => () =>
    parsePoints({ dtype: "int64", shape, data }, of);
  expect(parse([4], [3])).toThrow("a row of 1");
  expect(parse([2, 2], [2, 4])).toThrow("dimension 0 from -2 to 1; received 2");
  expect(parse([2, 2], [3, 4, 5])).toThrow("a row of 3");
  const floats = { dtype: "float64", shape: [1, 1], data: Float64Array.of(0) } as const;
  expect(() => parsePoints(floats, [1])).toThrow("expected integers");
});

test("arrays of other types are fitted, or refused where values would be lost", () => {
  const doubles = { dtype: "float64", shape: [2], data: Float64Array.of(0.1, -2) } as const;
  expect(fitDtype("w", doubles, "float32").data).toEqual(Float32Array.of(0.1, -2));
  expect(fitDtype("w", doubles, "float64")).toBe(doubles);
  expect(() => fitDtype("w", doubles, "int32")).toThrow("expected int32; received float64");
  const longs = { dtype: "int64", shape: [2], data: BigInt64Array.of(-1n, 2n ** 31n) } as const;
  expect(fitDtype("w", longs, "float64").data).toEqual(Float64Array.of(-1, 2 ** 31));
  expect(() => fitDtype("w", longs, "int32")).toThrow("received 2147483648");
  expect(() => fitDtype("w", longs, "uint64")).toThrow("received -1");
});

test.each([
  ["/data/me/models/epoch 1.h5", "data/me/models/epoch 1.h5"],
  ["model.HDF5", "model.HDF5"],
  ["../../etc/passwd", "etc/passwd.h5"],
  ["./a//b/../c", "a/c.h5"],
  ["/", "model.h5"],
])("a save to %s goes to %s", (path, expected) => {
  expect(savePath(path)).toBe(expected);
});

test("memory is given out in turn, and the turn of a connection that has left is skipped", async () => {
  const budget = new MemoryBudget(100);
  const never = new AbortController().signal;
  const order: string[] = [];
  let release = (): void => undefined;
  const first = budget.with(
    80,
    never,
    () =>
      new Promise<void>((resolve) => {
        release = resolve;
      }),
  );
  const leaving = new AbortController();
  const left = budget.with(90, leaving.signal, async () => {
    order.push("left");
  });
  const large = budget.with(100, never, async () => {
    order.push("large");
  });
  const small = budget.with(1, never, async () => {
    order.push("small");
  });
  leaving.abort();
  await expect(left).rejects.toMatchObject({ code: "ABORTED" });
  expect(order).toEqual([]);
  release();
  await Promise.all([first, large, small]);
  expect([order, budget.freeBytes]).toEqual([["large", "small"], 100]);
  await expect(budget.with(101, never, async () => {})).rejects.toMatchObject({
    code: "TOO_LARGE",
  });
  await expect(
    budget.with(5, never, async () => {
      throw new Error("failed");
    }),
  ).rejects.toThrow("failed");
  expect(budget.freeBytes).toBe(100);
});
