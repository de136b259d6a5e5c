import { GuardedProcess } from "./guarded-process.ts";
import { type Launcher, type TrainerEnd } from "./launch.ts";
import { type LauncherName } from "./run-flags.ts";
/** Dependencies of {@link KeptTrainer}. */
export interface KeptTrainerOptions {
    readonly rank: number;
    readonly trainer: string;
    readonly start: () => GuardedProcess;
    /** Restarts in a row. */
    readonly restartsMax: number;
    readonly onMessage: (text: string) => void;
    /** How long it has after SIGINT, SIGTERM, SIGKILL, and the end of the connection to it. */
    readonly waitsMs?: readonly [number, number, number, number];
}
/** A trainer that is started again under its id when it fails, up to `restartsMax` times in a row. */
export declare class KeptTrainer {
    #private;
    private constructor();
    /** Starts a trainer and keeps it running. */
    static start(options: KeptTrainerOptions): KeptTrainer;
    /** Settles with how it ended for good; undefined if it was stopped. Rejects with IO if it cannot be run. */
    get ended(): Promise<TrainerEnd | undefined>;
    /** Ends it by SIGINT, then SIGTERM, then SIGKILL, with a pause after each; settles when it has ended. */
    stop(): Promise<void>;
}
/** The launcher of each name. */
export declare const LAUNCHERS_BY_NAME: Readonly<Record<LauncherName, Launcher>>;
//# sourceMappingURL=process-launchers.d.ts.map