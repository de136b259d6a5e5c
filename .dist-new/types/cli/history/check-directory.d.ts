import type { CliContext } from "../context.ts";
import type { Output } from "../output/output.ts";
/** Reads a whole archive and shows what it has; a damaged file makes the exit code 1. */
export declare function checkDirectory(context: CliContext, output: Output, directory: string): Promise<void>;
//# sourceMappingURL=check-directory.d.ts.map