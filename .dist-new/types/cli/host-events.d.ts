import type { HostEvent } from "../actors/host/host.ts";
import type { Output } from "./output/output.ts";
/**
 * Lets each text pass at most once a minute: a host that cannot reach its broker fails in the same way four times
 * a second.
 */
export declare class RepeatedWarnings {
    #private;
    /**
     * Returns what to print of a warning: its text, with how often it came since it was last printed; undefined
     * if it is to be kept back. `nowMs` is of a clock that does not go back.
     */
    toPrint(text: string, nowMs: number): string | undefined;
}
/**
 * Prints events of a host for its operator, except that shards are taken over and released. The same error is
 * printed once a minute.
 */
export declare function hostEventPrinter(output: Output): (event: HostEvent) => void;
//# sourceMappingURL=host-events.d.ts.map