import { setTimeout as delay } from "node:timers/promises";
import { ensureError } from "../protocol/errors.js";
/** How often in a row a broker or host is restarted that fails, or ends within {@link STEADY_MS}. */
export const RESTARTS_MAX = 5;
/** Running time after which earlier failures do not count any more. */
export const STEADY_MS = 60_000;
const RESTART_DELAY_MS = 500;
const RESTART_DELAY_MS_MAX = 30_000;
const pauseFor = (delayMs, signal) => delay(delayMs, undefined, { signal });
/**
 * Starts something again each time it ends, until it has ended for good or failed too often in a row. The
 * pause before it is 0.5 s, and doubles with each start in a row, up to 30 s.
 * Settles with undefined when it has ended after it was stopped. Rejects as `ended` does.
 */
export async function supervise(first, supervision) {
    const { start, describe, restartsMax, signal, onMessage, pause = pauseFor } = supervision;
    let failures = 0;
    let restarts = 0;
    for (let run = first;;) {
        const startedMs = performance.now();
        const end = await run.ended;
        if (signal.aborted)
            return undefined;
        if (performance.now() - startedMs >= STEADY_MS)
            failures = 0;
        let reason = describe(end);
        let cause;
        for (let next; next === undefined;) {
            if (reason === undefined || failures >= restartsMax)
                return { end, restarts, reason, cause };
            failures += 1;
            restarts += 1;
            onMessage(`${reason}; starting it again (${failures} of ${restartsMax})`);
            try {
                await pause(Math.min(RESTART_DELAY_MS * 2 ** (failures - 1), RESTART_DELAY_MS_MAX), signal);
                next = await start();
                run = next;
            }
            catch (error) {
                if (signal.aborted)
                    return undefined;
                cause = ensureError(error);
                reason = supervision.describeFailedStart?.(cause) ?? cause.message;
            }
        }
    }
}
//# sourceMappingURL=supervise.js.map