import {
  BATCH_ENTRIES_MAX,
  BATCH_HEAD_BYTES_MAX,
  CLOCK_LEAD_STEPS,
  DECLARED_MAX,
  REFUSED_RECORDS_MAX,
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
  /** Records of one session above `done`, unsettled or remembered. */
  readonly windowRecords: number;
  /** Remembered trainers. */
  readonly trainersMax: number;
  /** Bytes of values and slots of all blocks together. */
  readonly shardBytesMax: number;
  /** Blocks of any size: each also takes some hundred bytes outside the values. */
  readonly blocksMax: number;
  /** Declared parameters. */
  readonly declaredMax: number;
  /** Steps that a clock may be ahead of the last closed step or of the member's previous clock. */
  readonly clockLeadSteps: number;
  /** Rejected less applied records of a session, from which on all its records get QUOTA. */
  readonly rejectedMax: number;
  /** Trainers with an own count of unreadable records. */
  readonly unreadableTrainersMax: number;
  /** Blocks of one batch. */
  readonly batchEntriesMax: number;
  /** Bytes of a batch before its tensor bytes. */
  readonly batchHeaderBytesMax: number;
  /** Bytes of a note, which has no tensor bytes. */
  readonly noteBytesMax: number;
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
  rejectedMax: REFUSED_RECORDS_MAX,
  unreadableTrainersMax: 1_024,
  batchEntriesMax: BATCH_ENTRIES_MAX,
  batchHeaderBytesMax: BATCH_HEAD_BYTES_MAX,
  noteBytesMax: NOTE_RECORD_BYTES_MAX,
};

/** All versions this program can fold. */
export const KNOWN_RULES: KnownRules = new Map([[1, RULES_1]]);

/** Version for new jobs; the first record of each of their journals names it. */
export const CURRENT_RULES: number = RULES_1.version;
