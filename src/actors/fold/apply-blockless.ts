import type { Fields } from "../../protocol/codec.ts";
import { parseNote } from "../../protocol/notes.ts";
import { parseClock } from "../../protocol/records.ts";
import { checkReply, type RecordContext } from "./check-record.ts";

/**
 * Applies a trainer's record that is about no block: a clock, or a note, which changes nothing.
 * @throws the rejection.
 */
export function applyBlockless(
  context: RecordContext,
  by: "clock" | "note",
  reply: string,
  fields: Fields,
): void {
  if (by === "note") {
    parseNote(fields);
    checkReply(context, reply);
    return;
  }
  const { step } = parseClock(fields);
  checkReply(context, reply);
  context.steps.takeClock(context.trainer, step, context.rules.bounds?.clockLeadSteps);
}
