import { ensureError, type PserverError } from "../../protocol/index.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
import type { Settled, Shard } from "../fold/shard.ts";
import type { JournalGap } from "./journal-gap.ts";
import { MismatchedRecords } from "./mismatched-records.ts";

/** Bytes that the broker stores for a record beside its subject and payload. */
const RECORD_OVERHEAD_BYTES = 30;

/** Why a {@link FoldQueue} stopped folding. */
export type FoldStop =
  /** All queued records are folded, or the owner does not let it fold now. */
  | { readonly kind: "idle" }
  /** Records are missing before the next queued one. */
  | { readonly kind: "gap"; readonly gap: JournalGap }
  /** The next record does not match its checksum and has to be delivered again. */
  | { readonly kind: "reread" }
  /** Folding cannot go on. */
  | { readonly kind: "failed"; readonly error: PserverError };

const IDLE: FoldStop = { kind: "idle" };
const REREAD: FoldStop = { kind: "reread" };

/** Dependencies of {@link FoldQueue}. */
export interface FoldQueueDeps {
  readonly shard: Pick<Shard, "seq" | "apply">;
  /** Whether the next record may be folded; asked before each. */
  readonly mayFold: () => boolean;
  readonly onSettled: (settled: Settled) => void;
}

/**
 * Folds the records of a journal in order, each as soon as it may be, and tells what has to happen
 * before the next one. Does no I/O.
 *
 * A record that does not match its checksum is folded, as unreadable, only when it has come twice
 * with the same bytes: then it is stored like that, and every replica folds the same.
 */
export class FoldQueue {
  readonly #deps: FoldQueueDeps;
  readonly #mismatched: MismatchedRecords = new MismatchedRecords();
  #records: JournalRecord[] = [];
  #foldedRecords = 0;
  #foldedBytes = 0;

  constructor(deps: FoldQueueDeps) {
    this.#deps = deps;
  }

  /** Sequence of the first record that has to be read after {@link clear}. */
  get startSeq(): number {
    return this.#deps.shard.seq + 1;
  }

  /** Number of records folded so far. */
  get foldedRecords(): number {
    return this.#foldedRecords;
  }

  /** Bytes of those records in the stream. */
  get foldedBytes(): number {
    return this.#foldedBytes;
  }

  /** Adds a record as it was delivered; {@link keepPayload} must follow once {@link fold} was called. */
  add(record: JournalRecord): void {
    this.#records.push(record);
  }

  /** Copies the payload of the record added last if it is still queued: its buffer is only lent. */
  keepPayload(record: JournalRecord): void {
    if (this.#records.at(-1) !== record) return;
    this.#records[this.#records.length - 1] = {
      ...record,
      payload: Uint8Array.from(record.payload),
    };
  }

  /** Forgets the queued records; they have to be read again. */
  clear(): void {
    this.#records = [];
  }

  /** Folds queued records as far as possible. */
  fold(): FoldStop {
    let stop = IDLE;
    let folded = 0;
    const { shard, mayFold } = this.#deps;
    for (const record of this.#records) {
      if (!mayFold()) break;
      stop = this.#isAfterGap(record)
        ? { kind: "gap", gap: { from: shard.seq + 1, to: record.seq - 1 } }
        : this.#apply(record);
      if (stop !== IDLE) break;
      folded += 1;
    }
    // `mayFold` may have cleared the queue.
    this.#records = folded >= this.#records.length ? [] : this.#records.slice(folded);
    return stop;
  }

  /**
   * Remembers which queued records do not match their checksums, to compare them when they are
   * delivered again; false if one of them never comes twice with the same bytes.
   */
  rememberMismatched(): boolean {
    return this.#mismatched.remember(this.#records);
  }

  #isAfterGap({ seq }: JournalRecord): boolean {
    return seq > this.#deps.shard.seq + 1;
  }

  #apply(record: JournalRecord): FoldStop {
    const { shard, onSettled } = this.#deps;
    const { seq, subject, payload, timeMs = 0 } = record;
    const reread = this.#mismatched.isConfirmedBy(record);
    try {
      const settled = shard.apply({ seq, subject, payload, reread, timeMs });
      if (settled !== undefined) onSettled(settled);
    } catch (error) {
      const found = ensureError(error);
      return found.code === "BAD_CHECKSUM" && !reread ? REREAD : { kind: "failed", error: found };
    }
    this.#foldedRecords += 1;
    this.#foldedBytes += payload.length + subject.length + RECORD_OVERHEAD_BYTES;
    return IDLE;
  }
}
