/**
 * Characters that change how a terminal shows what is around them: controls, formats (which turn text
 * round or are not seen), ends of lines and paragraphs, lone surrogates.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

const PLAIN = /^[ -~]*$/;

/**
 * Returns whether a text is printable ASCII: {@link visible} leaves it as it is, and each character takes a
 * column.
 */
export function isPlain(text: string): boolean {
  return PLAIN.test(text);
}

/**
 * Makes names, paths and messages from elsewhere safe to show: characters that would command a terminal or
 * turn the text round are escaped as `\x1b`, `\u202e`, `\u{e0001}`.
 */
export function visible(text: string): string {
  // Nearly all texts are plain; this is several times faster than looking for what is not.
  if (isPlain(text)) return text;
  return text.replace(UNPRINTABLE, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const digits = code.toString(16);
    if (code < 0x100) return `\\x${digits.padStart(2, "0")}`;
    return code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\u{${digits}}`;
  });
}

/** A row of the table of error codes. */
interface ErrorRow {
  /** The stable number of the C enum; never reused. */
  readonly number: number;
  /** Whether the unchanged call can succeed later. */
  readonly retryable: boolean;
  /** The line that the documentation prints. */
  readonly meaning: string;
  /** What a client does if the code is in an answer; by default `retry` if it is retryable, else `fail`. */
  readonly reaction?: Reaction;
  /** What a client does if the code is the outcome of a record; by default `fail`. */
  readonly rejection?: RejectionReaction;
}

type Reactions = Pick<ErrorRow, "reaction" | "rejection">;

/** Makes the row of a code after which repeating the call cannot succeed. */
function permanent(number: number, meaning: string, reactions: Reactions = {}): ErrorRow {
  return { number, retryable: false, meaning, ...reactions };
}

/** Makes the row of a code after which the same call can succeed later. */
function retryable(number: number, meaning: string, reactions: Reactions = {}): ErrorRow {
  return { number, retryable: true, meaning, ...reactions };
}

/** Every error code of the system: one table for TypeScript, C and Python. */
export const ERROR_CODES = {
  // What the sender got wrong.
  BAD_MESSAGE: permanent(1, "the message is malformed or truncated"),
  BAD_CHECKSUM: permanent(2, "the checksum does not match the bytes"),
  BAD_VERSION: permanent(3, "the protocol version is not spoken here"),
  BAD_NAME: permanent(4, "a name is empty, too long or not valid"),
  BAD_DTYPE: permanent(5, "the element type is wrong or unknown"),
  BAD_SHAPE: permanent(6, "the shape is wrong or not valid"),
  BAD_LENGTH: permanent(7, "the number of bytes is wrong"),
  BAD_VALUE: permanent(8, "an argument is out of its range", { rejection: "resend-unseen" }),
  BAD_CONFIG: permanent(9, "the parameter configuration is not valid"),
  BAD_REPLY: permanent(10, "the reply subject is not under the trainer's inbox"),
  NON_FINITE: permanent(
    11,
    "the update holds a NaN or an infinity and the parameter does not allow them",
  ),
  NO_LEARNING_RATE: permanent(12, "neither the parameter nor the call gives a learning rate"),
  UNSUPPORTED: permanent(13, "the element type does not take this update"),
  EMPTY: permanent(14, "the list is empty"),
  TOO_LARGE: permanent(15, "more than a stated limit allows"),
  UNKNOWN_PARAMETER: permanent(16, "no parameter has this name"),
  STATIC: permanent(17, "the parameter is static: it takes no update"),
  BAD_INDEX: permanent(18, "an index is out of range or out of order"),
  GUARDED: permanent(19, "the norm is above the limit of the parameter's guard"),

  // Lifecycle.
  NOT_INITIALIZED: retryable(20, "the job is not initialized yet", { reaction: "await-init" }),
  ALREADY_INITIALIZED: permanent(21, "it is initialized already", { rejection: "count-present" }),
  NOT_SELECTED: permanent(22, "this trainer is not the one selected to initialize", {
    reaction: "yield-init",
  }),
  STALE_EPOCH: permanent(23, "the message belongs to an initialization that was replaced", {
    reaction: "look-up",
  }),
  INCOMPLETE: permanent(24, "declared blocks have not been initialized"),
  NO_SPACE: permanent(25, "the broker cannot hold the journals and state"),
  JOB_EXISTS: permanent(26, "a job of this name exists with other settings"),
  UNFINISHED: permanent(27, "an earlier change of the job is to be completed or dropped first"),
  JOB_REPLACED: permanent(28, "the job was made anew since this trainer joined: connect again", {
    reaction: "end",
  }),

  NOT_SAMPLED: permanent(29, "others were drawn to contribute to the round"),

  // Sessions.
  SUPERSEDED: permanent(30, "a newer session of this trainer has joined", { reaction: "end" }),
  REJOIN: permanent(31, "the session has ended; join again", { reaction: "rejoin" }),
  SETTLED: permanent(32, "the record was settled before and its outcome has been forgotten", {
    rejection: "forgotten",
  }),
  WINDOW: retryable(33, "too many unsettled records of one trainer"),
  TOO_MANY_TRAINERS: permanent(34, "the shard or the job has as many trainers as it may"),
  LATE: permanent(35, "the step has closed, or already has this gradient", {
    rejection: "count-late",
  }),
  EARLY: retryable(36, "the step before has not closed yet", { rejection: "resend-in-step" }),
  NOT_MEMBER: permanent(37, "the trainer is not a member of the job's steps", {
    reaction: "enter-anew",
  }),
  QUOTA: permanent(38, "the trainer or job exceeds what it may hold or waste"),

  JOB_DAMAGED: permanent(
    39,
    "entries of the job are damaged, or older than what was done under them",
  ),

  // Journal.
  JOURNAL_FULL: retryable(40, "the journal has reached its limit"),
  JOURNAL_DAMAGED: permanent(41, "the journal lost or changed a record", { reaction: "lost" }),
  JOURNAL_LOST: permanent(42, "the journal lost its newest records", { reaction: "lost" }),
  JOURNAL_REPLACED: permanent(43, "the position is of a journal that has been replaced", {
    reaction: "replaced",
  }),
  SNAPSHOT_DAMAGED: permanent(44, "a piece of a snapshot is lost or changed", { reaction: "lost" }),
  UNKNOWN_RULES: permanent(45, "this host does not have the rules the journal is written under", {
    reaction: "lost",
  }),
  JOURNAL_FAULT: retryable(
    46,
    "the broker cannot write the journal, for a reason other than a full disk",
  ),
  HISTORY_LOST: permanent(47, "the kept history does not reach back to the point"),
  FOLD_FAILED: permanent(48, "a record cannot be folded, because of a defect of this program", {
    reaction: "lost",
  }),
  TAPE_DAMAGED: permanent(49, "the tape lacks lines of records that are no longer kept"),

  // Hosts.
  NO_OWNER: retryable(50, "no host serves the shard at the moment"),
  NOT_OWNER: retryable(51, "this host no longer owns the shard"),
  BUSY: retryable(52, "the host has too much work queued"),
  NO_HOST: retryable(53, "no host of the job answers"),
  NO_MEMORY: retryable(54, "the host has less free memory than the shard needs"),

  // Calls.
  TIMEOUT: retryable(60, "the call did not finish in its time"),
  OUTCOME_UNKNOWN: permanent(
    61,
    "each block update was applied once or not at all; which is not known",
  ),
  ABORTED: permanent(62, "the caller aborted the call"),
  CLOSED: permanent(63, "the client or host is closed"),

  // Broker.
  NO_BROKER: retryable(70, "the broker cannot be reached"),
  NO_JETSTREAM: permanent(71, "the broker runs without JetStream"),
  BROKER_TOO_OLD: permanent(72, "the broker's version is too old"),
  PAYLOAD_TOO_SMALL: permanent(73, "the broker's max_payload is too small"),
  DENIED: permanent(74, "the broker refused the credentials or a subject"),
  NO_ETCD: retryable(75, "etcd cannot be reached or does not answer"),
  JETSTREAM_UNAVAILABLE: retryable(76, "the broker's JetStream does not answer at the moment"),
  NO_TLS: permanent(
    77,
    "the broker offers no TLS, which was asked for, or has no trusted certificate",
  ),
  ADDRESS_IN_USE: permanent(78, "another process listens on the address"),

  // Files.
  BAD_PATH: permanent(80, "the path leaves the model directory or is not valid"),
  BAD_FILE: permanent(81, "the file is not a valid model file"),
  MISSING_SHARD: permanent(82, "a sparse parameter lacks one of its shards"),
  IO: permanent(83, "the operating system refused a file operation"),
  DISK_FULL: permanent(84, "no space is left on the device"),
  STORE_IN_USE: permanent(85, "another process uses the directory"),
  BAD_ARCHIVE: permanent(
    86,
    "an archive or a recorded file is damaged, incomplete or of another job",
  ),

  INTERNAL: permanent(99, "a defect of this program"),
} satisfies Record<string, ErrorRow>;

/** Code of a {@link PserverError}; the same words in C (`PSERVER_ERR_…`) and Python. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** Details of an error, by name: who is involved, and the expected and received values. */
export interface ErrorDetails {
  readonly [name: string]: unknown;
}

/** Returns what a client does about a code in the answer to a request or a question. */
export function reactionTo(code: ErrorCode): Reaction {
  const { reaction, retryable }: ErrorRow = ERROR_CODES[code];
  return reaction ?? (retryable ? "retry" : "fail");
}

/** Returns what a client does about a code that is the outcome of a record, unless it {@link endsSession}. */
export function reactionToRejection(code: ErrorCode): RejectionReaction {
  const { rejection }: ErrorRow = ERROR_CODES[code];
  return rejection ?? "fail";
}

/**
 * Returns whether a question that got this error is asked again, unchanged, until its deadline, because the
 * cause can pass by itself. NOT_INITIALIZED does not count: it may wait for the asker itself.
 */
export function healsWithTime(code: ErrorCode): boolean {
  return reactionTo(code) === "retry";
}

/** Returns whether the code says that a session is over. It then says nothing about the request or record. */
export function endsSession(code: ErrorCode): boolean {
  const reaction = reactionTo(code);
  return reaction === "rejoin" || reaction === "end";
}

/** Returns whether the code tells an initializing trainer that another one has taken over. */
export function yieldsInit(code: ErrorCode): boolean {
  const reaction = reactionTo(code);
  return reaction === "yield-init" || reaction === "look-up";
}

/** An error as a reply carries it: `{error: {code, message, details?}}`. */
export interface WireError {
  readonly code: string;
  readonly message: string;
  readonly details?: ErrorDetails;
}

/** The only error class of the project: `code` is for programs, `message` for people. */
export class PserverError extends Error {
  override readonly name: string = "PserverError";
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(
    code: ErrorCode,
    message: string,
    details: ErrorDetails = {},
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.code = code;
    this.details = details;
  }

  /** Whether the unchanged call can succeed later. */
  get retryable(): boolean {
    return ERROR_CODES[this.code].retryable;
  }

  /** Returns this error as replies carry it; details that a message cannot hold are cut or described. */
  toWire(): WireError {
    const message = toText(this.message);
    return { code: this.code, message, details: toPlainMap(this.details, 1) };
  }
}

/** Limits of details in replies: characters of a text, entries of a list or map, depth. */
const WIRE_TEXT_MAX = 2_000;
const WIRE_ENTRIES_MAX = 64;
const WIRE_DEPTH_MAX = 6;

/**
 * Returns the value as a reply can carry it: cut where it is long or deep, described where it is not plain
 * data.
 */
function toPlain(value: unknown, depth: number): unknown {
  if (typeof value === "string") return toText(value);
  if (typeof value === "number" || typeof value === "boolean" || value == null) return value;
  if (typeof value !== "object" || ArrayBuffer.isView(value) || depth > WIRE_DEPTH_MAX) {
    return toText(Object.prototype.toString.call(value));
  }
  if (!Array.isArray(value)) return toPlainMap(value, depth);
  return value.slice(0, WIRE_ENTRIES_MAX).map((entry) => toPlain(entry, depth + 1));
}

function toPlainMap(value: object, depth: number): ErrorDetails {
  const entries = Object.entries(value).slice(0, WIRE_ENTRIES_MAX);
  return Object.fromEntries(
    entries
      .filter(([key, entry]) => key !== "__proto__" && entry !== undefined)
      .map(([key, entry]) => [toText(key), toPlain(entry, depth + 1)]),
  );
}

function toText(text: string): string {
  return text.slice(0, WIRE_TEXT_MAX).toWellFormed();
}

/** Returns whether `text` is a code of the table. */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERROR_CODES, text);
}

/**
 * Makes the error that a reply carried. A code of a newer server, which this version does not know, becomes
 * `INTERNAL` with the sender's code in `details.code`.
 */
export function errorFromWire(wire: WireError): PserverError {
  if (isErrorCode(wire.code)) return new PserverError(wire.code, wire.message, wire.details ?? {});
  return new PserverError("INTERNAL", wire.message, { ...wire.details, code: wire.code });
}

/** Returns `error` itself if it is one of ours, else an `INTERNAL` error caused by it. */
export function ensureError(error: unknown): PserverError {
  if (error instanceof PserverError) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new PserverError("INTERNAL", text, {}, { cause: error });
}

/**
 * Makes the error for something that is not as expected: `what: expected …; received …`, with these details.
 */
export function mismatch(
  code: ErrorCode,
  what: string,
  expected: string | number,
  received: string | number,
  details: ErrorDetails = {},
  options?: ErrorOptions,
): PserverError {
  const message = `${what}: expected ${expected}; received ${received}`;
  return new PserverError(code, message, { ...details, expected, received }, options);
}

/** Pause before asking again if BUSY names none. */
export const RETRY_AFTER_MS = 250;

/** Longest pause that an asker takes from BUSY. */
export const RETRY_AFTER_MS_MAX = 5_000;

/**
 * Makes the error BUSY. Its details name the limit that was reached, and in `retryAfterMs` how long to wait.
 */
export function busy(
  message: string,
  bound: ErrorDetails & { readonly expected: number },
  waitMs: number = RETRY_AFTER_MS,
): PserverError {
  const text = `${message}; ask again after ${waitMs} ms`;
  return new PserverError("BUSY", text, { ...bound, retryAfterMs: waitMs });
}

/** Returns the pause before asking again that an error names, at most 5 s; 0 if it names none. */
export function retryAfterMs({ details }: PserverError): number {
  const hint = details["retryAfterMs"];
  if (typeof hint !== "number" || !(hint > 0)) return 0;
  return Math.min(hint, RETRY_AFTER_MS_MAX);
}

/**
 * What a client does about an error in the answer to a request or a question: the words of the column
 * `reaction` in the table of error codes, and what each means.
 */
export const REACTIONS = {
  fail: "the call fails with the code",
  retry: "the same request is sent again after a pause",
  "await-init": "a call that waits for initialization asks again; any other fails",
  "yield-init":
    "another trainer initializes instead: a call that waits for it goes on, others fail",
  "look-up": "the parameter has a newer epoch and is looked up again; who initialized it yields",
  replaced: "the request goes on in the journal that the error names; older records are lost",
  lost: "records behind the end of the shard's journal are lost; the call fails",
  "enter-anew":
    "the trainer enters the steps anew: a gradient, or the end of a step, once in its call; a read goes on without waiting for a step",
  rejoin: "the session is over: the client joins again",
  end: "the id belongs to a newer session: the client can do nothing more",
} as const;

/** See {@link REACTIONS}. */
export type Reaction = keyof typeof REACTIONS;

/**
 * What a client does about a code that is the outcome of a record, where that differs from the
 * reaction to the code in an answer: the words of the column `rejection` in the table of error codes.
 */
export const REJECTION_REACTIONS = {
  fail: "the call fails with the code",
  "resend-unseen": "a gradient that names the version it was made from is sent again without it",
  "resend-in-step": "the trainer enters the steps anew and sends the gradient once more",
  "count-late": "a call that allows for late gradients counts it; any other fails",
  "count-present": "a repeated initialization counts it as applied; any other fails",
  forgotten: "the outcome stays unknown",
} as const;

/** See {@link REJECTION_REACTIONS}. */
export type RejectionReaction = keyof typeof REJECTION_REACTIONS;
