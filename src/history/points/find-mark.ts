import { readable, readRecordMessage } from "../../actors/fold/read-record.ts";
import {
  BATCH_HEAD_BYTES_MAX,
  JobSubjects,
  NOTE_SHARD,
  PserverError,
  parseNote,
} from "../../protocol/index.ts";
import type { HistorySource, TimedRecord } from "../source.ts";
import type { FoundRecord } from "./find-update.ts";

/** Name of the entry that names a note. */
const MARK_ENTRY = "mark";

/**
 * Finds the newest note that is named so, in all that is kept.
 * @throws BAD_VALUE if there is none; what the source throws; the reason of the signal.
 */
export async function findMark(
  source: HistorySource,
  name: string,
  signal: AbortSignal,
): Promise<FoundRecord> {
  const history = source.shard(NOTE_SHARD);
  const subjects = new JobSubjects(source.job);
  let found: FoundRecord | undefined;
  for (const { generation, firstSeq, lastSeq } of await history.spans()) {
    const after = { generation, seq: firstSeq - 1 };
    for await (const batch of history.read(after, lastSeq, signal)) {
      const note = batch.findLast((record) => isNamed(subjects, record, name));
      if (note === undefined) continue;
      const { seq, timeMs } = note;
      found = { shard: NOTE_SHARD, position: { generation, seq }, timeMs };
    }
  }
  if (found !== undefined) return found;
  const text = `point mark:${name}: expected a note whose entry "${MARK_ENTRY}" is ${JSON.stringify(name)}; found none`;
  throw new PserverError("BAD_VALUE", text, { received: name });
}

function isNamed(subjects: JobSubjects, { subject, payload }: TimedRecord, name: string): boolean {
  if (!subject.endsWith(".note")) return false;
  if (readable(() => subjects.parseLog(subject))?.by !== "note") return false;
  const message = readRecordMessage(payload, BATCH_HEAD_BYTES_MAX);
  const record = message && readable(() => parseNote(message.fields));
  return record?.note[MARK_ENTRY] === name;
}
