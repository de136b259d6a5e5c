import {
  Credit,
  type DeliveredRecord,
  JournalReader,
} from "../../../src/actors/journal/journal-reader.ts";

import type { ReplicaDamage } from "../../../src/actors/journal/replicas.ts";
import { JournalLine } from "../../support/journal-line.ts";

/** A reader on a {@link JournalLine}, and what it delivers and reports. */
export class TestReader {
  readonly line: JournalLine = new JournalLine();
  readonly reader: JournalReader;
  readonly delivered: DeliveredRecord[] = [];
  readonly failed: string[] = [];
  readonly damaged: ReplicaDamage[] = [];
  /** Says where to read on; by default behind the last record delivered, from record 5 on. */
  locate: () => Promise<{ stream: string; startSeq: number }>;
  located = 0;

  /** `window`: records of 100 bytes that may be under way. */
  constructor(window: number, isReplicated = false) {
    this.reader = new JournalReader({
      connection: this.line.connection,
      manager: this.line.manager,
      inboxPrefix: "_INBOX_j.=host.h",
      isReplicated,
      credit: new Credit(100 * window, 100),
    });
    this.locate = () => Promise.resolve({ stream: "PS_j_3", startSeq: this.#next });
  }

  start(): Promise<void> {
    return this.reader.start({
      locate: () => {
        this.located += 1;
        return this.locate();
      },
      onRecord: (record) => this.delivered.push(record),
      onReplicaDamaged: (damage) => this.damaged.push(damage),
      onFailure: ({ code }) => this.failed.push(code),
    });
  }

  /** Delivers records of 100 bytes. */
  records(from: number, to: number): void {
    for (let seq = from; seq <= to; seq++) this.line.record(seq, new Uint8Array(100));
  }

  /** Sizes of the requests for records. */
  get batches(): number[] {
    return this.line.requests.map(({ batch }) => batch);
  }

  get #next(): number {
    return (this.delivered.at(-1)?.seq ?? 4) + 1;
  }
}
