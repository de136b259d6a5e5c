import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";
import { onTestFinished } from "vitest";

/** The real one, whatever a test fakes: what is tried again and again lets other things run. */
const { setImmediate: soon } = globalThis;

/** Until the test has ended, pauses of `node:timers/promises` take no time. */
export function withoutPauses(): void {
  const { setTimeout } = timers;
  const replace = (other: typeof setTimeout): void => {
    timers.setTimeout = other;
    // Else modules that have imported it by its name keep the old one.
    syncBuiltinESMExports();
  };
  replace(
    <T>(_ms?: number, value?: T) => new Promise<T>((resolve) => soon(() => resolve(value as T))),
  );
  onTestFinished(() => replace(setTimeout));
}
