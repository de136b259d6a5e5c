import { setTimeout as delay } from "node:timers/promises";
import { InvalidArgumentError } from "commander";
import { mismatch, PserverError } from "../../protocol/errors.js";
/** Where trainers can be started. */
export const LAUNCHERS = ["local", "ssh", "slurm", "pbs"];
/** Writes a flag as on the command line. */
export function flagOf(name) {
    return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
/** @throws BAD_VALUE if one of these flags is given, which the launcher does not have. */
export function refuseFlags(flags, names) {
    const flagName = names.find((name) => flags[name] !== undefined);
    if (flagName === undefined)
        return;
    throw mismatch("BAD_VALUE", flagOf(flagName), "another --launcher with it", flags.launcher);
}
/** The longest delay of a timer of Node.js. */
const TIMER_MS_MAX = 2 ** 31 - 1;
const WALL_TIME = /^(?:(\d{1,3})-)?(\d{1,4}):([0-5]\d):([0-5]\d)$/;
/** Parses a wall time as batch systems write it: `12:00:00`, or `1-12:00:00` with days; returns seconds. */
export function parseWallTime(text) {
    const match = WALL_TIME.exec(text);
    const [days = 0, hours = 0, minutes = 0, seconds = 0] = (match ?? []).slice(1).map((part) => {
        return Number(part ?? 0);
    });
    const total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
    if (total > 0)
        return total;
    const expected = "a wall time such as 12:00:00 or 1-12:00:00";
    throw new InvalidArgumentError(`expected ${expected}; received ${JSON.stringify(text)}`);
}
/** Writes seconds as `HH:MM:SS`, which every batch system accepts; hours may be more than 24. */
export function formatWallTime(seconds) {
    const parts = [seconds / 3600, (seconds / 60) % 60, seconds % 60];
    return parts.map((part) => String(Math.floor(part)).padStart(2, "0")).join(":");
}
/** Settles with ABORTED once the wall time has passed; never if there is none, or `signal` is aborted first. */
export async function wallTimeOver(seconds, signal) {
    if (seconds === undefined)
        return await new Promise(() => { });
    const endMs = performance.now() + seconds * 1000;
    try {
        for (let leftMs = seconds * 1000; leftMs > 0; leftMs = endMs - performance.now()) {
            await delay(Math.min(leftMs, TIMER_MS_MAX), undefined, { signal });
        }
    }
    catch {
        // Aborted: the trainers have ended before.
        return await new Promise(() => { });
    }
    return new PserverError("ABORTED", `the wall time of ${formatWallTime(seconds)} is over`);
}
//# sourceMappingURL=run-flags.js.map