import { type SaveQuotas } from "./save-quotas.ts";
/** Room for one model, which counts from now on. */
export interface SaveRoom {
    /** Counts the bytes that it has on disk. */
    saved(bytes: number): Promise<void>;
    /** Counts what is there as before. */
    failed(): Promise<void>;
}
/** Dependencies of {@link SavedModels}. */
export interface SavedModelsDeps {
    readonly directory: string;
    readonly job: string;
    readonly quotas: SaveQuotas;
}
/**
 * Counts the models that trainers of a job have saved below a model directory, and bounds them. Each has a record in
 * the directory, a file of its own that says who saved it, so that hosts that share the directory, and later hosts,
 * know of it. A model counts as long as it is there: whoever removes it makes room.
 */
export declare class SavedModels {
    #private;
    constructor(deps: SavedModelsDeps);
    /**
     * Makes room for a model of so many bytes and files. One that replaces another takes its place, whoever saved that.
     * @throws QUOTA naming the limit, what is used, and the flag; BAD_PATH; DISK_FULL, IO.
     */
    reserve(trainer: string, { path, bytes: dataBytes, files }: {
        path: string;
        bytes: number;
        files: number;
    }): Promise<SaveRoom>;
}
//# sourceMappingURL=saved-models.d.ts.map