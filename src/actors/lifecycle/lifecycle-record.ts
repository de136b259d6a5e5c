import {
  asMap,
  type BeginReply,
  integerField,
  type LifecycleState,
  listField,
  PserverError,
  parsePosition,
  SHARDS_MAX,
  textField,
} from "../../protocol/index.ts";
import { BucketRecord } from "./bucket-record.ts";
import { type Lifecycle, UNINITIALIZED } from "./machine.ts";
import { JOB_KEY, RECORD_FORMAT, readRecord } from "./record-format.ts";

const STATES: readonly LifecycleState[] = ["uninitialized", "initializing", "ready"];

/** A lifecycle as its record holds it: `{format, value, context}`, readable JSON. */
export function toLifecycleRecord(lifecycle: Lifecycle): unknown {
  return { format: RECORD_FORMAT, value: lifecycle.state, context: lifecycle.context };
}

/**
 * The lifecycle in a record; {@link UNINITIALIZED} if there is no record.
 * @throws BAD_VERSION for a record of another format, INTERNAL for a damaged one.
 */
export function parseLifecycleRecord(value: unknown, key: string): Lifecycle {
  if (value === undefined) return UNINITIALIZED;
  return readRecord(value, key, (fields) => {
    const state = STATES.find((known) => known === textField(fields, "value"));
    if (state === undefined) throw new PserverError("BAD_MESSAGE", "value: unknown state");
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
        revised: integerField(context, "revised"),
      },
    };
  });
}

/** The record of the job's lifecycle. */
export const jobRecord = new BucketRecord<Lifecycle>(
  JOB_KEY,
  (stored) => parseLifecycleRecord(stored?.value, JOB_KEY),
  toLifecycleRecord,
);

/** Reply to a verb on the lifecycle of a job or of one parameter. */
export function beginReply(lifecycle: Lifecycle, selected: boolean): BeginReply {
  const { epoch, trainer } = lifecycle.context;
  return { selected, state: lifecycle.state, epoch, by: trainer };
}
