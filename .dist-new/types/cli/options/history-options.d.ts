import type { Command } from "commander";
import type { OutputFlags } from "../output/output.ts";
import { type ConnectionFlags } from "./connection-options.ts";
/** Flags of a command that reads the history of a job. */
export interface HistoryFlags extends ConnectionFlags, OutputFlags {
    readonly job: string;
    /** Directory of an archive, or a recorded file. */
    readonly archive?: string;
    /** False with `--no-broker`. */
    readonly broker: boolean;
    readonly fromFile?: string;
}
/** Adds the flags of a command that reads the history of a job. */
export declare function addHistoryOptions(command: Command): Command;
/** Adds `--param`, which may be repeated. */
export declare function addParamOption(command: Command): Command;
/** Lines of help about the points that commands take. */
export declare const POINT_HELP: readonly string[];
/** Lines of help about who may read a history. */
export declare const HISTORY_PERMISSIONS: readonly string[];
//# sourceMappingURL=history-options.d.ts.map