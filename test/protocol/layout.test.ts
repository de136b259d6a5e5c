// Proves that a layout covers every element exactly once, in order, in blocks that a message can
// carry, by whole rows where a row fits; and that the placement hash is FNV-1a.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DTYPES, type Dtype } from "../../src/protocol/dtypes.ts";
import {
  blockPlace,
  blockPlaces,
  computeLayout,
  hashName,
  layoutFromWire,
} from "../../src/protocol/layout.ts";
import {
  CUT_BLOCK_BYTES,
  HEADER_BYTES_MAX,
  PAYLOAD_BYTES_MIN,
  SINGLE_BLOCK_BYTES_MAX,
} from "../../src/protocol/limits.ts";
import { elementCount } from "../../src/protocol/tensor.ts";
import { codeOf } from "./refusal.ts";

const MAX_PAYLOAD = 8 * 1024 * 1024;

function layoutOf(
  dtype: Dtype,
  shape: readonly number[],
  maxPayloadBytes: number = MAX_PAYLOAD,
): ReturnType<typeof computeLayout> {
  return computeLayout({ name: "w", dtype, shape, shards: 16, maxPayloadBytes });
}

/** Shapes up to some 100 MB, with rows from one element to longer than a block. */
const shape = fc
  .array(fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 3_000_000 })), {
    maxLength: 4,
  })
  .filter((dimensions) => dimensions.reduce((product, size) => product * size, 1) < 3e7);

const payload = fc.constantFrom(PAYLOAD_BYTES_MIN, 1024 * 1024, 1_200_000, MAX_PAYLOAD);
const dtype = fc.constantFrom(...(Object.keys(DTYPES) as Dtype[]));

describe("a layout", () => {
  test("covers every element once, in order, in blocks that fit", () => {
    fc.assert(
      fc.property(shape, dtype, payload, fc.integer({ min: 1, max: 256 }), (dims, type, max, n) => {
        const layout = computeLayout({
          name: "w",
          dtype: type,
          shape: dims,
          shards: n,
          maxPayloadBytes: max,
        });
        const places = blockPlaces(layout);
        let next = 0;
        for (const [i, { index, start, count, shard }] of places.entries()) {
          expect([index, start]).toEqual([i, next]);
          expect(count).toBeGreaterThan(0);
          expect(count * DTYPES[type].bytes).toBeLessThanOrEqual(max - HEADER_BYTES_MAX);
          expect(shard).toBe((layout.firstShard + i) % n);
          next += count;
        }
        expect(next).toBe(elementCount(dims));
        expect(layoutFromWire({ ...layout })).toEqual(layout);
      }),
    );
  });

  test("cuts between rows where a row fits, and fills its blocks as far as they go", () => {
    fc.assert(
      fc.property(shape, dtype, payload, (dims, type, max) => {
        const { blocks, blockElements, elements } = layoutOf(type, dims, max);
        if (blocks === 1) return;
        const room = Math.min(CUT_BLOCK_BYTES, max - HEADER_BYTES_MAX) / DTYPES[type].bytes;
        const row = elements / (dims[0] ?? 1);
        expect(blockElements).toBeLessThanOrEqual(room);
        if (row <= room) {
          expect(blockElements % row).toBe(0);
          expect(blockElements + row).toBeGreaterThan(room);
        } else {
          expect(blockElements).toBe(Math.floor(room));
        }
      }),
    );
  });

  test("is one block up to 4 MiB, and blocks of 1 MiB above", () => {
    const most = SINGLE_BLOCK_BYTES_MAX / 4;
    expect(layoutOf("float32", [most]).blocks).toBe(1);
    expect(layoutOf("float32", [most + 1])).toMatchObject({ blocks: 5, blockElements: 262_144 });
    expect(layoutOf("float64", [most / 2]).blocks).toBe(1);
    expect(layoutOf("float32", []).blocks).toBe(1);
  });

  test("is one block up to max_payload less 64 KiB, if that is smaller", () => {
    const most = (PAYLOAD_BYTES_MIN - HEADER_BYTES_MAX) / 4;
    expect(layoutOf("float32", [most], PAYLOAD_BYTES_MIN).blocks).toBe(1);
    expect(layoutOf("float32", [most + 1], PAYLOAD_BYTES_MIN)).toMatchObject({
      blocks: 2,
      blockElements: most,
    });
  });

  test("cuts rows longer than a block anywhere", () => {
    const layout = layoutOf("float32", [3, 1_000_000]);
    expect(layout).toMatchObject({ elements: 3_000_000, blockElements: 262_144, blocks: 12 });
    expect(blockPlace(layout, 11)).toMatchObject({ start: 2_883_584, count: 116_416 });
  });

  test("of whole rows cuts no row, and all rows of a block travel with their numbers", () => {
    fc.assert(
      fc.property(shape, dtype, payload, (dims, type, max) => {
        const options = { name: "w", dtype: type, shape: dims, shards: 16, maxPayloadBytes: max };
        const row = elementCount(dims) / (dims[0] ?? 1);
        const rowBytes = row * DTYPES[type].bytes;
        const dataBytesMax = max - HEADER_BYTES_MAX;
        const rows = dims[0] ?? 1;
        const isOneBlock =
          rows * rowBytes <= SINGLE_BLOCK_BYTES_MAX && rows * (rowBytes + 4) <= dataBytesMax;
        if (!isOneBlock && (rowBytes > CUT_BLOCK_BYTES || rowBytes + 4 > dataBytesMax)) {
          expect(codeOf(() => computeLayout({ ...options, wholeRows: true }))).toBe("TOO_LARGE");
          return;
        }
        const { blockElements } = computeLayout({ ...options, wholeRows: true });
        expect(blockElements % row).toBe(0);
        expect((blockElements / row) * (rowBytes + 4)).toBeLessThanOrEqual(dataBytesMax);
      }),
      // Two rows of more than a cut block, in one block.
      { examples: [[[2, 400_000], "float32", 8 * 1024 * 1024]] },
    );
  });

  test("of whole rows says which row is too long for which limit", () => {
    const options = {
      name: "emb",
      dtype: "float32",
      shards: 1,
      maxPayloadBytes: MAX_PAYLOAD,
    } as const;
    expect(() => computeLayout({ ...options, shape: [9, 262_145], wholeRows: true })).toThrow(
      '"emb": expected rows of at most 1048580 bytes with their numbers, because the parameter is ' +
        "sparse; received 1048584",
    );
  });

  test("begins on the shard that its name's hash says, and goes round the others", () => {
    const name = "emb";
    const place = {
      name,
      dtype: "float32",
      shape: [5_000_000],
      maxPayloadBytes: 8_000_000,
    } as const;
    const layout = computeLayout({ ...place, shards: 7 });
    expect(layout.blocks).toBeGreaterThan(14);
    for (const { index, shard } of blockPlaces(layout)) {
      expect(shard).toBe(((hashName(name) % 7) + index) % 7);
    }
  });

  test("has no other blocks", () => {
    const layout = layoutOf("float32", [2_000_000]);
    for (const index of [-1, layout.blocks, 0.5, Number.NaN]) {
      expect(codeOf(() => blockPlace(layout, index))).toBe("BAD_VALUE");
    }
  });
});

describe("a layout that was received", () => {
  const good = { elements: 10, blockElements: 4, blocks: 3, firstShard: 1, shards: 2 };

  test("is taken if it makes sense", () => {
    expect(layoutFromWire({ ...good, more: 1 })).toEqual(good);
  });

  test.each([
    ["elements", 0],
    ["elements", 13],
    ["elements", "10"],
    ["blockElements", 0],
    ["blockElements", 11],
    ["blocks", 2],
    ["blocks", 4],
    ["blocks", undefined],
    ["firstShard", 2],
    ["firstShard", -1],
    ["shards", 0],
    ["shards", 1.5],
  ])("is refused with %s %j", (key, value) => {
    expect(codeOf(() => layoutFromWire({ ...good, [key]: value }))).toBe("BAD_MESSAGE");
  });

  test.each([null, [], "layout", 7])("is refused if it is %j", (value) => {
    expect(codeOf(() => layoutFromWire(value))).toBe("BAD_MESSAGE");
  });
});

test.each([
  ["", 2166136261],
  ["param_a", 3281967682],
  ["param_b", 3265190063],
  ["w", 4060888886],
  ["b", 3876335077],
  ["p_0", 296336480],
  ["p_999", 3030432157],
])("the hash of %j is %i, as FNV-1a gives it", (name, hash) => {
  expect(hashName(name)).toBe(hash);
});
