import { type ReplayedParameter } from "../../history/replay/replayed-model.ts";
import type { TextFormat } from "../output/colors.ts";
/** Returns the least and the largest version, and the number of updates, of a parameter's blocks. */
export declare function versionsOf({ blocks }: ReplayedParameter): {
    readonly least: number;
    readonly most: number;
    readonly updates: number;
};
/** Returns a replayed parameter as `--json` prints it. */
export declare function parameterEntry(parameter: ReplayedParameter): Readonly<Record<string, unknown>>;
/** Writes replayed parameters as a table. */
export declare function describeModel(parameters: readonly ReplayedParameter[], format: TextFormat): string[];
//# sourceMappingURL=describe-model.d.ts.map