import { readdirSync, readFileSync } from "node:fs";

/** The processes that a process and its children have started and that still run, itself included. */
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

/** 0 if the process has ended meanwhile. */
function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name, in brackets, may hold blanks.
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return 0;
  }
}
