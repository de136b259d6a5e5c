import { readFileSync } from "node:fs";
import { errnoCode } from "../system/file-errors.ts";

/**
 * Identity of a process. Pids are reused, after a reboot at once, so `birth` tells processes with the
 * same pid apart: the first digits of the boot id and the start time in clock ticks, or `"unknown"`
 * on a system without `/proc`.
 */
export interface ProcessIdentity {
  readonly pid: number;
  readonly birth: string;
}

const UNKNOWN = "unknown";

/** Indices of fields of `/proc/<pid>/stat` after the command's name. */
const STATE_FIELD = 0;
const START_FIELD = 19;

/** Identifies the process that has this pid now; undefined if none has. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const boot = readProc("/proc/sys/kernel/random/boot_id");
  if (boot === undefined) return isSignalable(pid) ? { pid, birth: UNKNOWN } : undefined;
  const stat = readProc(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The command's name may contain spaces and parentheses: fields are counted from the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const state = fields[STATE_FIELD];
  if (state === "Z" || state === "X") return undefined;
  return { pid, birth: `${boot.slice(0, 8)}-${fields[START_FIELD] ?? UNKNOWN}` };
}

/** Returns whether the process is still alive, and is not another one under the same pid. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identifyProcess(identity.pid)?.birth === identity.birth;
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // There is no such process, or no /proc; the caller handles both.
    return undefined;
  }
}

function isSignalable(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process is alive and belongs to another user.
    return errnoCode(error) === "EPERM";
  }
}
