import { readFileSync } from "node:fs";
import { freemem } from "node:os";
import { dirname, join } from "node:path";
import { PserverError } from "../../protocol/index.ts";

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
  const available = /^MemAvailable:\s+(\d+) kB/m.exec(read("/proc/meminfo") ?? "")?.[1];
  const machineBytes = available === undefined ? freemem() : Number(available) * BYTES_PER_KIB;
  return Math.max(0, Math.min(machineBytes, ...bytesLeftInGroups(read)));
}

/** Returns the bytes left in the control group of this process and in each one above it. */
function bytesLeftInGroups(read: ReadText): number[] {
  const lines = (read("/proc/self/cgroup") ?? "").split("\n");
  return lines.flatMap((line) => {
    const [, controllers, path = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === "")
      return ancestors(path).map((group) => bytesLeft(read, CGROUPS, group, V2));
    if (!controllers?.split(",").includes("memory")) return [];
    return ancestors(path).map((group) => bytesLeft(read, join(CGROUPS, "memory"), group, V1));
  });
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

function bytesLeft(read: ReadText, root: string, group: string, files: GroupFiles): number {
  const directory = join(root, group);
  // "max", or a missing file: this group has no such limit of its own.
  const limits = files.limits.map((file) => Number.parseInt(read(join(directory, file)) ?? "", 10));
  const limitBytes = Math.min(...limits.filter((limit) => !Number.isNaN(limit)));
  const usedBytes = Number.parseInt(read(join(directory, files.used)) ?? "", 10);
  if (Number.isNaN(usedBytes)) return Number.POSITIVE_INFINITY;
  const unused = files.unusedLately.exec(read(join(directory, "memory.stat")) ?? "")?.[1];
  return limitBytes - (usedBytes - Number(unused ?? 0));
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

/** A shard's memory grows by an eighth at a time, so it can be this much larger than its values. */
const GROWTH = 1.125;

/** Memory of a shard besides its values: constants, scratch, tables. */
const SHARD_BYTES = 1024 * 1024;

/** Options of {@link HostMemory}. */
interface HostMemoryOptions {
  readonly shards: number;
  /** The most that the host may use for values; limited only by the system by default. */
  readonly limitBytes?: number | undefined;
  /** The buffer of the `HostMemory` on another thread of the host. */
  readonly buffer?: SharedArrayBuffer;
  /** Returns the bytes that the system has free. */
  readonly freeBytes?: () => number;
}

/** Returns the memory that a shard needs for so many bytes of values. */
export function neededBytes(valueBytes: number): number {
  return Math.ceil(valueBytes * GROWTH) + SHARD_BYTES;
}

/**
 * Counts the memory of a host's shards for all its threads, so that no shard is taken over that does not fit: the
 * system would kill the host, and then the next host that takes the shard over.
 */
export class HostMemory {
  readonly buffer: SharedArrayBuffer;
  readonly #limitBytes: number;
  readonly #freeBytes: () => number;
  /** Bytes that each shard has or has reserved. */
  readonly #counted: BigInt64Array;
  /** Reserved bytes of each shard that it has not taken from the system yet. */
  readonly #reserved: BigInt64Array;

  private constructor(buffer: SharedArrayBuffer, options: HostMemoryOptions) {
    const { shards, limitBytes = Number.POSITIVE_INFINITY, freeBytes = freeMemoryBytes } = options;
    this.buffer = buffer;
    this.#counted = new BigInt64Array(buffer, 0, shards);
    this.#reserved = new BigInt64Array(buffer, this.#counted.byteLength, shards);
    this.#limitBytes = limitBytes;
    this.#freeBytes = freeBytes;
  }

  /** Counts in the buffer of the options, or in a new one. */
  static open(options: HostMemoryOptions): HostMemory {
    const bytes = 2 * options.shards * BigInt64Array.BYTES_PER_ELEMENT;
    return new HostMemory(options.buffer ?? new SharedArrayBuffer(bytes), options);
  }

  /** Bytes available to further shards or blocks. */
  get freeBytes(): number {
    return Math.min(this.#limitBytes - sum(this.#counted), this.#freeBytes() - sum(this.#reserved));
  }

  /**
   * Reserves memory for a shard with so many bytes of values, of which it has `heldBytes` already, until
   * {@link release}.
   * @throws NO_MEMORY if the host has less; nothing is reserved then.
   */
  reserve(shard: number, valueBytes: number, heldBytes = 0): void {
    const needed = neededBytes(valueBytes);
    this.release(shard);
    Atomics.store(this.#counted, shard, BigInt(needed));
    Atomics.store(this.#reserved, shard, BigInt(Math.max(0, needed - heldBytes)));
    // This counts what other threads reserve at the same moment: at worst both fail, and try again.
    const free = this.freeBytes;
    if (free >= 0) return;
    this.release(shard);
    const received = Math.max(0, Math.floor(free + needed));
    throw new PserverError(
      "NO_MEMORY",
      `shard ${shard}: expected ${needed} bytes of free memory for its values; this host has ${received}`,
      { shard, expected: needed, received },
    );
  }

  /** Notes how much memory a shard has now: the system has provided what was reserved. */
  holds(shard: number, memoryBytes: number): void {
    Atomics.store(this.#counted, shard, BigInt(memoryBytes));
    Atomics.store(this.#reserved, shard, 0n);
  }

  /** Notes that a shard has no memory any more. */
  release(shard: number): void {
    Atomics.store(this.#counted, shard, 0n);
    Atomics.store(this.#reserved, shard, 0n);
  }
}

function sum(bytes: BigInt64Array): number {
  let total = 0n;
  for (let shard = 0; shard < bytes.length; shard++) total += Atomics.load(bytes, shard);
  return Number(total);
}
