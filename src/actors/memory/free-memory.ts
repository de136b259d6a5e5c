import { readFileSync } from "node:fs";
import { freemem } from "node:os";
import { dirname, join } from "node:path";

/** Returns the text of a file; undefined if it cannot be read. */
export type ReadText = (path: string) => string | undefined;

const CGROUPS = "/sys/fs/cgroup";
const BYTES_PER_KIB = 1024;

/**
 * Bytes that this process may still use before the system kills it: the least of what the machine has
 * available and what each control group of the process leaves of its limit. File caches in a control group
 * that were not used lately count as free, because the kernel reclaims them first.
 */
export function freeMemoryBytes(read: ReadText = readText): number {
  const available = /^MemAvailable:\s+(\d+) kB/m.exec(read("/proc/meminfo") ?? "")?.[1];
  const machineBytes = available === undefined ? freemem() : Number(available) * BYTES_PER_KIB;
  return Math.max(0, Math.min(machineBytes, ...groupsLeft(read)));
}

/** Bytes left in the control group of this process and in each one above it. */
function groupsLeft(read: ReadText): number[] {
  const lines = (read("/proc/self/cgroup") ?? "").split("\n");
  return lines.flatMap((line) => {
    const [, controllers, path = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === "") return ancestors(path).map((group) => left(read, CGROUPS, group, V2));
    if (!controllers?.split(",").includes("memory")) return [];
    return ancestors(path).map((group) => left(read, join(CGROUPS, "memory"), group, V1));
  });
}

/** Names of a control group's files. */
interface GroupFiles {
  readonly limit: string;
  readonly used: string;
  readonly unusedLately: RegExp;
}

const V2: GroupFiles = {
  limit: "memory.max",
  used: "memory.current",
  unusedLately: /^inactive_file (\d+)$/m,
};
const V1: GroupFiles = {
  limit: "memory.limit_in_bytes",
  used: "memory.usage_in_bytes",
  unusedLately: /^total_inactive_file (\d+)$/m,
};

function left(read: ReadText, root: string, group: string, files: GroupFiles): number {
  const directory = join(root, group);
  // "max", or a missing file: this group has no limit of its own.
  const limitBytes = Number.parseInt(read(join(directory, files.limit)) ?? "", 10);
  const usedBytes = Number.parseInt(read(join(directory, files.used)) ?? "", 10);
  if (Number.isNaN(limitBytes) || Number.isNaN(usedBytes)) return Number.POSITIVE_INFINITY;
  const unused = files.unusedLately.exec(read(join(directory, "memory.stat")) ?? "")?.[1];
  return limitBytes - (usedBytes - Number(unused ?? 0));
}

/** A group and those above it. In a container its own group is the visible root. */
function ancestors(path: string): string[] {
  return path === "/" ? ["/"] : [path, ...ancestors(dirname(path))];
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
