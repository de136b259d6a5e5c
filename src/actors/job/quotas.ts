import { asMap, DECLARED_MAX, integerField } from "../../protocol/index.ts";

/** More than the shards of any job can hold, so that by default only the shards limit a job. */
const HELD_BYTES_MAX = 1024 ** 4;

/** Limits of what a job and each of its trainers may declare; fixed when the job is made. */
export interface Quotas {
  /** Names that were ever declared; 65,536 by default. */
  readonly parametersMax: number;
  /** Bytes of values and optimizer state of all declared parameters; 1 TiB by default. */
  readonly heldBytesMax: number;
  /** The same for one trainer; a parameter counts for the trainer that declared it last. */
  readonly trainerParametersMax: number;
  readonly trainerHeldBytesMax: number;
}

/** The quotas in settings; those of a trainer are the job's by default. */
export function quotasOf(wanted: Partial<Quotas> = {}): Quotas {
  const parametersMax = wanted.parametersMax ?? DECLARED_MAX;
  const heldBytesMax = wanted.heldBytesMax ?? HELD_BYTES_MAX;
  return {
    parametersMax,
    heldBytesMax,
    trainerParametersMax: wanted.trainerParametersMax ?? parametersMax,
    trainerHeldBytesMax: wanted.trainerHeldBytesMax ?? heldBytesMax,
  };
}

/** The quotas in a job's settings; jobs created before quotas existed have the default ones. */
export function parseQuotas(settings: unknown): Quotas {
  const fields = asMap(settings, "settings");
  if (fields["parametersMax"] === undefined) return quotasOf();
  return {
    parametersMax: integerField(fields, "parametersMax", 1),
    heldBytesMax: integerField(fields, "heldBytesMax", 1),
    trainerParametersMax: integerField(fields, "trainerParametersMax", 1),
    trainerHeldBytesMax: integerField(fields, "trainerHeldBytesMax", 1),
  };
}
