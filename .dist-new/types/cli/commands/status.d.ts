import type { Command } from "commander";
import { type Participants } from "../../client/admin/participants.ts";
import type { StatusReply } from "../../protocol/messages/lifecycle-messages.ts";
import { type CliContext } from "../context.ts";
import type { TextFormat } from "../output/colors.ts";
/** The job at one moment, as `--json` prints it. */
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
/** Adds the command `pserver status`, which shows the job, its hosts and trainers. */
export declare function registerStatus(program: Command, context: CliContext): void;
/** Writes the status for people. */
export declare function describeStatus(status: JobStatus, format: TextFormat): string[];
//# sourceMappingURL=status.d.ts.map