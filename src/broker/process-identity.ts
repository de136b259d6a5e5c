import { readFileSync } from "node:fs";
import { errnoCode } from "../system/file-errors.ts";

/**
 * One life of a process. Pids are used again, after a reboot at once, so `birth` tells lives
 * apart: start of the boot's id and the start time in clock ticks, or `"unknown"` where the
 * system has no `/proc`.
 */
export interface ProcessIdentity {
  readonly pid: number;
  readonly birth: string;
}

const UNKNOWN = "unknown";

/** Fields of `/proc/<pid>/stat` counted from behind the command's name. */
const STATE_FIELD = 0;
const START_FIELD = 19;

/** Identity of the process that runs under `pid` now; undefined if none does. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const boot = readProc("/proc/sys/kernel/random/boot_id");
  if (boot === undefined) return isSignalable(pid) ? { pid, birth: UNKNOWN } : undefined;
  const stat = readProc(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The command's name may hold spaces and parentheses, so fields are counted from the last one.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const state = fields[STATE_FIELD];
  if (state === "Z" || state === "X") return undefined;
  return { pid, birth: `${boot.slice(0, 8)}-${fields[START_FIELD] ?? UNKNOWN}` };
}

/** Whether that very life of the process still goes on. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identifyProcess(identity.pid)?.birth === identity.birth;
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // No such process, or no /proc at all: both are answers here.
    return undefined;
  }
}

function isSignalable(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it lives and belongs to someone else.
    return errnoCode(error) === "EPERM";
  }
}
