import {
  CLOCK_LEAD_STEPS,
  DECLARED_MAX,
  REFUSED_RECORDS_MAX,
  SHARD_BYTES_MAX,
  TRAINERS_MAX,
  WINDOW_RECORDS,
} from "../../protocol/limits.ts";
import type { HostVerb } from "../../protocol/subjects.ts";

/**
 * One version of the fold. Whatever can change the outcome of a record belongs to it: the order
 * and meaning of the checks, the conditions of a refusal, the arithmetic, and these limits. A
 * released version never changes.
 */
export interface Rules {
  readonly version: number;
  /** Records of one session beyond `done` that may be unsettled or remembered. */
  readonly windowRecords: number;
  /** Trainers the shard remembers. */
  readonly trainersMax: number;
  /** Bytes of values and slots of all blocks together. */
  readonly shardBytesMax: number;
  /** Blocks, whatever their size: each also costs some hundred bytes outside the values. */
  readonly blocksMax: number;
  /** What holds trainers to what hosts have told the journal; absent in version 1. */
  readonly bounds?: TrainerBounds;
}

/**
 * What version 2 adds: hosts declare parameters and end sessions one by one, an `init` has to be one
 * that was declared, and trainers cannot name steps that nobody can have come to.
 */
export interface TrainerBounds {
  /** Parameters that the shard knows of. */
  readonly declaredMax: number;
  /** Steps that a clock may be ahead of the last closed one and of the member's clock before. */
  readonly clockLeadSteps: number;
  /** Refused records of a session, beyond those applied, after which no more of it is looked at. */
  readonly refusedMax: number;
  /** Trainers of whom the shard counts unreadable records, each by itself. */
  readonly unreadableTrainersMax: number;
}

/** Verbs of host records that came with version 2: to version 1 they are none. */
export const HOST_VERBS_SINCE_2: readonly HostVerb[] = ["declare", "sessions", "forget"];

/** Rules by their version. */
export type KnownRules = ReadonlyMap<number, Rules>;

/** The version that a new job gets; all its journals begin with it. */
export const CURRENT_RULES = 2;

const FIRST: Rules = {
  version: 1,
  windowRecords: WINDOW_RECORDS,
  trainersMax: TRAINERS_MAX,
  shardBytesMax: SHARD_BYTES_MAX,
  blocksMax: 262_144,
};

/** All versions this program can fold. */
export const KNOWN_RULES: KnownRules = new Map([
  [1, FIRST],
  [
    2,
    {
      ...FIRST,
      version: 2,
      bounds: {
        declaredMax: DECLARED_MAX,
        clockLeadSteps: CLOCK_LEAD_STEPS,
        refusedMax: REFUSED_RECORDS_MAX,
        unreadableTrainersMax: 1_024,
      },
    },
  ],
]);
