import { describe, expect, test } from "vitest";
import { freeMemoryBytes, totalMemoryBytes } from "../../src/system/memory.ts";

// Proves what counts as free memory, and as the memory that there is, from files as kernels write them.

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

describe("the memory that there is, is", () => {
  const total = (files: Readonly<Record<string, string>>): number =>
    totalMemoryBytes(
      "self",
      (path) => ({ "/proc/meminfo": "MemTotal: 9000 kB\n", ...files })[path],
    );

  test("that of the machine, without a limit", () => {
    expect(total({})).toBe(9_000 * 1024);
    expect(total({ "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n" })).toBe(
      9_000 * 1024,
    );
  });

  test("the lowest limit of the control group and those above it, whatever they use", () => {
    const files = {
      "/proc/self/cgroup": "0::/a/b\n",
      "/sys/fs/cgroup/a/b/memory.max": "max\n",
      "/sys/fs/cgroup/a/b/memory.high": "800000\n",
      "/sys/fs/cgroup/a/memory.max": "700000\n",
      "/sys/fs/cgroup/a/memory.current": "690000\n",
    };
    expect(total(files)).toBe(700_000);
    expect(total({ ...files, "/sys/fs/cgroup/a/b/memory.high": "600000\n" })).toBe(600_000);
  });

  test("the limit of a group of the first version", () => {
    const limit = { "/sys/fs/cgroup/memory/x/memory.limit_in_bytes": "500000\n" };
    expect(total({ "/proc/self/cgroup": "4:memory:/x\n", ...limit })).toBe(500_000);
  });

  test("that of another process in the group of that process", () => {
    const files = {
      "/proc/meminfo": "MemTotal: 9000 kB\n",
      "/proc/self/cgroup": "0::/mine\n",
      "/proc/7/cgroup": "0::/theirs\n",
      "/sys/fs/cgroup/theirs/memory.max": "300000\n",
    };
    const read = (path: string): string | undefined => (files as Record<string, string>)[path];
    expect([totalMemoryBytes(7, read), totalMemoryBytes("self", read)]).toEqual([
      300_000,
      9_000 * 1024,
    ]);
  });

  test("of this machine at least what is free", () => {
    expect(totalMemoryBytes()).toBeGreaterThanOrEqual(freeMemoryBytes());
  });
});
