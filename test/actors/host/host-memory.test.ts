import { describe, expect, test } from "vitest";
import { freeMemoryBytes, HostMemory, neededBytes } from "../../../src/actors/host/host-memory.ts";
import { refusalOf } from "../../protocol/refusal.ts";

// Proves what counts as free memory, from files as kernels write them, and that the memory which shards
// have and have reserved is counted for all threads of a host.

const MIB = 1024 * 1024;

describe("free memory is", () => {
  const meminfo = "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n";
  const free = (files: Readonly<Record<string, string>>): number =>
    freeMemoryBytes((path) => ({ "/proc/meminfo": meminfo, ...files })[path]);

  test("what the machine has available, without a limit", () => {
    expect(free({})).toBe(4_000 * 1024);
    expect(free({ "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n" })).toBe(
      4_000 * 1024,
    );
  });

  test("what the control group leaves, where files that were not used lately count as free", () => {
    const group = {
      "/proc/self/cgroup": "0::/a/b\n",
      "/sys/fs/cgroup/a/b/memory.max": "1000000\n",
      "/sys/fs/cgroup/a/b/memory.current": "900000\n",
    };
    expect(free(group)).toBe(100_000);
    const stat = "anon 5\nactive_file 7\ninactive_file 300000\n";
    expect(free({ ...group, "/sys/fs/cgroup/a/b/memory.stat": stat })).toBe(400_000);
  });

  test("what any group above leaves, if that is less, and nothing if one is over its limit", () => {
    const files = {
      "/proc/self/cgroup": "0::/a/b\n",
      "/sys/fs/cgroup/a/b/memory.max": "max\n",
      "/sys/fs/cgroup/a/b/memory.current": "900000\n",
      "/sys/fs/cgroup/a/memory.max": "950000\n",
      "/sys/fs/cgroup/a/memory.current": "930000\n",
    };
    expect(free(files)).toBe(20_000);
    expect(free({ ...files, "/sys/fs/cgroup/a/memory.current": "960000\n" })).toBe(0);
  });

  test("what a group leaves of the limit above which the system stalls it, of its own or from above", () => {
    const files = {
      "/proc/self/cgroup": "0::/a/b\n",
      "/sys/fs/cgroup/a/b/memory.max": "1000000\n",
      "/sys/fs/cgroup/a/b/memory.high": "700000\n",
      "/sys/fs/cgroup/a/b/memory.current": "600000\n",
    };
    expect(free(files)).toBe(100_000);
    expect(free({ ...files, "/sys/fs/cgroup/a/b/memory.high": "max\n" })).toBe(400_000);
    const above = {
      "/sys/fs/cgroup/a/memory.high": "650000\n",
      "/sys/fs/cgroup/a/memory.current": "610000\n",
    };
    expect(free({ ...files, ...above })).toBe(40_000);
    expect(free({ "/proc/self/cgroup": "0::/a\n", ...above })).toBe(40_000);
  });

  test("what a group of the first version leaves", () => {
    const files = {
      "/proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n",
      "/sys/fs/cgroup/memory/x/memory.limit_in_bytes": "700000\n",
      "/sys/fs/cgroup/memory/x/memory.usage_in_bytes": "600000\n",
      "/sys/fs/cgroup/memory/x/memory.stat": "inactive_file 1\ntotal_inactive_file 50000\n",
    };
    expect(free(files)).toBe(150_000);
  });

  test("of this machine more than nothing", () => {
    expect(freeMemoryBytes()).toBeGreaterThan(0);
  });
});

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
