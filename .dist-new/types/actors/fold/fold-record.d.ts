import type { Message } from "../../protocol/codec.ts";
import type { HostRecord } from "../../protocol/messages/host-records.ts";
import type { Outcome } from "../../protocol/messages/outcomes.ts";
import { type RecordHeader } from "../../protocol/messages/records.ts";
import type { LogSubject } from "../../protocol/subjects.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import { type Change } from "./apply-update.ts";
import type { FoldTables } from "./fold-state.ts";
/** The subject of a trainer's record. */
export type TrainerSubject = Exclude<LogSubject, {
    by: "host";
}>;
/** A record of a trainer with its header parsed. */
export interface ParsedRecord {
    readonly header: RecordHeader;
    readonly message: Message;
    /** Whether it asks for no answer, or for one to the trainer's own inbox. */
    readonly isAnswerable: boolean;
}
/** The outcome of a trainer's record, and the changes that it made. */
export interface FoldResult {
    readonly outcome: Outcome;
    readonly changes: readonly Change[];
    /** Whether the outcome is that of an earlier copy of the record. */
    readonly isRepeat: boolean;
}
/** The state that trainers' records are folded into. */
export interface TrainerFold {
    readonly tables: FoldTables;
    readonly memory: ShardMemory;
    /** Whether changes carry statistics, for an observer. */
    readonly measures: boolean;
}
/**
 * Applies or rejects a trainer's record, and remembers its outcome. A repeated record, or one of an ended session,
 * changes nothing.
 * @throws INTERNAL, TOO_LARGE if this process cannot go on.
 */
export declare function foldTrainerRecord(fold: TrainerFold, seq: number, subject: TrainerSubject, received: ParsedRecord): FoldResult;
/**
 * Applies a host's record. Before the first `rules` record, other host records have no effect.
 * @throws UNKNOWN_RULES for a `rules` record of a version this program lacks.
 */
export declare function foldHostRecord(tables: FoldTables, record: HostRecord): void;
//# sourceMappingURL=fold-record.d.ts.map