import { type JobArchiverOptions } from "../../history/archive/job-archiver.ts";
import type { CliContext } from "../context.ts";
import { type ConnectionFlags } from "../options/connection-options.ts";
import type { Output, OutputFlags } from "../output/output.ts";
/** Flags of `pserver archive`. */
export interface ArchiveFlags extends ConnectionFlags, OutputFlags {
    readonly job: string;
    readonly once?: boolean;
    readonly check?: boolean;
    readonly grace: number;
}
/**
 * Archives a job into a directory until it is interrupted, or with `--once` only what the job has now.
 * @throws STORE_IN_USE if another process archives into the directory; as {@link BrokerHistory.open},
 * {@link JobArchiver.open} and `copy` do. What was copied stays.
 */
export declare function followJob(context: CliContext, output: Output, directory: string, flags: ArchiveFlags): Promise<void>;
/** Archives a job as {@link followJob} does, from an open history, which it closes. @throws as that does. */
export declare function archiveJob({ signal }: Pick<CliContext, "signal">, output: Output, { job, once, grace }: Pick<ArchiveFlags, "job" | "once" | "grace">, place: Pick<JobArchiverOptions, "source" | "directory" | "lock">): Promise<void>;
//# sourceMappingURL=follow-job.d.ts.map