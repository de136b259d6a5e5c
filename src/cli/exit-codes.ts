import type { ErrorCode } from "../protocol/errors.ts";

/** What the exit codes of `pserver` mean; the help of the command prints this table. */
export const EXIT = {
  ok: 0,
  failure: 1,
  unreachable: 2,
  invalidInput: 3,
  refused: 4,
  files: 6,
  unknownOutcome: 7,
  badArguments: 128,
  /** The code that shells give to a process that Ctrl-C ends: 128 and the number of SIGINT. */
  interrupted: 130,
} as const;

/** One of the exit codes. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The line of the help for each exit code. */
export const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  [EXIT.ok]: "done",
  [EXIT.failure]: "it failed; the message says why",
  [EXIT.unreachable]: "no broker, no etcd or no host of the job can be reached",
  [EXIT.invalidInput]: "a name, path, file, tensor or setting is not valid",
  [EXIT.refused]: "denied, or not supported by the broker or the parameter",
  [EXIT.files]: "a file operation failed, or another process uses the store",
  [EXIT.unknownOutcome]: "no answer in time; what was sent may have been applied",
  [EXIT.badArguments]: "the command line is wrong",
  [EXIT.interrupted]: "interrupted before it was done, or not confirmed",
};

const { failure, unreachable, invalidInput, refused, interrupted, files, unknownOutcome } = EXIT;

/** The exit code of each error code. */
export const EXIT_CODES: Readonly<Record<ErrorCode, ExitCode>> = {
  BAD_MESSAGE: failure,
  BAD_CHECKSUM: failure,
  BAD_VERSION: refused,
  BAD_NAME: invalidInput,
  BAD_DTYPE: invalidInput,
  BAD_SHAPE: invalidInput,
  BAD_LENGTH: invalidInput,
  BAD_VALUE: invalidInput,
  BAD_CONFIG: invalidInput,
  BAD_REPLY: failure,
  NON_FINITE: invalidInput,
  NO_LEARNING_RATE: invalidInput,
  UNSUPPORTED: refused,
  EMPTY: invalidInput,
  TOO_LARGE: invalidInput,
  UNKNOWN_PARAMETER: invalidInput,
  STATIC: refused,
  BAD_INDEX: invalidInput,

  NOT_INITIALIZED: failure,
  ALREADY_INITIALIZED: failure,
  NOT_SELECTED: failure,
  STALE_EPOCH: failure,
  INCOMPLETE: failure,
  NO_SPACE: failure,
  JOB_EXISTS: invalidInput,

  SUPERSEDED: failure,
  REJOIN: failure,
  SETTLED: failure,
  WINDOW: failure,
  LATE: failure,
  EARLY: failure,
  NOT_MEMBER: failure,
  TOO_MANY_TRAINERS: failure,
  QUOTA: failure,

  JOURNAL_FULL: failure,
  JOURNAL_DAMAGED: failure,
  JOURNAL_LOST: failure,
  JOURNAL_REPLACED: failure,
  SNAPSHOT_DAMAGED: failure,
  UNKNOWN_RULES: refused,
  FOLD_FAILED: failure,
  JOB_DAMAGED: failure,
  JOURNAL_FAULT: failure,
  HISTORY_LOST: failure,

  NO_OWNER: unreachable,
  NOT_OWNER: unreachable,
  BUSY: unreachable,
  NO_HOST: unreachable,
  NO_MEMORY: unreachable,

  TIMEOUT: unknownOutcome,
  OUTCOME_UNKNOWN: unknownOutcome,
  ABORTED: interrupted,
  CLOSED: failure,

  NO_BROKER: unreachable,
  NO_JETSTREAM: refused,
  BROKER_TOO_OLD: refused,
  PAYLOAD_TOO_SMALL: refused,
  DENIED: refused,
  NO_ETCD: unreachable,
  JETSTREAM_UNAVAILABLE: unreachable,
  NO_TLS: refused,
  ADDRESS_IN_USE: failure,

  BAD_PATH: invalidInput,
  BAD_FILE: invalidInput,
  MISSING_SHARD: invalidInput,
  IO: files,
  DISK_FULL: files,
  STORE_IN_USE: files,
  BAD_ARCHIVE: invalidInput,

  INTERNAL: failure,
};
