import { SHARD_BYTES_MAX, TRAINERS_MAX, WINDOW_RECORDS } from "../../protocol/limits.ts";

/**
 * One version of the fold. Whatever can change the outcome of a record belongs to it: the order
 * and meaning of the checks, the arithmetic, and these limits. A released version never changes.
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
}

/** Rules by their version. */
export type KnownRules = ReadonlyMap<number, Rules>;

/** The version that a host writes into a new journal. */
export const CURRENT_RULES = 1;

/**
 * All versions this program can fold. Version 1 is not released: it has grown to hold all optimizers,
 * slots, parts, encodings and steps.
 */
export const KNOWN_RULES: KnownRules = new Map([
  [
    1,
    {
      version: 1,
      windowRecords: WINDOW_RECORDS,
      trainersMax: TRAINERS_MAX,
      shardBytesMax: SHARD_BYTES_MAX,
      blocksMax: 262_144,
    },
  ],
]);
