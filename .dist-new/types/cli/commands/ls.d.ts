import type { Command } from "commander";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import type { BlockVersions } from "../../protocol/messages/reads.ts";
import { type CliContext } from "../context.ts";
import type { TextFormat } from "../output/colors.ts";
/** Adds the command `pserver ls`, which lists the parameters of a job. */
export declare function registerLs(program: Command, context: CliContext): void;
/** A parameter, and the versions of its blocks as far as they are known. */
interface ListedParameter {
    readonly info: ParameterInfo;
    readonly versions: BlockVersions | undefined;
}
/** Returns a parameter as `--json` prints it. */
export declare function listedParameter({ info, versions, }: ListedParameter): Readonly<Record<string, unknown>>;
/** Writes the parameters as a table; cuts the middle out of a name or shape that is too long. */
export declare function describeParameters(parameters: readonly ListedParameter[], format: TextFormat): string[];
export {};
//# sourceMappingURL=ls.d.ts.map