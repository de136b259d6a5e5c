import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";
import { onTestFinished } from "vitest";

/** The real one, whatever a test fakes: what is tried again and again lets other things run. */
const { setImmediate: soon } = globalThis;

/**
 * Until the test has ended, pauses of `node:timers/promises` take no time.
 * @returns those that were asked for, in milliseconds; more are added as they are asked for.
 */
export function withoutPauses(): readonly number[] {
  const pauses: number[] = [];
  const { setTimeout } = timers;
  const replace = (other: typeof setTimeout): void => {
    timers.setTimeout = other;
    // Else modules that have imported it by its name keep the old one.
    syncBuiltinESMExports();
  };
  replace(<T>(ms = 0, value?: T) => {
    pauses.push(ms);
    return new Promise<T>((resolve) => soon(() => resolve(value as T)));
  });
  onTestFinished(() => replace(setTimeout));
  return pauses;
}
