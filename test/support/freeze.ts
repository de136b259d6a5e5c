import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { HANG_MS } from "./limits.ts";
import { signalProcess } from "./signals.ts";

/** Pause between two looks at a process. */
const PAUSE_MS = 2;

/**
 * Has a process do nothing from when this resolves on, with its connections open, until {@link thaw}.
 * The signal alone takes effect later: a thread that runs on another core may still answer.
 */
export async function freeze(pid: number): Promise<void> {
  signalProcess(pid, "SIGSTOP");
  const deadline = performance.now() + HANG_MS;
  while (!readdirSync(`/proc/${pid}/task`).every((task) => stops(pid, task))) {
    if (performance.now() > deadline) throw new Error(`process ${pid} does not stop`);
    await delay(PAUSE_MS);
  }
}

/** Lets a frozen process go on. */
export function thaw(pid: number): void {
  signalProcess(pid, "SIGCONT");
}

/** Whether a thread is stopped; the state follows the name, which is in parentheses. */
function stops(pid: number, task: string): boolean {
  const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
}
