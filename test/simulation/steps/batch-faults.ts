import { decodeMessage } from "../../../src/protocol/codec.ts";
import { parseBatch } from "../../../src/protocol/messages/batch-records.ts";
import { parseRecordHeader } from "../../../src/protocol/messages/records.ts";
import { SUBJECTS } from "../intents.ts";
import { batchOf, ELEMENTS, type Entry, PARAMETERS } from "./records.ts";

/**
 * Batches of which only the first entry is applied; whose entries are applied twice; or that are applied after the
 * record behind them.
 */
export type BatchFault = "half" | "twice" | "late";

export function isBatch({ subject }: Entry): boolean {
  return SUBJECTS.parseLog(subject).by === "batch";
}

/** An entry with the effect that folding it has with this fault. */
export function damagedBatch(entry: Entry, fault: "half" | "twice"): Entry {
  if (!isBatch(entry)) return entry;
  const message = decodeMessage(entry.payload);
  const { step } = parseBatch(message, PARAMETERS.length);
  const values = new Float32Array(ELEMENTS);
  values[elementOf(entry)] = fault === "twice" ? 2 : 1;
  const parameters = fault === "half" ? PARAMETERS.slice(0, 1) : PARAMETERS;
  return {
    ...entry,
    payload: batchOf(parseRecordHeader(message.fields), step, values, parameters),
  };
}

function elementOf({ intent }: Entry): number {
  return intent.by === "trainer" ? (intent.element ?? 0) : 0;
}
