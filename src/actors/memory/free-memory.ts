import { readFileSync } from "node:fs";
import { freemem } from "node:os";
import { dirname, join } from "node:path";

/** Gives the text of a file; undefined if there is none that can be read. */
export type ReadText = (path: string) => string | undefined;

const CGROUPS = "/sys/fs/cgroup";
const BYTES_PER_KIB = 1024;

/**
 * Bytes that this process may still take before the system ends it: what the machine has available, and
 * what each control group above the process leaves of its limit. What files take in a control group the
 * kernel gives up first, so what of it was not used lately counts as free.
 */
export function freeMemoryBytes(read: ReadText = readText): number {
  const available = /^MemAvailable:\s+(\d+) kB/m.exec(read("/proc/meminfo") ?? "")?.[1];
  const machineBytes = available === undefined ? freemem() : Number(available) * BYTES_PER_KIB;
  return Math.max(0, Math.min(machineBytes, ...groupsLeft(read)));
}

/** What the control groups of this process leave: the one it is in, and all above. */
function groupsLeft(read: ReadText): number[] {
  const lines = (read("/proc/self/cgroup") ?? "").split("\n");
  return lines.flatMap((line) => {
    const [, controllers, path = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === "") return ancestors(path).map((group) => left(read, CGROUPS, group, V2));
    if (!controllers?.split(",").includes("memory")) return [];
    return ancestors(path).map((group) => left(read, join(CGROUPS, "memory"), group, V1));
  });
}

/** Names of a control group's files, by version. */
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
  // "max", or no such file: this group has no limit of its own.
  const limitBytes = Number.parseInt(read(join(directory, files.limit)) ?? "", 10);
  const usedBytes = Number.parseInt(read(join(directory, files.used)) ?? "", 10);
  if (Number.isNaN(limitBytes) || Number.isNaN(usedBytes)) return Number.POSITIVE_INFINITY;
  const unused = files.unusedLately.exec(read(join(directory, "memory.stat")) ?? "")?.[1];
  return limitBytes - (usedBytes - Number(unused ?? 0));
}

/** A group and those above it. In a container the own group is the root of what can be seen. */
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
