import { type ErrorCode, ensureError, type PserverError } from "../protocol/errors.ts";
import type { Paint } from "./output/colors.ts";
import { visibleJson, visibleLines, wrapMessage } from "./output/wrap.ts";

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
  GUARDED: invalidInput,
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
  NOT_SAMPLED: failure,
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
  UNFINISHED: failure,
  JOB_REPLACED: failure,
  TAPE_DAMAGED: failure,

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

/** What a person can do about an error, unless its message says so. */
const HINTS: Readonly<Partial<Record<ErrorCode, string>>> = {
  NO_BROKER: '"pserver up" starts one on this machine',
  NO_HOST: 'start a host with "pserver host", and check --job',
  NO_OWNER: "a host may be taking the shard over: try again in a few seconds",
  NO_JETSTREAM: "start the broker with the nats.conf of this package",
  JETSTREAM_UNAVAILABLE: "a cluster may be choosing a leader: try again in a few seconds",
  BROKER_TOO_OLD: 'install nats-server 2.12, or let "pserver up" start one',
  NO_ETCD: "check --etcd, and that etcd runs: etcdctl --endpoints=URL endpoint health",
  PAYLOAD_TOO_SMALL: "raise max_payload in the broker's configuration to 8MB",
  NO_TLS: "configure TLS on the broker; with nats:// nothing is encrypted, the password neither",
  DENIED:
    "check the user's credentials; one whose permissions name a trainer needs --trainer ID: see docs/guides/secure.md",
  UNKNOWN_PARAMETER: 'list the parameters with "pserver ls"',
  NOT_INITIALIZED: 'load a model with "pserver load", or let a trainer initialize the job',
  ALREADY_INITIALIZED:
    'overwrite it with "pserver set" or "pserver load --overwrite", or use another --job',
  ADDRESS_IN_USE:
    "stop that process, or choose another port with --port, or --http where that is named; 0 takes any free one",
  STORE_IN_USE: "stop that process, or choose another directory with --store",
  TIMEOUT: "give it longer with --timeout",
  OUTCOME_UNKNOWN: 'look at the values with "pserver get" before you send them again',
  JOURNAL_FULL: "wait for a snapshot, or give the broker more storage",
  JOURNAL_FAULT: "free space where the broker stores, and restart it: its log names the cause",
  HISTORY_LOST:
    'give --archive DIR where "pserver archive" keeps more; "start" is the oldest point',
  JOB_DAMAGED: "see JOB_DAMAGED in docs/reference/errors.md",
  NO_SPACE: "free space in the broker's store, or raise its limits",
  BAD_PATH:
    "give a path relative to the host's model directory, such as runs/1.safetensors or runs/1/",
  INTERNAL: "this is a defect: please report it with the command that you gave",
};

/** Node.js's codes for certificates of an unknown authority. */
const UNKNOWN_AUTHORITY = /SELF_SIGNED|ISSUER|UNTRUSTED|VERIFY_LEAF/;

/** Hints of the commands that start a broker and hosts. */
const SERVER_HINTS: typeof HINTS = {
  BROKER_TOO_OLD: '"pserver setup" provides a newer one',
  NO_SPACE: "free space on the disk of --store, or ask for less: --shards 4 --journal-limit 16MiB",
  IO: "choose another directory with --store",
};

/** Hints that replace those of {@link HINTS} for one command. */
const HINTS_OF: Readonly<Record<string, typeof HINTS>> = {
  up: {
    ...SERVER_HINTS,
    NO_BROKER: '"pserver setup" provides a broker, or repairs one that does not run',
    NO_HOST: "the hosts' messages above say why they have ended",
  },
  setup: {
    NO_BROKER: "fix that, then run the same command again",
    BROKER_TOO_OLD: "unset PSERVER_NATS_SERVER, or let it name nats-server 2.12",
  },
  run: {
    ...SERVER_HINTS,
    NO_BROKER: '"pserver setup" provides a broker; with --url, check that the one there runs',
  },
  archive: { STORE_IN_USE: "one archiver is enough: stop that one, or choose another directory" },
  host: { NO_HOST: "the messages above say why it has ended" },
  rewind: {
    JOURNAL_FULL:
      'give that stream a higher limit ("nats stream edit --max-bytes"), or the hosts a smaller --retain; then run the command again with --complete',
  },
  load: { NOT_INITIALIZED: "another trainer initializes the job: wait for it" },
};

/**
 * Returns the hint for an error that a command ended with; undefined if there is none, or it names this
 * command.
 */
function hintFor({ code, details }: PserverError, command: string): string | undefined {
  const { certificate } = details;
  if (typeof certificate === "string") {
    if (!UNKNOWN_AUTHORITY.test(certificate)) return undefined;
    return "name the file of the authority that signed it with --tlsca (NATS_CA)";
  }
  const hint = HINTS_OF[command]?.[code] ?? HINTS[code];
  return hint?.includes(`"pserver ${command}"`) ? undefined : hint;
}

/** An error report: `pserver: CODE: message` and a hint, or one line of JSON. */
export interface ReportedError {
  readonly text: string;
  readonly exitCode: ExitCode;
}

/** How an error is reported. */
export interface ReportStyle {
  readonly json: boolean;
  readonly paint: Paint;
  /** The command that ended with the error; "" if it was not known yet. */
  readonly command: string;
  /** Columns of the terminal, if the error is printed on one. */
  readonly width?: number;
  /** Time of the error in ISO form, for a log. */
  readonly time?: string;
}

/** Returns the report of an error that a command ended with, and the exit code that goes with it. */
export function reportError(thrown: unknown, style: ReportStyle): ReportedError {
  const { json, paint, command, time, width = Number.POSITIVE_INFINITY } = style;
  const error = ensureError(thrown);
  const exitCode = EXIT_CODES[error.code];
  if (json) return { text: jsonError(error, time), exitCode };
  const prefix = paint("fail", `pserver: ${error.code}:`);
  const start = time === undefined ? prefix : `${time} ${prefix}`;
  const lines = [wrapMessage(`${start} ${visibleLines(error.message)}`, width)];
  const hint = hintFor(error, command);
  if (hint !== undefined) lines.push(wrapMessage(`${paint("faint", "hint:")} ${hint}`, width));
  return { text: lines.join("\n"), exitCode };
}

/** Writes `{"error":{code,message,details}}` on one line, with the `time` first if one is given. */
export function jsonError(error: PserverError, time?: string): string {
  return visibleJson({ time, error: error.toWire() });
}
