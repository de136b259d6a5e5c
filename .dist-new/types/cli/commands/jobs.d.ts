import type { Command } from "commander";
import { type CliContext } from "../context.ts";
import type { TextFormat } from "../output/colors.ts";
type JobDescription = import("../../actors/job/describe-job.ts").JobDescription;
/** Adds the command `pserver jobs`, which lists the jobs that a broker holds, served or not. */
export declare function registerJobs(program: Command, context: CliContext): void;
/** Writes the jobs as a table. */
export declare function describeJobs(jobs: readonly JobDescription[], format: TextFormat): string[];
export {};
//# sourceMappingURL=jobs.d.ts.map