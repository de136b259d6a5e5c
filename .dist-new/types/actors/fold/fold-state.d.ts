import { type Synchronization } from "../../protocol/config/index.ts";
import { type RulesRecord } from "../../protocol/messages/host-records.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import { type Block, type BlockHeader } from "./block-actor.ts";
import { BlockTable, type ShardHooks } from "./block-table.ts";
import { DeclarationTable, type DeclaredParameter } from "./declaration-table.ts";
import type { KnownRules, Rules } from "./rules.ts";
import { type SavedSteps, StepTable } from "./step-table.ts";
import { type CountRow, type TrainerEntry, TrainerTable, UnreadableCounts } from "./trainer-table.ts";
declare const FORMAT = 1;
/** A trainer in a saved state: id, session, done, and its outcomes in the order of the journal. */
type TrainerRow = readonly [
    trainer: string,
    session: number,
    done: number,
    outcomes: readonly (readonly (number | string)[])[]
];
/**
 * The state of a shard without its values, as plain data for `packValue`. Equal states have equal
 * bytes: trainers and blocks are sorted, outcomes are in the order of the journal.
 */
export interface FoldState {
    readonly format: typeof FORMAT;
    /** Sequence of the last record folded; 0 before the first. */
    readonly seq: number;
    /** Checksum in that record's envelope; 0 if it could not be read. */
    readonly crc: number;
    /** Version of the rules; 0 before the first `rules` record. */
    readonly rules: number;
    /** How the job's trainers are synchronized; `async` before the first `rules` record. */
    readonly synchronization: Synchronization;
    /** Absent in `async`. */
    readonly steps?: SavedSteps;
    readonly floor: number;
    /** Records that could not be read. */
    readonly unreadable: number;
    readonly trainers: readonly TrainerRow[];
    readonly blocks: readonly BlockHeader[];
    /** Parameters that hosts have declared, by name; absent if there are none. */
    readonly declared?: readonly DeclaredParameter[];
    /** Sessions up to the floor that have not ended, ascending; absent if there are none. */
    readonly live?: readonly number[];
    /** Sessions with more rejected records than applied ones, by trainer; absent if there are none. */
    readonly rejected?: readonly CountRow[];
    /** Unreadable records by the trainer in their subjects, of some trainers; absent if none. */
    readonly unreadableOf?: readonly CountRow[];
}
/** A state read by {@link parseFoldState}. */
export interface RestoredState extends Omit<FoldState, "format" | "trainers" | "rejected" | keyof OptionalEntries>, OptionalEntries {
    readonly trainers: readonly (readonly [trainer: string, entry: TrainerEntry])[];
}
/** Entries that a saved state leaves out if they are empty. */
interface OptionalEntries {
    readonly declared: readonly DeclaredParameter[];
    readonly live: readonly number[];
    readonly unreadableOf: readonly CountRow[];
}
/**
 * Reads a saved state and checks each entry by itself; the tables check whether they fit together.
 * @throws SNAPSHOT_DAMAGED with the name of the wrong entry.
 */
export declare function parseFoldState(state: unknown): RestoredState;
/** Tracks which values and slots of restored blocks have not been loaded yet. */
export declare class UnloadedSlots {
    #private;
    /** Expects all slots of this block. */
    expect(block: Block): void;
    /**
     * Copies bytes into a slot of a block.
     * @throws SNAPSHOT_DAMAGED if there is no such slot, or it has another length.
     */
    load(block: Block, slot: number, bytes: Uint8Array): void;
    /** @throws SNAPSHOT_DAMAGED if a slot has not been loaded. */
    check(): void;
}
/** Holds the whole state of a fold between two records; saves and restores it. */
export declare class FoldTables {
    #private;
    /** Sequence of the last record folded; 0 before the first. */
    seq: number;
    /** Checksum in the envelope of record {@link seq}; 0 if there is no such record, or it is unreadable. */
    crc: number;
    /** Whether sequence {@link seq} is known to have a record. */
    endsWithRecord: boolean;
    /** Checksum of the journal up to {@link seq}. It describes what was folded, so it is no part of the state. */
    readonly sums: Uint32Array;
    /** Rules in force; undefined before the first `rules` record. */
    rules: Rules | undefined;
    readonly blocks: BlockTable;
    trainers: TrainerTable;
    steps: StepTable;
    readonly declarations: DeclarationTable;
    unreadable: UnreadableCounts;
    readonly unloaded: UnloadedSlots;
    constructor(options: {
        readonly shard: number;
        readonly memory: ShardMemory;
        readonly hooks: ShardHooks;
        readonly knownRules: KnownRules;
    });
    /**
     * Puts the rules of a `rules` record into force. Only the first such record sets the synchronization, because the
     * slots of blocks depend on it.
     * @throws UNKNOWN_RULES if this program lacks the version.
     */
    takeRules({ rules: version, synchronization, }: Pick<RulesRecord, "rules" | "synchronization">): Rules;
    /** The state without values and slots; equal tables give equal bytes. */
    save(): FoldState;
    /** Moves before record 1 of a new journal; known outcomes move to record 0. */
    restartJournal(): void;
    /** Moves to a sequence without a record, so that there is no checksum of a last record. */
    moveTo(seq: number): void;
    /** Moves before record 1 of a new journal. */
    moveToBeginning(): void;
    /**
     * Turns these into the first tables of another job's shard: before record 1, with the same rules, blocks, optimizer
     * slots and declarations, but without trainers, outcomes and steps. Discards the gradients of an open step.
     * @returns the number of blocks whose open step was discarded.
     */
    detach(): number;
    /** SHA-256, in hex, of the state, all values and slots: equal exactly if the tables are. */
    digest(): string;
    /**
     * Restores a saved state into empty tables, without the bytes of blocks: {@link loadSlot} brings those.
     * @throws SNAPSHOT_DAMAGED if the state contradicts itself; UNKNOWN_RULES.
     */
    restore(state: unknown): void;
    /**
     * Copies bytes into a slot of a restored block.
     * @throws SNAPSHOT_DAMAGED if there is no such slot, or it has another length.
     */
    loadSlot(parameter: string, index: number, slot: number, bytes: Uint8Array): void;
}
export {};
//# sourceMappingURL=fold-state.d.ts.map