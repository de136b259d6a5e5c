import { type Allocate, sealMessage } from "../../protocol/codec.ts";
import {
  BATCH_BYTES,
  BATCH_ENTRIES_MAX,
  BATCH_ENTRY_BYTES_MAX,
  BATCH_HEAD_BYTES_MAX,
} from "../../protocol/limits.ts";
import { type BatchItem, draftBatch, paddedBytes } from "../../protocol/messages/batch-records.ts";
import type { RecordHead } from "../../protocol/messages/records.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { Session } from "../shell/session.ts";
import type { EntrySource, Topic, UpdateSource } from "../shell/update-sender.ts";

/** Updates of several blocks of one shard that go in one record. */
class BatchUpdate implements UpdateSource {
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

/** At most as many bytes as the entries of a record's header take that all records have. */
const RECORD_HEAD_BYTES_MAX = 1024;
/** At most as many bytes as a block takes in the header: its row, and the version it was made from. */
const ROW_BYTES_MAX = 34;

/** Dependencies of {@link inBatches}. */
export interface BatchDeps {
  readonly session: Session;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  /** The largest message the broker takes. */
  readonly payloadBytesMax: () => number;
}

/** The updates of one call as {@link fillBatches} joins them. */
export function inBatches(
  updates: readonly UpdateSource[],
  deps: BatchDeps,
): readonly UpdateSource[] {
  const { session, subjects, trainer, payloadBytesMax } = deps;
  return fillBatches(updates, {
    subject: (shard) => subjects.batch(shard, trainer),
    payloadBytesMax: payloadBytesMax(),
    separatesIntegers: session.synchronization.mode === "sync",
  });
}

/** Dependencies and limits of {@link fillBatches}. */
export interface BatchOptions {
  /** Subject of the sender's batches in a shard. */
  readonly subject: (shard: number) => string;
  /** The largest message that the broker takes. */
  readonly payloadBytesMax: number;
  /** Whether gradients of integers go apart from those of floats: they do not wait for a step. */
  readonly separatesIntegers: boolean;
}

/** A batch that is being filled. */
interface OpenBatch {
  /** Place of its first update in the result. */
  readonly place: number;
  readonly first: UpdateSource;
  readonly entries: EntrySource[];
  dataBytes: number;
  headBytes: number;
}

/**
 * The updates of one call with the small ones joined, those of each shard in as few records as the
 * limits of batches admit. A large update stays alone, as does a small one without another. The order
 * is kept within a shard for the small ones, and for the large ones.
 */
export function fillBatches(
  updates: readonly UpdateSource[],
  options: BatchOptions,
): readonly UpdateSource[] {
  const filled: UpdateSource[] = [];
  const open = new Map<number, OpenBatch>();
  for (const update of updates) {
    const { entry } = update;
    if (entry === undefined || entry.entryBytes >= BATCH_ENTRY_BYTES_MAX) {
      filled.push(update);
      continue;
    }
    const key = 2 * update.shard + (options.separatesIntegers && !entry.isFloat ? 1 : 0);
    const batch = open.get(key);
    if (batch === undefined || !add(batch, entry, options)) {
      if (batch !== undefined) close(batch, filled, options);
      open.set(key, begin(update, entry, filled.length));
      filled.push(update);
    }
  }
  for (const batch of open.values()) close(batch, filled, options);
  return filled;
}

function begin(first: UpdateSource, entry: EntrySource, place: number): OpenBatch {
  const headBytes = RECORD_HEAD_BYTES_MAX + entry.groupBytesMax + ROW_BYTES_MAX;
  return { place, first, entries: [entry], dataBytes: paddedBytes(entry.entryBytes), headBytes };
}

/** Adds an entry, if the limits admit it and its block comes after those of its parameter. */
function add(batch: OpenBatch, entry: EntrySource, { payloadBytesMax }: BatchOptions): boolean {
  const last = batch.entries.at(-1);
  const isSameGroup = last?.parameter === entry.parameter;
  if (isSameGroup && entry.index <= last.index) return false;
  const headBytes = batch.headBytes + ROW_BYTES_MAX + (isSameGroup ? 0 : entry.groupBytesMax);
  const dataBytes = batch.dataBytes + paddedBytes(entry.entryBytes);
  const fits =
    batch.entries.length < BATCH_ENTRIES_MAX &&
    dataBytes <= BATCH_BYTES &&
    headBytes <= BATCH_HEAD_BYTES_MAX &&
    headBytes + dataBytes <= payloadBytesMax;
  if (!fits) return false;
  batch.entries.push(entry);
  batch.dataBytes = dataBytes;
  batch.headBytes = headBytes;
  return true;
}

/** Puts the record of a batch into the place of its first update. */
function close(batch: OpenBatch, filled: UpdateSource[], { subject }: BatchOptions): void {
  const { place, first, entries } = batch;
  if (entries.length === 1) return;
  filled[place] = new BatchUpdate(subject(first.shard), first.shard, entries);
}
