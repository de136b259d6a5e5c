import type { Allocate } from "../protocol/codec.ts";
import { ERROR_CODES, PserverError, reactionToRejection } from "../protocol/errors.ts";
import type { Outcome } from "../protocol/outcomes.ts";
import type { RecordHead } from "../protocol/records.ts";

/** What a record is about: a block, or, in a clock, the steps up to one. */
export type Topic =
  | { readonly parameter: string; readonly index: number }
  | { readonly step: number };

/** One journal record to be: a tensor, what it has for one block, or a clock. */
export interface Piece {
  readonly subject: string;
  readonly shard: number;
  readonly topic: Topic;
  /** Bytes of the elements; what the window of bytes counts. */
  readonly dataBytes: number;
  /** The record under these numbers, in memory of `allocate`. Copies the tensor's bytes, once. */
  draft(head: RecordHead, allocate?: Allocate): Uint8Array;
  /**
   * Leaves out of later drafts the version of the block that a gradient was made from; false if there
   * is none to be left out.
   */
  forgetSeen?(): boolean;
}

/** A piece, with its number once it was sent. */
export interface Numbered {
  readonly piece: Piece;
  readonly n?: number;
}

/** A piece as errors name it. */
type PieceName = Topic & { readonly shard: number; readonly n?: number };

/** Names listed in an error; a large tensor has thousands of pieces. */
const NAMES_MAX = 64;

/**
 * The pieces of one call, which fails or succeeds as one. It is over when every piece has an
 * outcome or was given up, so that its error can say what was applied.
 */
export class Batch {
  readonly trainer: string;
  /** Whether a PubAck is enough. */
  readonly stored: boolean;
  /** How many pieces came too late for their step, once every piece is settled; or the error. */
  readonly done: Promise<{ late: number }>;
  #resolve: (result: { late: number }) => void = () => {};
  #reject: (error: PserverError) => void = () => {};
  #whenOver: () => void = () => {};
  readonly #applied: Numbered[] = [];
  readonly #unknown: Numbered[] = [];
  readonly #countsLate: boolean;
  readonly #countsPresent: boolean;
  #late = 0;
  #unsent = 0;
  #left: number;
  #rejection: PserverError | undefined;
  /** The last thing that kept a piece from being stored. */
  #obstacle: PserverError | undefined;
  #end: PserverError | undefined;

  constructor(options: {
    trainer: string;
    stored: boolean;
    pieces: number;
    /** Whether a gradient that came too late for its step is counted instead of refused. */
    countsLate?: boolean;
    /** Whether a block that is initialized already counts as applied. */
    countsPresent?: boolean;
  }) {
    this.trainer = options.trainer;
    this.stored = options.stored;
    this.#countsLate = options.countsLate ?? false;
    this.#countsPresent = options.countsPresent ?? false;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#left = options.pieces;
  }

  /** Whether a piece was rejected: what is not sent yet then stays unsent. */
  get failed(): boolean {
    return this.#rejection !== undefined;
  }

  /** Calls `listener` when every piece is settled, before {@link done} is; at once if they are. */
  onOver(listener: () => void): void {
    if (this.#left > 0) this.#whenOver = listener;
    else listener();
  }

  /** A piece was applied, or stored if that is enough. */
  applied(piece: Numbered): void {
    this.#applied.push(piece);
    this.#settleOne();
  }

  /** A piece was rejected; the first rejection is the error of the call. */
  rejected(piece: Numbered, code: NonNullable<Outcome["code"]>, message: string): void {
    const reaction = reactionToRejection(code);
    if (reaction === "count-late" && this.#countsLate) {
      this.#late += 1;
      this.#settleOne();
      return;
    }
    if (reaction === "count-present" && this.#countsPresent) {
      this.applied(piece);
      return;
    }
    this.refused(
      piece,
      new PserverError(code, message === "" ? ERROR_CODES[code].meaning : message),
    );
  }

  /** A piece will never be applied, for a reason found before the fold. */
  refused(piece: Numbered, error: PserverError): void {
    const { code, message, details } = error;
    this.#rejection ??= new PserverError(
      code,
      `${describe(piece)}: ${message}`,
      { ...details, ...detailsOf(piece), trainer: this.trainer },
      { cause: error },
    );
    this.#settleOne();
  }

  /** A piece was given up after it may have been stored. */
  unknown(piece: Numbered): void {
    this.#unknown.push(piece);
    this.#settleOne();
  }

  /** A piece was given up that is stored nowhere. */
  unsent(obstacle?: PserverError): void {
    this.#unsent += 1;
    this.#obstacle ??= obstacle;
    this.#settleOne();
  }

  /** What ended the call or the session before every piece was settled. */
  ended(end: PserverError): void {
    this.#end ??= end;
  }

  #settleOne(): void {
    this.#left -= 1;
    if (this.#left > 0) return;
    this.#whenOver();
    const error = this.#error();
    if (error === undefined) this.#resolve({ late: this.#late });
    else this.#reject(error);
  }

  #error(): PserverError | undefined {
    const applied = this.#applied;
    const unknown = this.#unknown;
    if (this.#rejection === undefined && unknown.length + this.#unsent === 0) return undefined;
    const rest = { ...listed("applied", applied), unsent: this.#unsent };
    if (this.#rejection !== undefined) {
      const { code, message, details } = this.#rejection;
      const others = applied.length + unknown.length;
      if (others === 0) return this.#rejection;
      return new PserverError(
        code,
        `${message} (other pieces of the call: ${applied.length} applied, ${unknown.length} unknown, ${this.#unsent} not sent)`,
        { ...details, ...rest, ...listed("unknown", unknown) },
        { cause: this.#rejection },
      );
    }
    if (unknown.length > 0) return this.#unknownError(unknown, rest);
    const end = this.#end ?? new PserverError("INTERNAL", "pieces were given up without a reason");
    const { code, message, details } = end.code === "TIMEOUT" ? (this.#obstacle ?? end) : end;
    const tail =
      applied.length === 0 ? "nothing was applied" : `${applied.length} pieces were applied`;
    return new PserverError(
      code,
      `${code === end.code ? message : `${end.message}; last: ${message}`}; ${this.#unsent} pieces were not stored, ${tail}`,
      { ...details, ...rest },
      { cause: end },
    );
  }

  #unknownError(unknown: readonly Numbered[], rest: object): PserverError {
    const end = this.#end;
    const code = end === undefined || end.code === "TIMEOUT" ? "OUTCOME_UNKNOWN" : end.code;
    const first = unknown[0];
    return new PserverError(
      code,
      `${end === undefined ? "the session ended" : end.message}: ${unknown.length} pieces, the first ${first && describe(first)}, were sent and are applied once or not at all`,
      { ...listed("pieces", unknown), ...rest, trainer: this.trainer },
      { cause: end },
    );
  }
}

/** A piece in the details of an error. */
export function detailsOf(numbered: Numbered): Record<string, unknown> {
  const name = nameOf(numbered);
  const { shard, n } = name;
  if ("step" in name) return { step: name.step, shard, n };
  return { parameter: name.parameter, block: name.index, shard, n };
}

function nameOf({ piece, n }: Numbered): PieceName {
  const { topic, shard } = piece;
  return n === undefined ? { ...topic, shard } : { ...topic, shard, n };
}

function describe({ piece }: Numbered): string {
  const { topic, shard } = piece;
  if ("step" in topic) return `end of step ${topic.step} in shard ${shard}`;
  return `${topic.parameter} block ${topic.index}`;
}

function listed(key: string, pieces: readonly Numbered[]): Record<string, unknown> {
  const list = { [key]: pieces.slice(0, NAMES_MAX).map(nameOf) };
  return pieces.length > NAMES_MAX ? { ...list, [`${key}Count`]: pieces.length } : list;
}
