import type { ReplayedModel, ReplayedParameter } from "../../history/replay/replayed-model.ts";
/** A replayed model, and the parameters of it that go into a file. */
export interface ModelToWrite {
    readonly model: ReplayedModel;
    readonly parameters: readonly ReplayedParameter[];
    readonly job: string;
    /** The model's origin, as the file names it. */
    readonly point: string;
}
/** A file that was written. */
export interface WrittenModel {
    readonly file: string;
    readonly bytes: number;
    readonly format: string;
}
/**
 * Checks, before anything is replayed, that a model can be written under this name.
 * @throws BAD_VALUE for an ending that goes with no format, or with one tensor where there may be several;
 * IO if it names no place for a file.
 */
export declare function checkModelTarget(path: string, isOneParameter: boolean): Promise<void>;
/**
 * Writes parameters of a replayed model into a file on this machine, in the format of its ending. It
 * appears whole or not at all.
 * @throws BAD_PATH, IO, DISK_FULL; the reason of `signal`.
 */
export declare function writeModel(path: string, { model, parameters, job, point }: ModelToWrite, signal: AbortSignal): Promise<WrittenModel>;
//# sourceMappingURL=write-model.d.ts.map