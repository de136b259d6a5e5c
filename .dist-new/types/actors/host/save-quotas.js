import { defined } from "../../protocol/fields.js";
/** Returns the limits among the options of a host. */
export function saveQuotasOf(options) {
    const { savesMax, trainerSavesMax, saveBytesMax, trainerSaveBytesMax } = options;
    return defined({ savesMax, trainerSavesMax, saveBytesMax, trainerSaveBytesMax });
}
/** Models that a job may have saved by default, and one trainer of it. */
export const SAVES_MAX = 16_384;
export const TRAINER_SAVES_MAX = SAVES_MAX / 4;
//# sourceMappingURL=save-quotas.js.map