import {
  BATCH_ENTRIES_MAX,
  BATCH_HEAD_BYTES_MAX,
  CLOCK_LEAD_STEPS,
  DECLARED_MAX,
  GUARD_NORMS_MAX,
  KEPT_CONTRIBUTION_BYTES_MAX,
  REJECTED_WORK_MAX,
  SHARD_BYTES_MAX,
  TRAINERS_MAX,
  WINDOW_RECORDS,
} from "../../protocol/limits.ts";
import { NOTE_RECORD_BYTES_MAX } from "../../protocol/messages/records.ts";

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
  /** Limit of the norms for which the histories of guards have room. */
  readonly guardNormsMax: number;
  /** Limit of the bytes of contributions that are kept: incomplete ones, and those that open rounds need. */
  readonly keptContributionBytesMax: number;
}

/** Rules by their version. */
export type KnownRules = ReadonlyMap<number, Rules>;

/** Version 1 of the rules. */
export const RULES_1: Rules = {
  version: 1,
  windowRecords: WINDOW_RECORDS,
  trainersMax: TRAINERS_MAX,
  shardBytesMax: SHARD_BYTES_MAX,
  blocksMax: 262_144,
  declaredMax: DECLARED_MAX,
  clockLeadSteps: CLOCK_LEAD_STEPS,
  rejectedMax: REJECTED_WORK_MAX,
  unreadableTrainersMax: 1_024,
  batchEntriesMax: BATCH_ENTRIES_MAX,
  batchHeaderBytesMax: BATCH_HEAD_BYTES_MAX,
  noteBytesMax: NOTE_RECORD_BYTES_MAX,
  guardNormsMax: GUARD_NORMS_MAX,
  keptContributionBytesMax: KEPT_CONTRIBUTION_BYTES_MAX,
};

/** All versions this program can fold. */
export const KNOWN_RULES: KnownRules = new Map([[1, RULES_1]]);

/** Version for new jobs; the first record of each of their journals names it. */
export const CURRENT_RULES: number = RULES_1.version;
