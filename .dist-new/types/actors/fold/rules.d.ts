/**
 * One version of the fold. Everything that affects the outcome of a record is part of it: the order
 * and meaning of the checks, the texts of rejections, the arithmetic, and these limits. A released
 * version never changes.
 */
export interface Rules {
    readonly version: number;
    /** Limit of a session's records above `done`, unsettled or remembered. */
    readonly windowRecords: number;
    /** Limit of remembered trainers. */
    readonly trainersMax: number;
    /** Limit of the bytes of values and slots of all blocks together. */
    readonly shardBytesMax: number;
    /** Limit of the number of blocks: each takes some hundred bytes besides its values. */
    readonly blocksMax: number;
    /** Limit of declared parameters. */
    readonly declaredMax: number;
    /** How many steps a clock may be ahead of the last closed step or of the member's previous clock. */
    readonly clockLeadSteps: number;
    /** Limit of the work on a session's rejected records less that on its applied ones; then all others get QUOTA. */
    readonly rejectedMax: number;
    /** Limit of trainers with a count of unreadable records of their own. */
    readonly unreadableTrainersMax: number;
    /** Limit of the entries of one batch. */
    readonly batchEntriesMax: number;
    /** Limit of a batch's bytes before its tensor bytes. */
    readonly batchHeaderBytesMax: number;
    /** Limit of a note's bytes. */
    readonly noteBytesMax: number;
}
/** Rules by their version. */
export type KnownRules = ReadonlyMap<number, Rules>;
/** Version 1 of the rules. */
export declare const RULES_1: Rules;
/** All versions this program can fold. */
export declare const KNOWN_RULES: KnownRules;
/** Version for new jobs; the first record of each of their journals names it. */
export declare const CURRENT_RULES: number;
//# sourceMappingURL=rules.d.ts.map