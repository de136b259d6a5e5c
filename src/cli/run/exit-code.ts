import { constants } from "node:os";

/** Shells add this to the number of a signal that ended a program. */
const SIGNAL_BASE = 128;

/** The exit code of a program that SIGKILL has ended. */
export const KILLED = SIGNAL_BASE + constants.signals.SIGKILL;

/** An exit code for people, with the signal that it stands for. */
export function inWords(exitCode: number): string {
  const code = `with exit code ${exitCode}`;
  if (exitCode === KILLED)
    return `${code} (SIGKILL, which the kernel sends when memory has run out)`;
  const signals = Object.entries(constants.signals);
  const signal = signals.find(([, number]) => SIGNAL_BASE + number === exitCode)?.[0];
  return signal === undefined ? code : `${code} (${signal})`;
}
