import { type BatchItem, draftBatch, paddedBytes } from "../../protocol/batch-records.ts";
import { type Allocate, sealMessage } from "../../protocol/codec.ts";
import type { RecordHead } from "../../protocol/records.ts";
import type { EntrySource, Topic, UpdateSource } from "../shell/update-source.ts";

/** Updates of several blocks of one shard that go in one record. */
export class BatchUpdate implements UpdateSource {
  readonly subject: string;
  readonly shard: number;
  readonly topic: Topic;
  readonly blocks: number;
  readonly dataBytes: number;
  readonly #entries: readonly EntrySource[];

  /** `subject`: that of the sender's batches in the shard. */
  constructor(subject: string, shard: number, entries: readonly EntrySource[]) {
    this.subject = subject;
    this.shard = shard;
    this.#entries = entries;
    this.topic = { kind: "blocks", blocks: entries };
    this.blocks = entries.length;
    this.dataBytes = entries.reduce((sum, { entryBytes }) => sum + paddedBytes(entryBytes), 0);
  }

  get namesVersion(): boolean {
    return this.#entries.some(({ namesVersion }) => namesVersion);
  }

  draft(head: RecordHead, namesVersion: boolean, allocate?: Allocate): Uint8Array {
    const items = this.#entries.map((entry): BatchItem => {
      const { parameter, index, entryBytes: dataBytes } = entry;
      const record = entry.record(head, namesVersion && entry.namesVersion);
      return { parameter, index, record, dataBytes };
    });
    const draft = draftBatch(head, items, allocate);
    let at = 0;
    for (const entry of this.#entries) {
      const { entryBytes } = entry;
      entry.writeEntry(draft.data.subarray(at, at + entryBytes));
      at += paddedBytes(entryBytes);
    }
    return sealMessage(draft);
  }
}
