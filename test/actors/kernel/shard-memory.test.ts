import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";
import { type ErrorCode, PserverError } from "../../../src/protocol/errors.ts";
import { words } from "./operands.ts";

// A shard's memory: allocations never overlap and are aligned, freed bytes merge back into one range,
// misuse and exhaustion are refused without a change, addresses above 2 GiB work, and replacing
// blocks by others of another size wastes little. Memory that is not written to costs none, so the
// tests of large memories are cheap.

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;
/** What the module and the scratch take. */
const OWN_BYTES = 320 * KIB;

interface Allocation {
  readonly pointer: number;
  readonly bytes: number;
  readonly mark: number;
}

function codeOf(call: () => unknown): ErrorCode | undefined {
  try {
    call();
  } catch (error) {
    if (error instanceof PserverError) return error.code;
    throw error;
  }
  return undefined;
}

/** Expects that all freed bytes are one range: the whole of it can be had without growing. */
function expectOneFreeRange(memory: ShardMemory): void {
  const before = memory.memoryBytes;
  const all = before - OWN_BYTES;
  const pointer = memory.allocate(all);
  expect(memory.memoryBytes).toBe(before);
  memory.free(pointer, all);
}

describe("allocate and free", () => {
  test("random sequences never overlap and merge back into one free range", () => {
    const size = fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: 100 * KIB }));
    const step = fc.oneof(fc.record({ allocate: size }), fc.record({ free: fc.nat() }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
        const memory = ShardMemory.create({ bytesMax: 2 * MIB });
        const live: Allocation[] = [];
        const release = (index: number): void => {
          const [freed] = live.splice(index, 1);
          if (freed === undefined) return;
          const { pointer, bytes, mark } = freed;
          // Another allocation in the same bytes would have written its own mark over this one.
          expect(memory.bytes(pointer, bytes).every((byte) => byte === mark)).toBe(true);
          memory.free(pointer, bytes);
        };
        for (const [at, action] of steps.entries()) {
          if ("free" in action) {
            if (live.length > 0) release(action.free % live.length);
            continue;
          }
          const bytes = action.allocate;
          const full = codeOf(() => {
            const pointer = memory.allocate(bytes);
            expect(pointer % 16).toBe(0);
            memory.bytes(pointer, bytes).fill(at);
            live.push({ pointer, bytes, mark: at });
          });
          expect([undefined, "TOO_LARGE"]).toContain(full);
          const held = live.reduce((sum, one) => sum + Math.ceil(one.bytes / 16) * 16, 0);
          expect(memory.allocatedBytes).toBe(held);
        }
        while (live.length > 0) release(live.length >> 1);
        expect(memory.allocatedBytes).toBe(0);
        if (memory.memoryBytes > OWN_BYTES) expectOneFreeRange(memory);
      }),
      { numRuns: 100 },
    );
  });

  test("nothing lies in the scratch or in the kernels' page", () => {
    const memory = ShardMemory.create();
    expect(memory.scratchBytes).toBe(256 * KIB);
    expect(memory.scratch % 16).toBe(0);
    expect(memory.scratch).toBeGreaterThanOrEqual(64 * KIB);
    expect(memory.allocate(1)).toBeGreaterThanOrEqual(memory.scratch + memory.scratchBytes);
    expect(memory.bytes(memory.scratch, memory.scratchBytes)).toHaveLength(256 * KIB);
  });

  test("what is staged lies in the scratch, and is copied anew once that was used", () => {
    const memory = ShardMemory.create();
    const [one, two] = [Uint8Array.of(1, 2, 3), Uint8Array.of(4, 5, 6)];
    const inScratch = (): number[] => [...memory.bytes(memory.stage(one), 3)];
    expect(inScratch()).toEqual([1, 2, 3]);
    memory.bytes(memory.stage(two), 3);
    expect(inScratch()).toEqual([1, 2, 3]);
    memory.bytes(memory.scratch, 3).fill(9);
    expect(inScratch()).toEqual([1, 2, 3]);
    expect(memory.stage(one)).toBe(memory.scratch);
    memory.stage(one);
    one.fill(7);
    memory.unstage();
    expect(inScratch()).toEqual([7, 7, 7]);
  });

  test("no bytes are pointer 0, as often as asked for", () => {
    const memory = ShardMemory.create();
    expect([memory.allocate(0), memory.allocate(0)]).toEqual([0, 0]);
    expect(memory.bytes(0, 0)).toHaveLength(0);
    memory.free(0, 0);
    expect(memory.allocatedBytes).toBe(0);
  });

  test("a view made before a growth is detached, and the bytes stay", () => {
    const memory = ShardMemory.create();
    const pointer = memory.allocate(3);
    const view = memory.bytes(pointer, 3);
    view.set([1, 2, 3]);
    memory.allocate(10 * MIB);
    expect(view).toHaveLength(0);
    expect([...memory.bytes(pointer, 3)]).toEqual([1, 2, 3]);
  });
});

describe("misuse changes nothing", () => {
  test("what is not allocated cannot be freed, nor as another size", () => {
    const memory = ShardMemory.create();
    const pointer = memory.allocate(100);
    const other = memory.allocate(100);
    for (const [wrongPointer, bytes] of [
      [pointer, 90],
      [pointer, 113],
      [pointer, 0],
      [pointer + 16, 84],
      [0, 16],
      [memory.scratch, memory.scratchBytes],
    ] as const) {
      expect(codeOf(() => memory.free(wrongPointer, bytes))).toBe("INTERNAL");
    }
    expect(memory.allocatedBytes).toBe(224);
    memory.free(pointer, 100);
    expect(codeOf(() => memory.free(pointer, 100))).toBe("INTERNAL");
    expect(memory.allocatedBytes).toBe(112);
    memory.free(other, 100);
    expectOneFreeRange(memory);
  });

  test.each([-1, 1.5, Number.NaN, Infinity, 2 ** 53])("%d bytes cannot be allocated", (bytes) => {
    expect(codeOf(() => ShardMemory.create().allocate(bytes))).toBe("BAD_VALUE");
  });

  test.each([OWN_BYTES - 1, 4 * GIB + 1, Number.NaN, -1])("bytesMax %d is refused", (bytesMax) => {
    expect(codeOf(() => ShardMemory.create({ bytesMax }))).toBe("BAD_VALUE");
  });

  test("a view must lie in the memory", () => {
    const memory = ShardMemory.create();
    expect(codeOf(() => memory.bytes(memory.memoryBytes - 1, 2))).toBe("INTERNAL");
    expect(codeOf(() => memory.bytes(0, -1))).toBe("INTERNAL");
  });

  test("a full memory is TOO_LARGE, and what is left can still be had", () => {
    const memory = ShardMemory.create({ bytesMax: 3 * MIB + 1 });
    const first = memory.allocate(MIB);
    expect(codeOf(() => memory.allocate(3 * MIB))).toBe("TOO_LARGE");
    expect(codeOf(() => memory.allocate(2 ** 52))).toBe("TOO_LARGE");
    expect(memory.allocatedBytes).toBe(MIB);
    memory.allocate(2 * MIB - OWN_BYTES);
    expect(memory.memoryBytes).toBe(3 * MIB);
    expect(codeOf(() => memory.allocate(1))).toBe("TOO_LARGE");
    memory.free(first, MIB);
    expect(memory.allocate(MIB)).toBe(first);
  });
});

test("addresses up to the last of 4 GiB work, negative or not", () => {
  const memory = ShardMemory.create();
  const low = memory.allocate(3 * GIB);
  const high = memory.allocate(GIB - OWN_BYTES);
  expect(memory.memoryBytes).toBe(4 * GIB);
  expect(low + 3 * GIB).toBe(high);
  const gradient = 4 * GIB - 64;
  const value = gradient - 64;
  for (const sign of [(pointer: number) => pointer, (pointer: number) => pointer | 0]) {
    new Float32Array(memory.bytes(sign(value), 64).buffer, value, 16).fill(1);
    new Float32Array(memory.bytes(sign(gradient), 64).buffer, gradient, 16).fill(2);
    memory.kernels.sgdF32(sign(value), sign(gradient), 16, 0.25);
    const result = new Float32Array(memory.bytes(sign(value), 64).slice().buffer);
    expect(result).toEqual(new Float32Array(16).fill(0.5));
    expect(memory.kernels.finiteF32(sign(gradient), 16)).toBe(1);
    expect(memory.kernels.finiteF64(sign(gradient), 8)).toBe(1);
    new Float32Array(memory.bytes(sign(gradient), 64).buffer, gradient, 16)[15] = Infinity;
    expect(memory.kernels.finiteF32(sign(gradient), 16)).toBe(0);
  }
  expect(codeOf(() => memory.allocate(1))).toBe("TOO_LARGE");
  memory.free(high | 0, GIB - OWN_BYTES);
  memory.free(low, 3 * GIB);
  expectOneFreeRange(memory);
});

describe("blocks replaced one by one by blocks of other sizes", () => {
  // Addresses above the highest ever given out were never written to, so they cost nothing: that
  // address is what the shard really takes.
  function highestOverPeak(sizes: readonly ((at: number) => number)[], blocks: number): number {
    const memory = ShardMemory.create();
    const next = words(1);
    const live = Array.from({ length: blocks }, () => ({ pointer: 0, bytes: 0 }));
    let highest = 0;
    let peak = 0;
    for (const size of sizes) {
      const order = live.map((_, at) => ({ at, key: next() })).sort((a, b) => a.key - b.key);
      for (const { at } of order) {
        const old = live[at] ?? { pointer: 0, bytes: 0 };
        memory.free(old.pointer, old.bytes);
        const bytes = size(at);
        const pointer = memory.allocate(bytes);
        live[at] = { pointer, bytes };
        highest = Math.max(highest, pointer + bytes);
        peak = Math.max(peak, memory.allocatedBytes);
      }
    }
    for (const { pointer, bytes } of live) memory.free(pointer, bytes);
    expectOneFreeRange(memory);
    return (highest - OWN_BYTES) / peak;
  }

  test("equal blocks, larger, then smaller, then as before, in random order", () => {
    const sizes = [MIB, 1.2 * MIB, 0.9 * MIB, MIB].map((bytes) => () => Math.floor(bytes));
    expect(highestOverPeak(sizes, 1000)).toBeLessThan(1.3);
  });

  test("thousands of small blocks", () => {
    const sizes = [64 * KIB, 70_000, 60_000].map((bytes) => () => bytes);
    expect(highestOverPeak(sizes, 5000)).toBeLessThan(1.3);
  });

  test("blocks and slots of mixed sizes", () => {
    const size = (at: number): number => [MIB, 2 * MIB, 4 * KIB, 100][at % 4] ?? 0;
    const sizes = [0, 1, 2, 3].map((turn) => (at: number) => size(at + turn));
    expect(highestOverPeak(sizes, 2000)).toBeLessThan(1.3);
  });

  test("sizes at random", () => {
    const next = words(7);
    const size = (): number => (next() % (next() % 4 === 0 ? 4 * MIB : 64 * KIB)) + 1;
    expect(highestOverPeak([size, size, size, size], 2000)).toBeLessThan(1.3);
  });
});
