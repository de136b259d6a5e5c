import type { ErrorCode, PserverError } from "../protocol/errors.ts";

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
  DENIED: "check the user's credentials and permissions: see docs/operations.md",
  UNKNOWN_PARAMETER: 'list the parameters with "pserver ls"',
  NOT_INITIALIZED: 'load a model with "pserver load", or let a trainer initialize the job',
  ALREADY_INITIALIZED:
    'overwrite it with "pserver set" or "pserver load --overwrite", or use another --job',
  ADDRESS_IN_USE: "stop that process, or choose another port with --port; 0 takes any free one",
  STORE_IN_USE: "stop that process, or choose another directory with --store",
  TIMEOUT: "give it longer with --timeout",
  OUTCOME_UNKNOWN: 'look at the values with "pserver get" before you send them again',
  JOURNAL_FULL: "wait for a snapshot, or give the broker more storage",
  JOURNAL_FAULT: "free space where the broker stores, and restart it: its log names the cause",
  JOB_DAMAGED: "see JOB_DAMAGED in docs/operations.md",
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
  load: { NOT_INITIALIZED: "another trainer initializes the job: wait for it" },
};

/** The hint for an error that a command ended with; undefined if there is none, or it names this command. */
export function hintFor({ code, details }: PserverError, command: string): string | undefined {
  const { certificate } = details;
  if (typeof certificate === "string") {
    if (!UNKNOWN_AUTHORITY.test(certificate)) return undefined;
    return "name the file of the authority that signed it with --tlsca (NATS_CA)";
  }
  const hint = HINTS_OF[command]?.[code] ?? HINTS[code];
  return hint?.includes(`"pserver ${command}"`) ? undefined : hint;
}
