import type { BlockChange, UpdateEvent } from "../../actors/journal/describe-record.ts";
import type { NoteEntries } from "../../protocol/messages/records.ts";
/**
 * Writes hours to milliseconds of a time, in UTC, as `Date.toISOString` does, which takes several times as
 * long.
 */
export declare function clockText(timeMs: number): string;
/** Writes the date of a time, in UTC. */
export declare function dateText(timeMs: number): string;
/** Writes a time in ISO form, with milliseconds, in UTC. */
export declare function dateTimeText(timeMs: number): string;
/** Names shard and record, with the generation unless it is the first, and the entry of a batch: `3:1200.2`. */
export declare function placeText(event: UpdateEvent): string;
/** Names the sender and the number of its record, as a point names them: `trainer-2/8:1042`. */
export declare function senderText({ trainer, session, n }: UpdateEvent): string;
/** Says what an update does: `init`, `set`, `mix 0.5 1`, `grad`, `grad lr 0.1`, `clock 12`, `note`. */
export declare function verbText({ verb, block, step }: UpdateEvent): string;
/** Names the block of an update, and which part of it: `w[0]`, `w[0] 12 rows`. */
export declare function blockText({ block }: UpdateEvent): string;
/** Writes the percentage of zeros among the finite elements. */
export declare function zerosText(block: BlockChange | undefined): string;
/** Writes the bytes of an update's elements. */
export declare function bytesText({ block, bytes }: UpdateEvent): string;
/** Writes the entries of a note: `loss=0.3 step=12 mark="before"`. */
export declare function noteText(note: NoteEntries): string;
/**
 * Says what became of an update, with the reason of a rejection, and why the update is not described if it is
 * not.
 */
export declare function outcomeText(event: UpdateEvent): string;
//# sourceMappingURL=event-text.d.ts.map