import type { JournalRecord } from "../../src/actors/fold/journal-record.ts";
import type { JournalInfo } from "../../src/actors/journal/journal.ts";
import type { Intent, Publication } from "./intents.ts";

export interface Entry extends JournalRecord {
  readonly intent: Intent;
}

/**
 * The stream of the shard: append order is the order; only the beginning is ever purged. A record
 * that the broker cannot store uses up a sequence all the same.
 */
export class Journal {
  /** Every record there ever was, for the oracles. */
  readonly history: Entry[] = [];
  /** By sequence, from 1; undefined where none was stored. */
  readonly #entries: (Entry | undefined)[] = [];
  #first = 1;

  /** The last sequence, whether it has a record or not. */
  get last(): number {
    return this.#entries.length;
  }

  /** The sequence of the last record. */
  get lastRecord(): number {
    return this.history.at(-1)?.seq ?? 0;
  }

  append(publication: Publication): number {
    const entry = { seq: this.last + 1, ...publication };
    this.history.push(entry);
    this.#entries.push(entry);
    return entry.seq;
  }

  /** The disk is full. */
  refuse(): void {
    this.#entries.push(undefined);
  }

  /** What the broker says of the stream; each record counts as one byte. */
  info(): JournalInfo {
    const left = this.#entries.slice(this.#first - 1);
    const missing = left.flatMap((entry, i) => (entry === undefined ? [this.#first + i] : []));
    return {
      ...{ created: "now", firstSeq: this.#first, lastSeq: this.last, missing, lost: undefined },
      ...{ bytes: left.length - missing.length, bytesMax: 0 },
    };
  }

  /** The record at `seq`; undefined if the stream does not hold it. */
  at(seq: number): Entry | undefined {
    return seq < this.#first ? undefined : this.#entries[seq - 1];
  }

  /** The record at `seq`, or the first one left after it, as a consumer gives it. */
  readFrom(seq: number): Entry | undefined {
    const left = this.#entries.slice(Math.max(seq, this.#first) - 1);
    return left.find((entry) => entry !== undefined);
  }

  purgeBelow(seq: number): void {
    this.#first = Math.max(this.#first, seq);
  }
}
