// Proves that large buffers are used again, also after a time in which others filled the pool, and
// that what is kept stays bounded.
import fc from "fast-check";
import { expect, test } from "vitest";
import { BufferPool } from "../../src/transport/buffers.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

function memoryOf(buffer: Uint8Array): ArrayBufferLike {
  return buffer.buffer;
}

test("gives a buffer again to a caller that needs nearly as much", () => {
  const pool = new BufferPool();
  const first = pool.take(MIB - 10);
  pool.giveBack(first);
  const second = pool.take(MIB - 3000);
  expect(memoryOf(second)).toBe(memoryOf(first));
  expect(second).toHaveLength(MIB - 3000);
});

test("does not give one buffer to two", () => {
  const pool = new BufferPool();
  const first = pool.take(MIB);
  expect(memoryOf(pool.take(MIB))).not.toBe(memoryOf(first));
});

test("leaves small buffers and those of others to the garbage collector", () => {
  const pool = new BufferPool();
  const foreign = new Uint8Array(MIB + 1);
  pool.giveBack(foreign);
  pool.giveBack(new Uint8Array(10));
  expect(memoryOf(pool.take(MIB))).not.toBe(foreign.buffer);
});

test("a pool full of buffers that nobody asks for any more drops them for others", () => {
  const pool = new BufferPool();
  const small = Array.from({ length: 200 }, () => pool.take(64 * KIB));
  for (const buffer of small) pool.giveBack(buffer);
  const large = [pool.take(2 * MIB), pool.take(2 * MIB)];
  for (const buffer of large) pool.giveBack(buffer);
  const again = [pool.take(2 * MIB), pool.take(2 * MIB)].map(memoryOf);
  expect(new Set(again)).toEqual(new Set(large.map(memoryOf)));
});

test("keeps at most 8 MiB, whatever is given back", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9 * MIB }), { maxLength: 40 }), (sizes) => {
      const pool = new BufferPool();
      const given = sizes.map((bytes) => pool.take(bytes));
      const known = new Set(given.map(memoryOf));
      for (const buffer of given) pool.giveBack(buffer);
      const kept = sizes.map((bytes) => memoryOf(pool.take(bytes)));
      const bytes = [...new Set(kept)]
        .filter((memory) => known.has(memory) && memory.byteLength >= 16 * KIB)
        .reduce((sum, memory) => sum + memory.byteLength, 0);
      expect(bytes).toBeLessThanOrEqual(8 * MIB);
    }),
  );
});
