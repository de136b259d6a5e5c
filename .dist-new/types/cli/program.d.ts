import { Command } from "commander";
import { type CliContext } from "./context.ts";
import type { Paint } from "./output/colors.ts";
/** How errors of the command line are printed. */
export interface ErrorStyle {
    readonly json: boolean;
    readonly paint: Paint;
}
/** Makes the program `pserver`; parsing runs the sub-command and throws errors of the command line. */
export declare function createProgram(context: CliContext, style: ErrorStyle): Command;
//# sourceMappingURL=program.d.ts.map