import { readFileSync, writeFileSync } from "node:fs";

/** Ticks per second in `/proc/<pid>/stat`: 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/**
 * Reads the fields of `/proc/<pid>/stat` from the state of the process on.
 * @throws if it has ended.
 */
export function statFields(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name before them, in brackets, may hold blanks.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/**
 * Returns the CPU time that a process and its threads have used so far, in user and kernel mode.
 */
export function cpuSeconds(pid: number): number {
  const fields = statFields(pid);
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Returns the most memory that a process has had resident since {@link resetPeak} (VmHWM). */
export function peakBytes(pid: number): number {
  const line = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(line?.[1] ?? Number.NaN) * 1024;
}

/** Resets the peak of a process to what it holds now. */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

/** A process that a measurement watches, under the name of its part. */
export interface Watched {
  readonly role: string;
  readonly pid: number;
}

/** What the processes of one role used. */
export interface Usage {
  /** CPU time of all of them. */
  readonly cpuSeconds: number;
  /** Peak of the largest of them. */
  readonly peakBytes: number;
}

/** Runs `work`, and returns with its result what each role used during it. */
export async function watch<Result>(
  processes: readonly Watched[],
  work: () => Promise<Result>,
): Promise<{ result: Result; usage: Map<string, Usage> }> {
  for (const { pid } of processes) resetPeak(pid);
  const before = processes.map(({ pid }) => cpuSeconds(pid));
  const result = await work();
  const usage = new Map<string, Usage>();
  processes.forEach(({ role, pid }, i) => {
    const other = usage.get(role) ?? { cpuSeconds: 0, peakBytes: 0 };
    usage.set(role, {
      cpuSeconds: other.cpuSeconds + cpuSeconds(pid) - (before[i] ?? 0),
      peakBytes: Math.max(other.peakBytes, peakBytes(pid)),
    });
  });
  return { result, usage };
}
