import type { Message } from "../../protocol/codec.ts";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import { type BatchEntry, parseBatch } from "../../protocol/parse-batch.ts";
import { parseTrainerRecord, type RecordHead } from "../../protocol/records.ts";
import type { LogSubject } from "../../protocol/subjects.ts";
import { blockLabel } from "./block.ts";
import type { Change } from "./change.ts";
import { checkRecord, type RecordContext } from "./check-record.ts";

/**
 * The changes that a trainer's record makes: one, or, of a batch, one for each of its entries, which name
 * different blocks. Every check is made before any change is applied, so that a batch is one transaction.
 * @throws the rejection; that of a batch names the block, or the entry that is malformed.
 */
export function checkUpdate(
  context: RecordContext,
  subject: Extract<LogSubject, { by: "trainer" | "batch" }>,
  head: RecordHead,
  message: Message,
): Change[] {
  if (subject.by === "batch") return checkBatch(context, head, message);
  const { parameter, index, verb } = subject;
  const record = parseTrainerRecord(verb, head, message);
  return [checkRecord(context, { parameter, index }, record, message.data)];
}

function checkBatch(context: RecordContext, head: RecordHead, message: Message): Change[] {
  const entries = parseBatch(head, message, context.rules.batches?.entriesMax ?? 0);
  return entries.map((entry) => {
    const change = checkEntry(context, entry);
    if (change.kind === "init") noteAdded(context, entry, change.plan.bytes);
    return change;
  });
}

function checkEntry(context: RecordContext, entry: BatchEntry): Change {
  try {
    return checkRecord(context, entry, entry.record, entry.data);
  } catch (cause) {
    const error = ensureError(cause);
    const label = blockLabel(entry.parameter, entry.index);
    if (error.code === "INTERNAL" || error.message.startsWith(label)) throw error;
    throw new PserverError(error.code, `${label}: ${error.message}`, error.details, { cause });
  }
}

/** Counts a block that an entry will create, for the limits that later entries are checked against. */
function noteAdded(
  { blocks, added }: RecordContext,
  { parameter, index, data }: BatchEntry,
  slotBytes: readonly number[],
): void {
  const present = blocks.get(parameter, index);
  added.bytes += slotBytes.reduce((sum, bytes) => sum + bytes, data.length);
  if (present === undefined) added.count += 1;
  else added.bytes -= present.heldBytes;
}
