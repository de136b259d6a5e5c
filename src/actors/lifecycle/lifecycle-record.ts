import {
  asMap,
  integerField,
  type LifecycleState,
  listField,
  PserverError,
  parsePosition,
  SHARDS_MAX,
  textField,
} from "../../protocol/index.ts";
import { type Lifecycle, UNINITIALIZED } from "./machine.ts";

/** Version of the records written here. */
export const RECORD_FORMAT = 1;

const STATES: readonly LifecycleState[] = ["uninitialized", "initializing", "ready"];

/** A lifecycle as its record holds it: `{format, value, context}`, readable JSON. */
export function toLifecycleRecord(lifecycle: Lifecycle): unknown {
  return { format: RECORD_FORMAT, value: lifecycle.state, context: lifecycle.context };
}

/**
 * The lifecycle in a record; a missing record is one in which nothing has happened.
 * @throws BAD_VERSION for a record of another format, INTERNAL for a damaged one.
 */
export function parseLifecycleRecord(value: unknown, key: string): Lifecycle {
  if (value === undefined) return UNINITIALIZED;
  return readRecord(value, key, (fields) => {
    const state = STATES.find((known) => known === textField(fields, "value"));
    if (state === undefined) throw new PserverError("BAD_MESSAGE", "value: no known state");
    const context = asMap(fields["context"], "context");
    const at = listField(context, "at", SHARDS_MAX).map((entry) => {
      const position = asMap(entry, "at");
      return { shard: integerField(position, "shard"), ...parsePosition(position) };
    });
    const epoch = integerField(context, "epoch", state === "uninitialized" ? 0 : 1);
    return {
      state,
      context: {
        epoch,
        trainer: textField(context, "trainer"),
        session: integerField(context, "session"),
        at,
        sealed: integerField(context, "sealed"),
      },
    };
  });
}

/**
 * Reads a record of this format with `parse`.
 * @throws BAD_VERSION for a record of another format, INTERNAL if `parse` refuses it.
 */
export function readRecord<Result>(
  value: unknown,
  key: string,
  parse: (fields: ReturnType<typeof asMap>) => Result,
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
