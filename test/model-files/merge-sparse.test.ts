// Proves the plan of merging sparse shards: order, places, shapes, and each thing it must refuse.
// That the bytes follow the plan is proved by the round trips.
import { describe, expect, test } from "vitest";
import { mergeSparse, type TensorHeader } from "../../src/model-files/index.ts";
import { PserverError } from "../../src/protocol/errors.ts";

function header(name: string, shape: readonly number[] = [2, 3]): TensorHeader {
  return { name, dtype: "float32", shape };
}

function refusal(headers: readonly TensorHeader[]): PserverError {
  try {
    mergeSparse(headers);
  } catch (error) {
    if (error instanceof PserverError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

describe("mergeSparse", () => {
  test("joins shards by number, not by the order of the list or of the alphabet", () => {
    const shards = Array.from({ length: 12 }, (_, i) => header(`e:sparse-${i}`, [i, 3]));
    const plan = mergeSparse([header("a"), ...shards.toReversed(), header("b")]);
    expect(plan.map((tensor) => tensor.header)).toEqual([
      header("a"),
      header("e", [66, 3]),
      header("b"),
    ]);
    expect(plan[1]?.parts).toEqual(shards);
    expect(plan[0]?.parts).toEqual([header("a")]);
  });

  test("leaves names alone that only look like shards", () => {
    const names = [
      "e:sparse-",
      "e:sparse-01",
      "e:sparse-x",
      ":sparse-0",
      "sparse-0",
      "e:sparse-0.w",
    ];
    const plan = mergeSparse(names.map((name) => header(name)));
    expect(plan.map((tensor) => tensor.header.name)).toEqual(names);
  });

  test("names the shards that are missing, though a number may be huge", () => {
    const error = refusal([header("e:sparse-1"), header("e:sparse-4")]);
    expect(error.code).toBe("MISSING_SHARD");
    expect(error.details["missing"]).toEqual([0, 2, 3]);
    expect(error.message).toContain('"e:sparse-0", "e:sparse-2", "e:sparse-3"');
    expect(refusal([header("e:sparse-999999999")]).message).toContain("and 999999989 more");
  });

  test.each([
    [
      "a shard of another dtype",
      "BAD_DTYPE",
      [header("e:sparse-0"), { ...header("e:sparse-1"), dtype: "int32" }],
    ],
    ["rows of another shape", "BAD_SHAPE", [header("e:sparse-0"), header("e:sparse-1", [2, 4])]],
    ["another rank", "BAD_SHAPE", [header("e:sparse-0"), header("e:sparse-1", [2])]],
    ["a scalar shard", "BAD_SHAPE", [header("e:sparse-0", [])]],
    [
      "too many rows",
      "BAD_SHAPE",
      [
        header("e:sparse-0", [2 ** 49]),
        header("e:sparse-1", [2 ** 49]),
        header("e:sparse-2", [2 ** 49]),
      ],
    ],
    ["the plain name before", "BAD_NAME", [header("e"), header("e:sparse-0")]],
    ["the plain name after", "BAD_NAME", [header("e:sparse-0"), header("e")]],
    ["a name twice", "BAD_NAME", [header("e"), header("e")]],
    ["an empty name", "BAD_NAME", [header("")]],
    ["a name too long", "BAD_NAME", [header("x".repeat(201))]],
    ["a negative dimension", "BAD_SHAPE", [header("e", [-1])]],
    ["no tensors", "EMPTY", []],
  ] as const)("refuses %s with %s", (_what, code, headers) => {
    expect(refusal(headers).code).toBe(code);
  });
});
