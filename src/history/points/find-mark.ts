import { readable, readRecordMessage } from "../../actors/fold/read-record.ts";
import type { UpdateEvent } from "../../actors/updates/update-event.ts";
import { JobSubjects, NOTE_SHARD, PserverError, parseNote } from "../../protocol/index.ts";
import type { HistorySource, TimedRecord } from "../source.ts";
import { type FoundRecord, searchShard } from "./search-shard.ts";

/** Name of the entry that names a note. */
const MARK_ENTRY = "mark";

/**
 * Finds the newest note that is named so, in all that is kept of journal and tape.
 * @throws BAD_VALUE if there is none; what the source throws; the reason of the signal.
 */
export async function findMark(
  source: HistorySource,
  name: string,
  signal: AbortSignal,
): Promise<FoundRecord> {
  const subjects = new JobSubjects(source.job);
  const wanted = {
    isEvent: ({ note }: UpdateEvent) => note?.[MARK_ENTRY] === name,
    isRecord: (record: TimedRecord) => isNamed(subjects, record, name),
  };
  const found = await searchShard(source.shard(NOTE_SHARD), wanted, true, signal);
  if (found !== undefined) return found;
  const text = `point mark:${name}: expected a note whose entry "${MARK_ENTRY}" is ${JSON.stringify(name)}; found none`;
  throw new PserverError("BAD_VALUE", text, { received: name });
}

function isNamed(subjects: JobSubjects, { subject, payload }: TimedRecord, name: string): boolean {
  if (!subject.endsWith(".note")) return false;
  if (readable(() => subjects.parseLog(subject))?.by !== "note") return false;
  const message = readRecordMessage(payload);
  const record = message && readable(() => parseNote(message.fields));
  return record?.note[MARK_ENTRY] === name;
}
