import type { Message } from "../../protocol/codec.ts";
import { type readPartIndex } from "../../protocol/messages/parts.ts";
import { type RecordHeader, type TrainerRecord } from "../../protocol/messages/records.ts";
import type { LogSubject } from "../../protocol/subjects.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import { type Change } from "./apply-update.ts";
import { type BlockName } from "./block-actor.ts";
import type { BlockTable } from "./block-table.ts";
import type { DeclarationTable } from "./declaration-table.ts";
import type { Rules } from "./rules.ts";
import type { StepTable } from "./step-table.ts";
/** The state that a record is checked against, and what is known of the record. */
export interface RecordContext {
    readonly memory: ShardMemory;
    readonly blocks: BlockTable;
    readonly rules: Rules;
    readonly steps: StepTable;
    readonly declarations: DeclarationTable;
    /** Sender of the record. */
    readonly trainer: string;
    /** Whether the record asks for no answer, or for one to the trainer's own inbox. */
    readonly isAnswerable: boolean;
    /** Reads the index of a part; in a batch it is packed. */
    readonly readIndex: typeof readPartIndex;
    /** What the entries of the batch checked so far will add to the shard. */
    readonly added: AddedBlocks;
    /** Whether elements are measured while they are checked, for an observer of the fold. */
    readonly measures?: boolean;
}
/** Blocks that entries of a batch will create: the entries are checked, but not applied yet. */
interface AddedBlocks {
    /** Bytes of their values and slots, less the bytes of the blocks that they replace. */
    bytes: number;
    /** Number of blocks, without those that replace one. */
    count: number;
}
/**
 * Checks a record against the state, in the order: epoch, step, fit, configuration. Changes nothing.
 * @throws the rejection, with a code and a message that names expected and received.
 */
export declare function checkRecord(context: RecordContext, name: BlockName, record: TrainerRecord, data: Uint8Array): Change;
/** @throws BAD_REPLY if a record asks for an answer to a subject outside its trainer's inbox. */
export declare function checkReply({ isAnswerable }: RecordContext, reply: string): void;
/**
 * Returns the changes that a trainer's record makes: one, or for a batch one for each of its entries, which name
 * different blocks. Every check is made before any change is applied, so a batch is one transaction.
 * @throws the rejection; for a batch it names the block, or the malformed entry.
 */
export declare function checkUpdate(context: RecordContext, subject: Extract<LogSubject, {
    by: "trainer" | "batch";
}>, header: RecordHeader, message: Message): Change[];
export {};
//# sourceMappingURL=check-update.d.ts.map