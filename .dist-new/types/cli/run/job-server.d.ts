import type { CliContext } from "../context.ts";
import type { Output } from "../output/output.ts";
import { type JobServer } from "./launch.ts";
import { type RunFlags } from "./run-flags.ts";
/** Whether the run uses a server that already runs. */
export declare function usesRunningServer(flags: RunFlags, environment: CliContext["environment"]): boolean;
/** @throws BAD_VALUE for flags of a new server if the run uses one that already runs. */
export declare function checkServerFlags(flags: RunFlags, environment: CliContext["environment"]): void;
/**
 * Starts the job's server, or connects to the one that already runs; settles when it serves.
 * @throws the error that kept it from starting; NO_BROKER or NO_HOST if a running one does not answer.
 */
export declare function openServer(context: CliContext, output: Output, flags: RunFlags): Promise<JobServer>;
//# sourceMappingURL=job-server.d.ts.map