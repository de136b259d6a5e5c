import { describe, expect, test } from "vitest";
import { HostMemory, neededBytes } from "../../../src/actors/host/host-memory.ts";
import { refusalOf } from "../../protocol/refusal.ts";

// Proves that the memory which shards have and have reserved is counted for all threads of a host.

const MIB = 1024 * 1024;

describe("a host's memory", () => {
  const shards = 3;

  test("is set aside for an eighth more than the values and a MiB, up to the limit", () => {
    const memory = HostMemory.open({ shards, limitBytes: 21 * MIB, freeBytes: () => 1e12 });
    memory.reserve(0, 8 * MIB);
    expect(memory.freeBytes).toBe(11 * MIB);
    const error = refusalOf(() => memory.reserve(1, 9 * MIB));
    expect(error).toMatchObject({
      code: "NO_MEMORY",
      retryable: true,
      details: { shard: 1, expected: neededBytes(9 * MIB), received: 11 * MIB },
    });
    // What was refused takes nothing.
    expect(memory.freeBytes).toBe(11 * MIB);
    memory.reserve(1, 8 * MIB);
    memory.release(0);
    memory.reserve(2, 8 * MIB);
  });

  test("that is reserved but not used yet is not given twice, on any thread", () => {
    const options = { shards, freeBytes: () => 25 * MIB };
    const one = HostMemory.open(options);
    const other = HostMemory.open({ ...options, buffer: one.buffer });
    one.reserve(0, 16 * MIB);
    expect(refusalOf(() => other.reserve(1, 8 * MIB)).details["received"]).toBe(6 * MIB);
    // The system counts what it has given itself.
    one.holds(0, 17 * MIB);
    other.reserve(1, 8 * MIB);
    one.release(0);
    expect(other.freeBytes).toBe(15 * MIB);
  });

  test("that a shard has already is not counted as needed again, but counts for the limit", () => {
    const memory = HostMemory.open({ shards, limitBytes: 21 * MIB, freeBytes: () => 2 * MIB });
    expect(refusalOf(() => memory.reserve(0, 8 * MIB)).code).toBe("NO_MEMORY");
    memory.reserve(0, 8 * MIB, 9 * MIB);
    expect(memory.freeBytes).toBe(MIB);
    expect(refusalOf(() => memory.reserve(0, 18 * MIB, 20 * MIB)).code).toBe("NO_MEMORY");
  });

  test("grows with its shards", () => {
    const memory = HostMemory.open({ shards, limitBytes: 100, freeBytes: () => 1e12 });
    memory.holds(0, 60);
    memory.holds(0, 70);
    memory.holds(2, 10);
    expect(memory.freeBytes).toBe(20);
  });
});
