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
import type { HostVerb } from "../../protocol/subjects.ts";

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
  /** Limits based on records of hosts; absent in version 1. */
  readonly bounds?: TrainerBounds;
  /** Limits of batch records; absent where their subject is unknown, before version 3. */
  readonly batches?: BatchBounds;
  /** Limits of notes; absent where their subject is unknown, before version 4. */
  readonly notes?: NoteBounds;
}

/**
 * Limits added by version 2: hosts declare parameters and end sessions one by one, an `init` must
 * match a declaration, and clocks cannot run arbitrarily far ahead.
 */
interface TrainerBounds {
  /** Declared parameters. */
  readonly declaredMax: number;
  /** Steps that a clock may be ahead of the last closed step or of the member's previous clock. */
  readonly clockLeadSteps: number;
  /** Rejected less applied records of a session, from which on all its records get QUOTA. */
  readonly refusedMax: number;
  /** Trainers with an own count of unreadable records. */
  readonly unreadableTrainersMax: number;
}

/** Limits added by version 3, which takes records about many blocks. */
interface BatchBounds {
  /** Blocks of one record. */
  readonly entriesMax: number;
  /** Bytes of a record before its tensor bytes. */
  readonly headBytesMax: number;
}

/** Limits added by version 4, which takes notes. */
interface NoteBounds {
  /** Bytes of a record, which has no tensor bytes. */
  readonly headBytesMax: number;
}

/** Verbs of host records that version 1 does not know. */
export const HOST_VERBS_SINCE_2: readonly HostVerb[] = ["declare", "sessions", "forget"];

/** Rules by their version. */
export type KnownRules = ReadonlyMap<number, Rules>;

/** Version for new jobs; the first record of each of their journals names it. */
export const CURRENT_RULES = 4;

/** The first version from which a job can be upgraded: before it, shards were not told what is declared. */
export const UPGRADABLE_RULES_MIN = 2;

const FIRST: Rules = {
  version: 1,
  windowRecords: WINDOW_RECORDS,
  trainersMax: TRAINERS_MAX,
  shardBytesMax: SHARD_BYTES_MAX,
  blocksMax: 262_144,
};

const SECOND: Rules = {
  ...FIRST,
  version: 2,
  bounds: {
    declaredMax: DECLARED_MAX,
    clockLeadSteps: CLOCK_LEAD_STEPS,
    refusedMax: REFUSED_RECORDS_MAX,
    unreadableTrainersMax: 1_024,
  },
};

const THIRD: Rules = {
  ...SECOND,
  version: 3,
  batches: { entriesMax: BATCH_ENTRIES_MAX, headBytesMax: BATCH_HEAD_BYTES_MAX },
};

const FOURTH: Rules = {
  ...THIRD,
  version: 4,
  notes: { headBytesMax: NOTE_RECORD_BYTES_MAX },
};

/** All versions this program can fold. */
export const KNOWN_RULES: KnownRules = new Map([
  [1, FIRST],
  [2, SECOND],
  [3, THIRD],
  [4, FOURTH],
]);
