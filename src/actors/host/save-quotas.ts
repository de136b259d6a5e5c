import { defined } from "../../protocol/fields.ts";

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
export function saveQuotasOf(options: SaveQuotas): SaveQuotas {
  const { savesMax, trainerSavesMax, saveBytesMax, trainerSaveBytesMax } = options;
  return defined({ savesMax, trainerSavesMax, saveBytesMax, trainerSaveBytesMax });
}

/** Models that a job may have saved by default, and one trainer of it. */
export const SAVES_MAX = 16_384;
export const TRAINER_SAVES_MAX = SAVES_MAX / 4;
