import type { ParameterInfo, StatusReply } from "../../protocol/messages/lifecycle-messages.ts";
import { tensorBytes } from "../../protocol/tensor.ts";
import type { JobAdmin } from "./job-admin.ts";
import type { Participants } from "./participants.ts";

/** The job at one moment, as `pserver status --json` prints it. */
export interface JobStatus extends Participants {
  readonly job: string;
  readonly state: StatusReply["state"];
  readonly epoch: number;
  /** The trainer that initializes or initialized the job; "" if none. */
  readonly by: string;
  readonly parameters: {
    readonly count: number;
    readonly ready: number;
    readonly blocks: number;
    readonly bytes: number;
  };
}

/** Asks the hosts of a job how it is. @throws as the calls of {@link JobAdmin}. */
export async function readJobStatus(admin: JobAdmin, job: string): Promise<JobStatus> {
  const [{ status, parameters }, participants] = await Promise.all([
    admin.statusAndParameters(),
    admin.participants(),
  ]);
  return summarize(job, status, parameters, participants);
}

/** Combines the answers of hosts. */
function summarize(
  job: string,
  { state, epoch, by }: StatusReply,
  parameters: readonly ParameterInfo[],
  participants: Participants,
): JobStatus {
  const sum = (of: (info: ParameterInfo) => number): number =>
    parameters.reduce((total, info) => total + of(info), 0);
  return {
    ...{ job, state, epoch, by },
    parameters: {
      count: parameters.length,
      ready: sum(({ ready }) => (ready ? 1 : 0)),
      blocks: sum(({ layout }) => layout.blocks),
      bytes: sum(({ dtype, shape }) => tensorBytes(dtype, shape)),
    },
    ...participants,
  };
}
