import { fstatSync, readFileSync, statSync } from "node:fs";
import { isatty } from "node:tty";
import { errnoCode } from "../system/file-errors.ts";

/** Signals that somebody may have asked a command to ignore: with `nohup`, or by starting it with `&` in a script. */
export type IgnorableSignal = "SIGHUP" | "SIGINT" | "SIGQUIT" | "SIGTERM";

/** What is known about the start of a process. */
export interface ProcessStart {
  /** Of `PSERVER_IGNORED_SIGNALS`, which the first lines of the program set; undefined if Node.js was started by itself. */
  readonly told: string | undefined;
  /** Whether one of the standard streams is a terminal, and its output goes to files. */
  readonly hasTerminal: boolean;
  readonly printsToFiles: boolean;
  /** Whether it is a job that a shell without job control has put into the background. */
  readonly isBackgroundJob: boolean;
}

const VARIABLE = "PSERVER_IGNORED_SIGNALS";
const SHELL = /^(?:ba|da|a|k|mk|z)?sh$|^busybox$/;

/**
 * The signals that this process was started to ignore. Node.js sets all signals to their defaults before it runs a
 * program, so the shell lines at the beginning of `pserver` and `legion` look before and tell by a variable, which
 * is removed here, because it is not for the processes that this one starts. Call it once, before those.
 */
export function takeIgnoredSignals(environment = process.env): ReadonlySet<IgnorableSignal> {
  const told = environment[VARIABLE];
  delete environment[VARIABLE];
  return ignoredSignals({
    told,
    hasTerminal: [0, 1, 2].some((descriptor) => isatty(descriptor)),
    printsToFiles: [1, 2].every(isFileOrDevice),
    isBackgroundJob: isBackgroundJob(),
  });
}

/**
 * The signals that a process was started to ignore. Where the variable does not say it, because somebody has started
 * `node dist/pserver.js`, it follows from what `nohup` and shells do besides: `nohup` leaves no stream at a terminal,
 * and a shell without job control gives its background jobs no input and its own process group.
 */
export function ignoredSignals(start: ProcessStart): ReadonlySet<IgnorableSignal> {
  if (start.told !== undefined) {
    const names = start.told.split(" ").filter((name) => name !== "");
    return new Set(names.map((name) => `SIG${name}` as IgnorableSignal));
  }
  const ignored = new Set<IgnorableSignal>();
  if (!start.hasTerminal && start.printsToFiles) ignored.add("SIGHUP");
  if (start.isBackgroundJob) ignored.add("SIGINT").add("SIGQUIT");
  return ignored;
}

function isFileOrDevice(descriptor: number): boolean {
  const stat = fstatSync(descriptor);
  return stat.isFile() || stat.isCharacterDevice();
}

/** Only Linux tells. A job at the terminal's foreground is none, so Ctrl-C always ends it. */
function isBackgroundJob(): boolean {
  try {
    const own = readStat("self");
    const parent = readStat(String(process.ppid));
    const isForeground = own.foreground === own.group;
    if (!SHELL.test(parent.name) || own.group !== parent.group || isForeground) return false;
    return fstatSync(0).rdev === statSync("/dev/null").rdev;
  } catch (error) {
    // Without /proc, or if the parent has ended.
    if (errnoCode(error) !== undefined) return false;
    throw error;
  }
}

/** Name, process group and the foreground group of the terminal (-1 without one), from the kernel. */
function readStat(process: string): { name: string; group: string; foreground: string } {
  const text = readFileSync(`/proc/${process}/stat`, "utf8");
  const end = text.lastIndexOf(")");
  const fields = text.slice(end + 2).split(" ");
  return {
    name: text.slice(text.indexOf("(") + 1, end),
    group: fields[2] ?? "",
    foreground: fields[5] ?? "",
  };
}
