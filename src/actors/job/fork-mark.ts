import { asMap, integerField, listField, SHARDS_MAX, textField } from "../../protocol/index.ts";
import { type Position, parsePosition } from "../../protocol/position.ts";

/** Entry of the settings of a job that was made from a point of another job's history. */
export interface ForkMark {
  /** The other job. */
  readonly of: string;
  /** When it was made, in milliseconds since 1970. */
  readonly madeMs: number;
  /** Position of each shard of the other job that the shards of this one begin with. */
  readonly at: readonly Position[];
  /** Token of the run that is making it; absent once it is complete. No host joins it before. */
  readonly pending?: string;
}

const FORK = "fork";

/** Settings with a fork's mark, in place of any that they bear. */
export function withForkMark(settings: object, mark: ForkMark): unknown {
  return { ...settings, [FORK]: mark };
}

/** The mark that stored settings bear; undefined without one. @throws BAD_MESSAGE if it is malformed. */
export function forkMarkOf(stored: unknown): ForkMark | undefined {
  const entry = asMap(stored, "settings")[FORK];
  if (entry === undefined) return undefined;
  const fields = asMap(entry, FORK);
  return {
    of: textField(fields, "of"),
    madeMs: integerField(fields, "madeMs"),
    at: listField(fields, "at", SHARDS_MAX).map((at) => parsePosition(asMap(at, "at"))),
    ...(fields["pending"] === undefined ? {} : { pending: textField(fields, "pending") }),
  };
}

/** Whether stored settings are of a fork that is being made, or whose making was interrupted. */
export function isPendingFork(stored: unknown): boolean {
  return forkMarkOf(stored)?.pending !== undefined;
}
