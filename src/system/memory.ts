import { readFileSync } from "node:fs";
import { freemem, totalmem } from "node:os";
import { dirname, join } from "node:path";

/** Returns the text of a file; undefined if it cannot be read. */
type ReadText = (path: string) => string | undefined;

const CGROUPS = "/sys/fs/cgroup";
const BYTES_PER_KIB = 1024;

/**
 * Returns the bytes that this process may still use before the system kills or stalls it: the least of what the
 * machine has available and what each control group of the process leaves of its limits. File caches in a control group that were
 * not used lately count as free, because the kernel reclaims them first.
 */
export function freeMemoryBytes(read: ReadText = readText): number {
  const machineBytes = machineMemory("MemAvailable", read) ?? freemem();
  const leftBytes = groupsOf(read).map((group) => bytesLeft(read, group));
  return Math.max(0, Math.min(machineBytes, ...leftBytes));
}

/**
 * Returns the bytes of memory that a process, by default this one, shares with all others there: the least of what the
 * machine has and the limits of each control group of the process.
 */
export function totalMemoryBytes(pid: number | "self" = "self", read: ReadText = readText): number {
  const machineBytes = machineMemory("MemTotal", read) ?? totalmem();
  return Math.min(machineBytes, ...groupsOf(read, pid).map((group) => limitOf(read, group)));
}

function machineMemory(field: string, read: ReadText): number | undefined {
  const kib = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(read("/proc/meminfo") ?? "")?.[1];
  return kib === undefined ? undefined : Number(kib) * BYTES_PER_KIB;
}

/** A control group: its directory, and how its version names the files. */
interface Group {
  readonly directory: string;
  readonly files: GroupFiles;
}

/** Names of a control group's files. */
interface GroupFiles {
  /** A group has none, one or several of them. Above some the system kills, above others it stalls. */
  readonly limits: readonly string[];
  readonly used: string;
  readonly unusedLately: RegExp;
}

const V2: GroupFiles = {
  limits: ["memory.max", "memory.high"],
  used: "memory.current",
  unusedLately: /^inactive_file (\d+)$/m,
};
const V1: GroupFiles = {
  limits: ["memory.limit_in_bytes"],
  used: "memory.usage_in_bytes",
  unusedLately: /^total_inactive_file (\d+)$/m,
};

/** Returns the control groups of a process that count memory: its own and each one above it. */
function groupsOf(read: ReadText, pid: number | "self" = "self"): Group[] {
  const lines = (read(`/proc/${pid}/cgroup`) ?? "").split("\n");
  return lines.flatMap((line) => {
    const [, controllers, path = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    const at = (root: string, files: GroupFiles): Group[] =>
      ancestors(path).map((group) => ({ directory: join(root, group), files }));
    if (controllers === "") return at(CGROUPS, V2);
    return controllers?.split(",").includes("memory") ? at(join(CGROUPS, "memory"), V1) : [];
  });
}

/** Returns the lowest limit of a group; infinity if it has none of its own. */
function limitOf(read: ReadText, { directory, files }: Group): number {
  // "max", or a missing file: this group has no such limit.
  const limits = files.limits.map((file) => Number.parseInt(read(join(directory, file)) ?? "", 10));
  return Math.min(...limits.filter((limit) => !Number.isNaN(limit)));
}

function bytesLeft(read: ReadText, group: Group): number {
  const { directory, files } = group;
  const usedBytes = Number.parseInt(read(join(directory, files.used)) ?? "", 10);
  if (Number.isNaN(usedBytes)) return Number.POSITIVE_INFINITY;
  const unused = files.unusedLately.exec(read(join(directory, "memory.stat")) ?? "")?.[1];
  return limitOf(read, group) - (usedBytes - Number(unused ?? 0));
}

/** Returns a group and those above it. In a container the process's own group is the visible root. */
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
