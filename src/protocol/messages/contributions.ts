import { type Allocate, encodeMessage, type Fields, type Message } from "../codec.ts";
import { isFragmentName } from "../config/parameter-config.ts";
import { PserverError } from "../errors.ts";
import {
  flagField,
  integerField,
  listField,
  mapField,
  numberField,
  textField,
  wordField,
} from "../fields.ts";
import {
  CONTRIBUTION_COUNT_MAX,
  CONTRIBUTION_PARTS_MAX,
  DECLARED_MAX,
  FRAGMENT_NAME_LENGTH_MAX,
} from "../limits.ts";
import { type BatchRun, type DraftBatch, draftBatch } from "./batch-records.ts";
import { throwIfError } from "./outcomes.ts";
import { type Position, parsePosition } from "./position.ts";
import { PULL_WAIT_MS_MAX } from "./reads.ts";
import type { RecordHeader } from "./records.ts";

// A contribution is what a trainer has learned since it received a fragment: for each tensor of the fragment the
// displacement from what it received to what it has now, or what it has now. It is one record, or several parts of
// one, each with whole blocks in the columns of a batch, as gradients without a learning rate.

/** What the elements of a contribution are: what was received less what was learned, or what was learned. */
export const CONTRIBUTION_FORMS = ["displacement", "parameters"] as const;
/** One of {@link CONTRIBUTION_FORMS}. */
export type ContributionForm = (typeof CONTRIBUTION_FORMS)[number];

/** What a contribution is, besides its elements. All its parts say the same but for `part`. */
export interface Contribution {
  readonly fragment: string;
  /** The version of the fragment from which the trainer began. */
  readonly base: number;
  /** Inner steps since then. */
  readonly steps: number;
  /** Tokens, or examples, since then. */
  readonly tokens: number;
  /** How long one of these steps took, in milliseconds; absent if the trainer does not say. */
  readonly stepMs?: number;
  readonly form: ContributionForm;
  /** Number of the contribution; higher than that of any earlier one of the session to the shard. */
  readonly id: number;
  /** Number of this part, from 0. */
  readonly part: number;
  /** Number of parts. */
  readonly parts: number;
}

/** Begins a part of a contribution, as {@link draftBatch} does. */
export function draftContribution(
  header: RecordHeader,
  contribution: Contribution,
  runs: readonly BatchRun[],
  allocate?: Allocate,
): DraftBatch {
  return draftBatch(header, runs, allocate, { contribution: { ...contribution } });
}

/**
 * Reads what a contribution is.
 * @throws BAD_MESSAGE if an entry is missing or malformed.
 */
export function parseContribution(message: Fields): Contribution {
  const fields = mapField(message, "contribution");
  const parts = integerField(fields, "parts", 1, CONTRIBUTION_PARTS_MAX);
  return {
    fragment: fragmentField(fields, "fragment"),
    base: integerField(fields, "base"),
    steps: integerField(fields, "steps", 0, CONTRIBUTION_COUNT_MAX),
    tokens: integerField(fields, "tokens", 0, CONTRIBUTION_COUNT_MAX),
    ...(fields["stepMs"] === undefined ? {} : { stepMs: stepMsField(fields) }),
    form: wordField(fields, "form", CONTRIBUTION_FORMS),
    id: integerField(fields, "id", 1),
    part: integerField(fields, "part", 0, parts - 1),
    parts,
  };
}

function fragmentField(fields: Fields, key: string): string {
  const name = textField(fields, key, FRAGMENT_NAME_LENGTH_MAX);
  if (isFragmentName(name)) return name;
  throw new PserverError("BAD_MESSAGE", `${key}: expected the name of a fragment; received none`);
}

function stepMsField(fields: Fields): number {
  const stepMs = numberField(fields, "stepMs");
  if (Number.isFinite(stepMs) && stepMs >= 0) return stepMs;
  throw new PserverError("BAD_MESSAGE", `stepMs: expected a time from 0 on; received ${stepMs}`);
}

/**
 * Asks a shard for the versions of its fragments, no earlier than a position. With `fragment` and `version` the answer
 * waits until that fragment has had so many rounds closed, and with `member` until the asker is a member.
 */
export interface FragmentsRequest extends Position {
  readonly fragment?: string;
  readonly version?: number;
  readonly member?: boolean;
  readonly waitMs: number;
}

/** Contributions, with the inner steps and tokens that went into them. */
export interface Tally {
  readonly contributions: number;
  readonly steps: number;
  readonly tokens: number;
}

/** The names of the tallies of a trainer's account. */
export const FATES = ["processed", "merged", "late", "dropped"] as const;
/** One of {@link FATES}. */
export type ContributionFate = (typeof FATES)[number];

/**
 * What became of a trainer's contributions to the fragments of a shard: processed are all that were complete. Those
 * that are neither merged, nor merged though they were late, nor dropped are in open rounds.
 */
export type ContributionAccount = Readonly<Record<ContributionFate, Tally>>;

/** A fragment of a shard: its version, and whether the asker may contribute to the round after it. */
export type FragmentRow = readonly [fragment: string, version: number, isSampled: boolean];

/** The fragments of a shard, and the asker's account there. */
export interface FragmentsReply extends Position {
  readonly fragments: readonly FragmentRow[];
  readonly account: ContributionAccount;
}

/** Writes a request for fragments as a message. */
export function encodeFragmentsRequest(request: FragmentsRequest): Uint8Array {
  return encodeMessage({ ...request });
}

/** @throws BAD_MESSAGE if the fields are not a valid request for fragments. */
export function parseFragmentsRequest(fields: Fields): FragmentsRequest {
  const wanted =
    fields["fragment"] === undefined
      ? {}
      : {
          fragment: fragmentField(fields, "fragment"),
          version: integerField(fields, "version"),
          ...(fields["member"] === undefined ? {} : { member: flagField(fields, "member") }),
        };
  return {
    ...parsePosition(fields),
    ...wanted,
    waitMs: integerField(fields, "waitMs", 0, PULL_WAIT_MS_MAX),
  };
}

/** Writes a reply about fragments as a message. */
export function encodeFragmentsReply({ account, ...reply }: FragmentsReply): Uint8Array {
  return encodeMessage({ ...reply, account: accountRows(account) });
}

/** @throws BAD_MESSAGE if the message is no valid reply about fragments, or the error that the message carries. */
export function parseFragmentsReply({ fields }: Message): FragmentsReply {
  throwIfError(fields);
  return {
    ...parsePosition(fields),
    fragments: listField(fields, "fragments", DECLARED_MAX).map((value) => {
      const row: Fields = { ...listField({ row: value }, "row", 3) };
      return [fragmentField(row, "0"), integerField(row, "1"), flagField(row, "2")] as const;
    }),
    account: parseAccount(listField(fields, "account", FATES.length)),
  };
}

const NO_TALLY: Tally = { contributions: 0, steps: 0, tokens: 0 };

/** The account of somebody who has contributed nothing. */
export const NO_ACCOUNT: ContributionAccount = {
  processed: NO_TALLY,
  merged: NO_TALLY,
  late: NO_TALLY,
  dropped: NO_TALLY,
};

/** Adds accounts up. */
export function sumOfAccounts(accounts: Iterable<ContributionAccount>): ContributionAccount {
  let { processed, merged, late, dropped } = NO_ACCOUNT;
  for (const account of accounts) {
    processed = sumOfTallies(processed, account.processed);
    merged = sumOfTallies(merged, account.merged);
    late = sumOfTallies(late, account.late);
    dropped = sumOfTallies(dropped, account.dropped);
  }
  return { processed, merged, late, dropped };
}

/** Adds two tallies up. */
export function sumOfTallies(a: Tally, b: Tally): Tally {
  return {
    contributions: a.contributions + b.contributions,
    steps: a.steps + b.steps,
    tokens: a.tokens + b.tokens,
  };
}

/** Reads the tallies of an account, in the order of {@link FATES}. @throws BAD_MESSAGE */
export function parseAccount(rows: readonly unknown[]): ContributionAccount {
  return {
    processed: parseTally(rows[0]),
    merged: parseTally(rows[1]),
    late: parseTally(rows[2]),
    dropped: parseTally(rows[3]),
  };
}

/** Returns the tallies of an account as messages and saved states have them, in the order of {@link FATES}. */
export function accountRows(account: ContributionAccount): (readonly number[])[] {
  return FATES.map((fate) => {
    const { contributions, steps, tokens } = account[fate];
    return [contributions, steps, tokens];
  });
}

function parseTally(value: unknown): Tally {
  const row: Fields = { ...listField({ tally: value }, "tally", 3) };
  return {
    contributions: integerField(row, "0"),
    steps: integerField(row, "1"),
    tokens: integerField(row, "2"),
  };
}
