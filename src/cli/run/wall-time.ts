import { setTimeout as delay } from "node:timers/promises";
import { InvalidArgumentError } from "commander";
import { PserverError } from "../../protocol/errors.ts";

/** The longest delay of a timer of Node.js. */
const TIMER_MS_MAX = 2 ** 31 - 1;

const WALL_TIME = /^(?:(\d{1,3})-)?(\d{1,4}):([0-5]\d):([0-5]\d)$/;

/** Seconds of a wall time as batch systems write it: `12:00:00`, or `1-12:00:00` with days. */
export function parseWallTime(text: string): number {
  const match = WALL_TIME.exec(text);
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = (match ?? []).slice(1).map((part) => {
    return Number(part ?? 0);
  });
  const total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
  if (total > 0) return total;
  const expected = "a wall time such as 12:00:00 or 1-12:00:00";
  throw new InvalidArgumentError(`expected ${expected}; received ${JSON.stringify(text)}`);
}

/** Seconds as `HH:MM:SS`, which every batch system takes; hours may be more than 24. */
export function formatWallTime(seconds: number): string {
  const parts = [seconds / 3600, (seconds / 60) % 60, seconds % 60];
  return parts.map((part) => String(Math.floor(part)).padStart(2, "0")).join(":");
}

/** Settles with ABORTED once the wall time is over; never if there is none, or `signal` is aborted first. */
export async function wallTimeOver(
  seconds: number | undefined,
  signal: AbortSignal,
): Promise<PserverError> {
  if (seconds === undefined) return await new Promise(() => {});
  const endMs = performance.now() + seconds * 1000;
  try {
    for (let leftMs = seconds * 1000; leftMs > 0; leftMs = endMs - performance.now()) {
      await delay(Math.min(leftMs, TIMER_MS_MAX), undefined, { signal });
    }
  } catch {
    // Aborted: the trainers have ended before.
    return await new Promise(() => {});
  }
  return new PserverError("ABORTED", `the wall time of ${formatWallTime(seconds)} is over`);
}
