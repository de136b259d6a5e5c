import type { Message } from "../../protocol/codec.ts";
import type { PserverError } from "../../protocol/errors.ts";
import type { HostRecord } from "../../protocol/host-records.ts";
import type { Outcome } from "../../protocol/outcomes.ts";
import type { RecordHead } from "../../protocol/records.ts";
import type { LogSubject } from "../../protocol/subjects.ts";
import type { Change } from "./change.ts";

/** A record of a journal, and when the broker stored it: milliseconds since 1970, 0 if that is not known. */
interface FoldedPlace {
  readonly seq: number;
  readonly timeMs: number;
}

/** What the fold made of one record. Views of its payload are valid during the call only. */
export type FoldedRecord = FoldedPlace & Folded;

type Folded =
  | {
      readonly kind: "unreadable";
      /** Undefined if the rules in force do not know the subject. */
      readonly subject: LogSubject | undefined;
      readonly payloadBytes: number;
    }
  | { readonly kind: "host"; readonly record: HostRecord }
  | {
      readonly kind: "trainer";
      readonly subject: Exclude<LogSubject, { by: "host" }>;
      readonly head: RecordHead;
      readonly message: Message;
      readonly outcome: Outcome;
      /** Whether an earlier copy of the record was folded; `outcome` may be that of the copy. */
      readonly isRepeat: boolean;
      /** The changes that were made; none of a record that was rejected, a repeat or about no block. */
      readonly changes: readonly Change[];
    };

/**
 * Sees what becomes of each record. It must not change the shard; it may use the scratch of the shard's memory.
 * What it throws does not reach the fold.
 */
export interface FoldObserver {
  /** Called after a record's changes were made, and before the step that it closes is applied. */
  observe(record: FoldedRecord): void;
  /** Called with what {@link observe} has thrown for a record. What this throws is only counted. */
  failed(record: FoldedRecord, error: PserverError): void;
}
