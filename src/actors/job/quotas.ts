import { asMap, DECLARED_MAX, integerField } from "../../protocol/index.ts";

/** More than the shards of any job can hold, so that by default they are what bounds a job. */
const HELD_BYTES_MAX = 1024 ** 4;

/** What a job may hold, and each trainer of it may declare; settled when the job is made. */
export interface Quotas {
  /** Names that have been declared, whatever became of them. */
  readonly parametersMax: number;
  /** Bytes of values and optimizer state of all parameters that are declared. */
  readonly heldBytesMax: number;
  /** The same of those that one trainer has declared last. */
  readonly trainerParametersMax: number;
  readonly trainerHeldBytesMax: number;
}

/** The quotas of a new job: those that are wanted, a trainer's by default as the job's. */
export function newQuotas(wanted: Partial<Quotas> = {}): Quotas {
  const parametersMax = wanted.parametersMax ?? DECLARED_MAX;
  const heldBytesMax = wanted.heldBytesMax ?? HELD_BYTES_MAX;
  return {
    parametersMax,
    heldBytesMax,
    trainerParametersMax: wanted.trainerParametersMax ?? parametersMax,
    trainerHeldBytesMax: wanted.trainerHeldBytesMax ?? heldBytesMax,
  };
}

/** The quotas among other settings. */
export function quotasOf(settings: Quotas): Quotas {
  const { parametersMax, heldBytesMax, trainerParametersMax, trainerHeldBytesMax } = settings;
  return { parametersMax, heldBytesMax, trainerParametersMax, trainerHeldBytesMax };
}

/** The quotas in a job's settings; jobs of before there were any have those by default. */
export function parseQuotas(settings: unknown): Quotas {
  const fields = asMap(settings, "settings");
  if (fields["parametersMax"] === undefined) return newQuotas();
  return {
    parametersMax: integerField(fields, "parametersMax", 1),
    heldBytesMax: integerField(fields, "heldBytesMax", 1),
    trainerParametersMax: integerField(fields, "trainerParametersMax", 1),
    trainerHeldBytesMax: integerField(fields, "trainerHeldBytesMax", 1),
  };
}
