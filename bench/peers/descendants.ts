import { readdirSync } from "node:fs";
import { statFields } from "../process-usage.ts";

/**
 * Lists the processes that a process and its children have started and that still run, itself
 * included.
 */
export function descendants(root: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (Number.isSafeInteger(pid)) parents.set(pid, parentOf(pid));
  }
  const found = new Set([root]);
  for (let count = 0; count < found.size; ) {
    count = found.size;
    for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid);
  }
  return [...found];
}

/** Signals a process and its {@link descendants}; those that have ended meanwhile need none. */
export function signalAll(root: number, signal: "SIGSTOP" | "SIGCONT"): void {
  for (const pid of descendants(root)) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

/** Returns the parent of a process; 0 if the process has ended. */
function parentOf(pid: number): number {
  try {
    return Number(statFields(pid)[1]);
  } catch {
    return 0;
  }
}
