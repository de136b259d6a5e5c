import type { ElementBlame, ElementChange, ElementValue } from "../../history/blame.ts";
import type { TextFormat } from "../output/colors.ts";
/** Keeps the largest changes, in their order, so that any number of them takes little memory. */
export declare class TopChanges {
    #private;
    constructor(most: number);
    add(change: ElementChange): void;
    /** The largest changes in the order in which they were added. */
    get changes(): readonly ElementChange[];
    /** Number of changes that were added and are not kept. */
    get leftOut(): number;
}
/** Writes changes as a table. */
export declare function describeChanges(changes: readonly ElementChange[], format: TextFormat): string[];
/** Writes the sums of trainers, or in sync jobs of steps, as a table. */
export declare function describeTotals({ trainers, steps }: ElementBlame, format: TextFormat): string[];
/** Returns a change as `--json` prints it. */
export declare function changeEntry(change: ElementChange): Readonly<Record<string, unknown>>;
/** Returns the sums as `--json` prints them. */
export declare function blameEntry(blame: ElementBlame): Readonly<Record<string, unknown>>;
/** Writes a value for people. */
export declare function valueText(value: ElementValue | undefined): string;
//# sourceMappingURL=blame-table.d.ts.map