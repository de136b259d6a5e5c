import {
  asMap,
  escapeId,
  escapeName,
  type Fields,
  PserverError,
  unescapeName,
} from "../../protocol/index.ts";

/** Version of the records written here. */
export const RECORD_FORMAT = 1;

/** Key of the job's own lifecycle. */
export const JOB_KEY = "job";

/** Key of the counter of sessions. */
export const SESSION_KEY = "session";

/** Key of the session up to which ended ones have been, or are about to be, swept. */
export const SWEPT_KEY = "swept";

/** Key of the members: the trainers that keep step. */
export const MEMBERS_KEY = "members";

/** Prefix of the keys of all parameters. */
export const PARAMETER_KEYS = "param.";

/** Prefix of the keys of all trainers, in the job's bucket and among the leases. */
export const TRAINER_KEYS = "trainer.";

/** Key of a parameter's record. */
export function parameterKey(name: string): string {
  return `${PARAMETER_KEYS}${escapeName(name)}`;
}

/** The parameter that {@link parameterKey} made the key of; @throws BAD_NAME for any other key. */
export function parameterOfKey(key: string): string {
  return unescapeName(key.slice(PARAMETER_KEYS.length));
}

/** Key of a trainer's record, and of its lease. */
export function trainerKey(trainer: string): string {
  return `${TRAINER_KEYS}${escapeId(trainer)}`;
}

/**
 * Reads a record of this format with `parse`.
 * @throws BAD_VERSION for a record of another format, INTERNAL if `parse` throws.
 */
export function readRecord<Result>(
  value: unknown,
  key: string,
  parse: (fields: Fields) => Result,
): Result {
  let format: unknown;
  try {
    const fields = asMap(value, "record");
    format = fields["format"];
    if (format === RECORD_FORMAT) return parse(fields);
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    throw new PserverError("INTERNAL", `record ${key} is damaged: ${text}`, { key }, { cause });
  }
  throw new PserverError(
    "BAD_VERSION",
    `record ${key}: expected format ${RECORD_FORMAT}; received ${String(format)}`,
    { key, expected: RECORD_FORMAT, received: format },
  );
}
