import type { Synchronization } from "../../protocol/config/index.ts";
import type { Outcome, OutcomeRequest } from "../../protocol/messages/outcomes.ts";
import type { KnowledgePage } from "../../protocol/messages/shard-knowledge.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import { ShardMemory } from "../kernel/shard-memory.ts";
import type { Block, BlockName } from "./block-actor.ts";
import type { ShardHooks } from "./block-table.ts";
import { type FoldState } from "./fold-state.ts";
import { type JournalChecksum, type NotedChecksum } from "./journal-checksum.ts";
import { type FoldObserver, type JournalRecord } from "./journal-record.ts";
import { type KnownRules } from "./rules.ts";
import type { StepProgress } from "./step-table.ts";
import { type RememberedSessions, type Senders } from "./trainer-table.ts";
/** The answer to a trainer's record. */
export interface RecordAnswer {
    readonly trainer: string;
    readonly session: number;
    /** Subject of the answer, in the trainer's inbox; "" for no answer. */
    readonly reply: string;
    readonly outcome: Outcome;
}
/** Options of {@link Shard}. */
export interface ShardOptions {
    readonly subjects: JobSubjects;
    /** Number of the shard. Records of other shards count as unreadable. */
    readonly shard: number;
    /** Memory of the values; by default a new one. */
    readonly memory?: ShardMemory;
    readonly hooks?: ShardHooks;
    /** Versions of the rules; by default all that this program knows. */
    readonly knownRules?: KnownRules;
}
/**
 * Folds the journal of a shard, record by record, and holds the state of the shard. Pure and synchronous: the outcome
 * of a record depends only on the records before it, its subject and its payload. A rejected record changes no block.
 */
export declare class Shard {
    #private;
    readonly memory: ShardMemory;
    /** Gets each record with its outcome; undefined for none. No part of the state. */
    observer: FoldObserver | undefined;
    private constructor();
    /** Creates a shard before its first record. */
    static create(options: ShardOptions): Shard;
    /** Callbacks for changes of blocks; replaces those of the options. */
    set hooks(hooks: ShardHooks);
    /** Sequence of the last record folded; 0 before the first. */
    get seq(): number;
    /** Version of the rules in force; 0 before the first `rules` record. */
    get rules(): number;
    /** How the job's trainers are synchronized, from the first `rules` record. */
    get synchronization(): Synchronization;
    /** Progress of the steps of the job's trainers; a live view. */
    get steps(): StepProgress;
    /** Checksum in the envelope of record {@link seq}; 0 before the first and after a skipped gap. */
    get lastCrc(): number;
    /**
     * The checksum of the journal up to {@link seq}: equal if the same records were folded. It is no part of the state;
     * a manifest keeps it, and {@link continueChecksum} restores it.
     */
    get noted(): NotedChecksum;
    /** Whether sequence {@link seq} is known to have a record: not before the first, and not in a skipped gap. */
    get endsWithRecord(): boolean;
    /** Bytes of all values and slots. */
    get valueBytes(): number;
    /** Counts of senders and of their rejected and unreadable records. */
    get senders(): Senders;
    /** How many records the observer could neither observe nor note as failed. */
    get unobserved(): number;
    /** What the shard knows of its job from hosts' records, with up to `count` parameters after a name. */
    known(after: string, count: number): KnowledgePage;
    /** The trainers that the shard remembers; a live view. */
    get trainers(): RememberedSessions;
    /**
     * Folds the next record.
     * @returns the answer to a trainer's record, repeated and rejected ones included; undefined for a
     * host's record and for one without a readable sender.
     * @throws BAD_CHECKSUM, only with `reread: false`, if the payload does not match its checksum. The
     * shard is unchanged. After any other error the shard is unusable: each later call throws it again.
     * @throws JOURNAL_DAMAGED unless the record is the one after {@link seq}, or if records up to it are not those
     * that were folded before, see {@link expect}.
     * @throws UNKNOWN_RULES for a `rules` record of a version this program lacks.
     * @throws TOO_LARGE if this process has no memory for a block that the rules allow.
     * @throws FOLD_FAILED, naming the record, for anything else that goes wrong: a defect of this program.
     */
    apply(record: JournalRecord): RecordAnswer | undefined;
    /**
     * Has the journal compared with checksums noted when it was folded before, ascending, while it is folded on.
     * Replaces those of earlier calls.
     */
    expect(noted: readonly NotedChecksum[]): void;
    /** Whether all expected checksums have been compared. */
    get isCompared(): boolean;
    /** Returns the block of this name; undefined if there is none. */
    block(parameter: string, index: number): Block | undefined;
    /** Returns the block that has this number now; undefined if there is none. */
    blockOfNumber(number: number): Block | undefined;
    /** Returns the name of the block that was declared under this number; undefined if there is none. */
    nameOfNumber(number: number): BlockName | undefined;
    /** Lists all blocks, or those of one parameter, in no particular order. */
    blocks(parameter?: string): Iterable<Block>;
    /**
     * Looks up the outcomes of a trainer's records, in the order of the request. The records must have been folded: an
     * unknown number is BAD_CHECKSUM, because its record was unreadable.
     */
    outcomes(trainer: string, request: Pick<OutcomeRequest, "session" | "numbers">): Outcome[];
    /** The state without values and slots; equal shards give equal bytes. */
    saveState(): FoldState;
    /** Computes the SHA-256, in hex, of the state, all values and slots: equal exactly if the shards are. */
    digest(): string;
    /**
     * Continues with record 1 of a new journal; all else stays. Known outcomes stay valid and move to record 0: with a
     * sequence of the old journal, whoever asks for them would wait for that record in the new one.
     */
    restartJournal(): void;
    /**
     * Turns this into the first state of another job's shard; see {@link FoldTables.detach} for what it drops and
     * returns.
     */
    detach(): number;
    /**
     * Skips the records after {@link seq} up to `seq`, which the journal does not hold and nobody has
     * folded; all else stays.
     * @throws INTERNAL if record `seq` has been folded.
     */
    skipTo(seq: number): void;
    /**
     * Restores the shard that {@link saveState} was called on. `readSlot` returns the bytes of each slot
     * of each block (slot 0: the values), which are copied. Calls `hooks.blockAdded` for every block.
     * @throws SNAPSHOT_DAMAGED if the state contradicts itself or the bytes.
     * @throws UNKNOWN_RULES if this program lacks the rules of the state.
     */
    static restore(options: ShardOptions, state: unknown, readSlot: (block: Block, slot: number) => Uint8Array): Shard;
    /**
     * Restores like {@link restore}, but without bytes: {@link loadSlot} brings them. Until {@link checkLoaded} passes,
     * the shard must not be used for anything else.
     */
    static restoreEmpty(options: ShardOptions, state: unknown): Shard;
    /** Continues a restored shard's journal checksum from the one in its manifest. */
    continueChecksum(checksum: JournalChecksum): void;
    /**
     * Copies bytes into a slot of a restored block.
     * @throws SNAPSHOT_DAMAGED if there is no such slot, or it has another length.
     */
    loadSlot(parameter: string, index: number, slot: number, bytes: Uint8Array): void;
    /** @throws SNAPSHOT_DAMAGED if a slot of a restored block has not been loaded. */
    checkLoaded(): void;
}
/** Computes the SHA-256, in hex, of a shard's state without values and slots. */
export declare function stateDigest(shard: Pick<Shard, "saveState">): string;
/** Computes the SHA-256, in hex, of a block's values and slots. */
export declare function blockDigest(block: Pick<Block, "slots" | "slotBytes">): string;
//# sourceMappingURL=shard.d.ts.map