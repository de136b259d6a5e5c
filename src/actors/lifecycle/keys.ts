import { escapeId, escapeName, unescapeName } from "../../protocol/index.ts";

/** Record of the job's own lifecycle. */
export const JOB_KEY = "job";

/** Counter of sessions. */
export const SESSION_KEY = "session";

/** Up to which session hosts have looked, or are about to, for those that have ended. */
export const SWEPT_KEY = "swept";

/** Record of the members of the job's steps. */
export const MEMBERS_KEY = "members";

/** What the keys of all parameter records begin with. */
export const PARAMETER_KEYS = "param.";

/** What the keys of all trainers begin with, among the records and among the leases. */
export const TRAINER_KEYS = "trainer.";

/** Key of a parameter's record. */
export function parameterKey(name: string): string {
  return `${PARAMETER_KEYS}${escapeName(name)}`;
}

/** The parameter that {@link parameterKey} made the key of; @throws BAD_NAME for any other key. */
export function parameterOfKey(key: string): string {
  return unescapeName(key.slice(PARAMETER_KEYS.length));
}

/** Key of a trainer's session record, and of its lease. */
export function trainerKey(trainer: string): string {
  return `${TRAINER_KEYS}${escapeId(trainer)}`;
}
