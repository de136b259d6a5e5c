/**
 * Signals to processes that a test has started. `process.kill` takes 0 for the group of the caller and -1 for
 * every process: with a pid that a test has not found, it would end the run itself, or the whole machine.
 */

/** Sends a signal to one process. @throws RangeError unless `pid` is that of a process other than the first. */
export function signalProcess(pid: number | undefined, signal: NodeJS.Signals): void {
  process.kill(checkedPid(pid), signal);
}

/**
 * Sends a signal to every process of a group.
 * @throws RangeError unless `leader` is the pid of a process other than the first.
 */
export function signalGroup(leader: number | undefined, signal: NodeJS.Signals): void {
  process.kill(-checkedPid(leader), signal);
}

/** The pid itself. @throws RangeError unless it is that of a process other than the first. */
export function checkedPid(pid: number | undefined): number {
  if (pid !== undefined && Number.isSafeInteger(pid) && pid > 1) return pid;
  throw new RangeError(`expected the pid of a process of the test, received ${pid}`);
}
