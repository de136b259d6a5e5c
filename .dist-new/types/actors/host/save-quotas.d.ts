/** Limits of the models that trainers save below the model directory of a host; each has a default. */
export interface SaveQuotas {
    /** Models of the job, and of one trainer. */
    readonly savesMax?: number;
    readonly trainerSavesMax?: number;
    /** Bytes of them. */
    readonly saveBytesMax?: number;
    readonly trainerSaveBytesMax?: number;
}
/** Returns the limits among the options of a host. */
export declare function saveQuotasOf(options: SaveQuotas): SaveQuotas;
/** Models that a job may have saved by default, and one trainer of it. */
export declare const SAVES_MAX = 16384;
export declare const TRAINER_SAVES_MAX: number;
//# sourceMappingURL=save-quotas.d.ts.map