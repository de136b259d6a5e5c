import { isSealed } from "../../protocol/codec.ts";
import { ensureError, type Position, type PserverError } from "../../protocol/index.ts";
import { recordAt } from "../record-at.ts";
import type { JournalSpan, ShardHistory, TimedRecord } from "../source.ts";
import { toRecordFrame } from "./segment.ts";
import type { SegmentWriter } from "./segment-writer.ts";

/** Bytes and time after which records are waited for to be on disk. */
const SYNC_BYTES = 32 * 1024 ** 2;
const SYNC_MS = 2_000;

/** Dependencies of {@link RecordCopier}. */
export interface RecordCopierDeps {
  readonly source: Pick<ShardHistory, "shard" | "read">;
  readonly writer: Pick<SegmentWriter, "append" | "sync">;
  /** Spans that the archive has already. */
  readonly archived: readonly JournalSpan[];
  /** Called when more records are on disk. */
  readonly onCopied: () => void;
  /** Called for a record that is missing where it is kept; those before it are copied. */
  readonly onDamaged: (error: PserverError) => void;
}

/** Copies the records of one shard into an archive. */
export class RecordCopier {
  readonly #deps: RecordCopierDeps;
  /** Last record on disk, by generation. */
  readonly #last: Map<number, number>;
  #bytes = 0;

  constructor(deps: RecordCopierDeps) {
    this.#deps = deps;
    this.#last = new Map(deps.archived.map(({ generation, lastSeq }) => [generation, lastSeq]));
  }

  /** The newest record on disk; undefined before the first. */
  get newest(): Position | undefined {
    const generation = Math.max(0, ...this.#last.keys());
    return generation === 0 ? undefined : { generation, seq: this.#last.get(generation) ?? 0 };
  }

  /** Bytes of the payloads copied. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Records of spans that are not on disk yet. */
  behind(spans: readonly JournalSpan[]): number {
    const missing = spans.map((span) => span.lastSeq - this.#nextSeq(span) + 1);
    return missing.reduce((sum, records) => sum + Math.max(0, records), 0);
  }

  /**
   * Copies the records of a span after those that are on disk. Ends early if they are trimmed meanwhile, or
   * one is missing.
   * @throws DISK_FULL, IO; what the source throws, for example NO_BROKER; the reason of `signal`.
   */
  async copy(span: JournalSpan, signal: AbortSignal): Promise<void> {
    const { generation, lastSeq } = span;
    const { source, writer } = this.#deps;
    const firstSeq = this.#nextSeq(span);
    if (firstSeq > lastSeq) return;
    let copied = firstSeq - 1;
    let [unsynced, syncedMs] = [0, performance.now()];
    const sync = async (): Promise<void> => {
      await writer.sync();
      [unsynced, syncedMs] = [0, performance.now()];
      this.#synced(generation, copied, firstSeq);
    };
    try {
      const after = { generation, seq: firstSeq - 1 };
      for await (const batch of source.read(after, lastSeq, signal)) {
        const records = await this.#checked(generation, batch, signal);
        await writer.append(
          records.map((record) => toRecordFrame(source.shard, generation, record)),
        );
        copied = records.at(-1)?.seq ?? copied;
        unsynced += bytesOf(records);
        this.#bytes += bytesOf(records);
        if (unsynced >= SYNC_BYTES || performance.now() - syncedMs >= SYNC_MS) await sync();
      }
    } catch (error) {
      const found = ensureError(error);
      if (found.code === "JOURNAL_DAMAGED") this.#deps.onDamaged(found);
      else if (found.code !== "HISTORY_LOST") throw found;
    }
    await sync();
  }

  /** Whether a span ends before a record that was copied: its journal is another, or was cut off. */
  hasShrunk({ generation, lastSeq }: JournalSpan): boolean {
    return lastSeq < (this.#last.get(generation) ?? 0);
  }

  #synced(generation: number, seq: number, firstSeq: number): void {
    if (seq < firstSeq) return;
    this.#last.set(generation, seq);
    this.#deps.onCopied();
  }

  #nextSeq({ generation, firstSeq }: JournalSpan): number {
    return Math.max(1, firstSeq, (this.#last.get(generation) ?? 0) + 1);
  }

  /** Records as they are stored: one that does not match its checksum may have been damaged on its way. */
  async #checked(
    generation: number,
    batch: readonly TimedRecord[],
    signal: AbortSignal,
  ): Promise<readonly TimedRecord[]> {
    if (batch.every(({ payload }) => isSealed(payload))) return batch;
    const records: TimedRecord[] = [];
    for (const record of batch) {
      records.push(
        isSealed(record.payload) ? record : await this.#readAgain(generation, record, signal),
      );
    }
    return records;
  }

  async #readAgain(
    generation: number,
    record: TimedRecord,
    signal: AbortSignal,
  ): Promise<TimedRecord> {
    try {
      return (await recordAt(this.#deps.source, { generation, seq: record.seq }, signal)) ?? record;
    } catch (error) {
      // It was trimmed meanwhile: as it came is all that is left of it.
      if (ensureError(error).code !== "HISTORY_LOST") throw error;
      return record;
    }
  }
}

function bytesOf(records: readonly TimedRecord[]): number {
  return records.reduce((sum, { payload }) => sum + payload.length, 0);
}
