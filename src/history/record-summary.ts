import { readable, readRecordMessage } from "../actors/fold/read-record.ts";
import type { UpdateVerb } from "../actors/updates/update-event.ts";
import {
  BATCH_ENTRIES_MAX,
  JobSubjects,
  listField,
  type Position,
  parseHead,
  textField,
} from "../protocol/index.ts";
import type { HistorySource, TimedRecord } from "./source.ts";

/** What a record says of itself. */
export interface RecordSummary {
  readonly verb: UpdateVerb;
  /** Sender with session and number; undefined for a host's record. */
  readonly sender:
    | { readonly trainer: string; readonly session: number; readonly n: number }
    | undefined;
  /** The parameters that it names; of a batch several. */
  readonly parameters: readonly string[];
}

/** Reads the record at a position. @throws what the source throws. */
export async function readRecord(
  source: HistorySource,
  shard: number,
  { generation, seq }: Position,
  signal: AbortSignal,
): Promise<TimedRecord | undefined> {
  const after = { generation, seq: seq - 1 };
  for await (const [record] of source.shard(shard).read(after, seq, signal)) return record;
  return undefined;
}

/** Says what a record of a job is; undefined if its subject is not that of a record. */
export function summarizeRecord(
  job: string,
  { subject, payload }: TimedRecord,
): RecordSummary | undefined {
  const parsed = readable(() => new JobSubjects(job).parseLog(subject));
  if (parsed === undefined) return undefined;
  if (parsed.by === "host") return { verb: parsed.verb, sender: undefined, parameters: [] };
  const message = readRecordMessage(payload);
  const head = message && readable(() => parseHead(message.fields));
  const { trainer } = parsed;
  const sender = head && { trainer, session: head.session, n: head.n };
  if (parsed.by === "trainer") return { verb: parsed.verb, sender, parameters: [parsed.parameter] };
  const groups = message && readable(() => listField(message.fields, "groups", BATCH_ENTRIES_MAX));
  const parameters = (groups ?? []).flatMap(
    (group) => readable(() => textField(group as Record<string, unknown>, "parameter")) ?? [],
  );
  return { verb: parsed.by, sender, parameters };
}
