import { type Allocate, type DraftMessage, draftMessage, type Message } from "./codec.ts";
import { PserverError } from "./errors.ts";
import { flagField, integerField, listField } from "./fields.ts";
import { BATCH_ENTRIES_MAX } from "./limits.ts";
import { throwIfError } from "./outcomes.ts";
import { type Position, parsePosition } from "./position.ts";

/**
 * A piece of the reply to a batched read: some consecutive entries at one moment of the fold, which is
 * its position.
 */
export interface ReadPieceHead extends Position {
  /** Number of its first entry. */
  readonly from: number;
  /** Whether further pieces follow. */
  readonly more: boolean;
  /** The version of each entry; 0 if the reader has it, and no bytes follow. */
  readonly versions: readonly number[];
}

/** A received piece; `data` is a view of the received buffer. */
export interface ReadPiece extends ReadPieceHead {
  /** The values of its entries, each with zeros up to a multiple of 8 bytes. */
  readonly data: Uint8Array;
}

/** A piece with space for the values; fill and seal it as {@link DraftMessage} says. */
export function draftReadPiece(
  { from, more, generation, seq, versions }: ReadPieceHead,
  dataBytes: number,
  allocate?: Allocate,
): DraftMessage {
  return draftMessage({ from, more, generation, seq, versions }, dataBytes, allocate);
}

/** @throws BAD_MESSAGE if the message is not a valid piece, or the error that the message carries. */
export function parseReadPiece({ fields, data }: Message): ReadPiece {
  throwIfError(fields);
  const versions = listField(fields, "versions", BATCH_ENTRIES_MAX);
  if (versions.length === 0 || !versions.every(isVersion)) {
    const received = versions.find((version) => !isVersion(version));
    throw new PserverError(
      "BAD_MESSAGE",
      `versions: expected at least one whole number and no other value; received ${String(received)}`,
      { field: "versions" },
    );
  }
  return {
    from: integerField(fields, "from", 0, BATCH_ENTRIES_MAX - 1),
    more: flagField(fields, "more"),
    ...parsePosition(fields),
    versions,
    data,
  };
}

function isVersion(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
