import { PserverError } from "./errors.ts";
import { checkJobName, escapeId, escapeName, unescapeId, unescapeName } from "./names.ts";

/** Verbs of trainers' journal records about one block; those of {@link BLOCKLESS_VERBS} name none. */
export const TRAINER_VERBS = ["init", "push", "set"] as const;
/** One of {@link TRAINER_VERBS}. */
export type TrainerVerb = (typeof TRAINER_VERBS)[number];

/** Verbs of hosts' journal records. */
export const HOST_VERBS = [
  "rules",
  "members",
  "declare",
  "ready",
  "drop",
  "floor",
  "sessions",
  "forget",
  "end",
  "close",
] as const;
/** One of {@link HOST_VERBS}. */
export type HostVerb = (typeof HOST_VERBS)[number];

/** Verbs of lifecycle requests. */
export const LIFECYCLE_VERBS = [
  "join",
  "renew",
  "leave",
  "begin",
  "declare",
  "create",
  "finish",
  "abort",
  "enter",
  "exit",
  "status",
] as const;
/** One of {@link LIFECYCLE_VERBS}. */
export type LifecycleVerb = (typeof LIFECYCLE_VERBS)[number];

/** Verbs of control requests; one host of the queue group answers. */
export const CONTROL_VERBS = ["save", "stop", "snapshot", "hosts", "versions"] as const;
/** One of {@link CONTROL_VERBS}. */
export type ControlVerb = (typeof CONTROL_VERBS)[number];

/** Queue group in which hosts share the requests that any of them may answer. */
export const HOSTS_QUEUE = "hosts";

/** Verbs of requests that trainers send to the owner of a shard. */
export const TRAINER_REQUESTS = ["outcome", "step", "read", "fragments"] as const;
/** One of {@link TRAINER_REQUESTS}. */
export type TrainerRequest = (typeof TRAINER_REQUESTS)[number];

/** Verbs of requests that hosts send to the owner of a shard. */
export const OWNER_VERBS = [
  "check",
  "pull",
  "snapshot",
  "status",
  "memory",
  "versions",
  "trainers",
  "known",
  "digest",
] as const;
/** One of {@link OWNER_VERBS}. */
export type OwnerVerb = (typeof OWNER_VERBS)[number];

/** Returns whether `text` is one of a list of words. */
export function isOneOf<Word extends string>(words: readonly Word[], text: string): text is Word {
  return (words as readonly string[]).includes(text);
}

/** Verbs of trainers' journal records whose subject names no block. */
export const BLOCKLESS_VERBS = ["clock", "batch", "note", "contribute"] as const;

/** Inbox tokens that a client may choose: printable ASCII without wildcards. */
const INBOX_TOKENS = /^[!-)+,\-/-=?-~]+(?:\.[!-)+,\-/-=?-~]+)*$/;

/** Prefix of the reply subjects that the broker makes up for requests between two of its accounts. */
const ACCOUNT_REPLY = "_R_";

/** A parsed journal subject: the sender, the verb, and the block if it names one. */
export type LogSubject =
  | {
      by: "trainer";
      shard: number;
      trainer: string;
      verb: TrainerVerb;
      parameter: string;
      index: number;
    }
  | { by: "clock"; shard: number; trainer: string }
  | { by: "batch"; shard: number; trainer: string }
  | { by: "note"; shard: number; trainer: string }
  | { by: "contribute"; shard: number; trainer: string }
  | { by: "host"; shard: number; verb: HostVerb };

/**
 * The subjects, streams and buckets of one job. Only this class knows how they are spelled: names are passed
 * in and returned unescaped.
 */
export class JobSubjects {
  readonly job: string;
  readonly #acrossAccounts: boolean;

  /**
   * Makes the subjects of a job. `acrossAccounts`: requests may come from another account of the broker,
   * which rewrites their reply subjects.
   * @throws BAD_NAME if the job's name is not valid.
   */
  constructor(job: string, acrossAccounts = false) {
    this.job = checkJobName(job);
    this.#acrossAccounts = acrossAccounts;
  }

  /** Subject of a trainer's journal record about a block. */
  log(shard: number, trainer: string, verb: TrainerVerb, parameter: string, index: number): string {
    return `ps.${this.job}.log.${shard}.trainer.${escapeId(trainer)}.${verb}.${escapeName(parameter)}.${index}`;
  }

  /** Subject of the journal record that ends a trainer's step. */
  clock(shard: number, trainer: string): string {
    return `ps.${this.job}.log.${shard}.trainer.${escapeId(trainer)}.clock`;
  }

  /** Subject of a trainer's journal record about many blocks. */
  batch(shard: number, trainer: string): string {
    return `ps.${this.job}.log.${shard}.trainer.${escapeId(trainer)}.batch`;
  }

  /** Subject of the journal record of a trainer's note. */
  note(shard: number, trainer: string): string {
    return `ps.${this.job}.log.${shard}.trainer.${escapeId(trainer)}.note`;
  }

  /** Subject of the journal record of a trainer's contribution to a fragment, or of a part of one. */
  contribute(shard: number, trainer: string): string {
    return `ps.${this.job}.log.${shard}.trainer.${escapeId(trainer)}.contribute`;
  }

  /** Subject of a host's journal record. */
  hostLog(shard: number, verb: HostVerb): string {
    return `ps.${this.job}.log.${shard}.host.${verb}`;
  }

  /** Common prefix of the subjects of all journal records. */
  logPrefix(): string {
    return `ps.${this.job}.log.`;
  }

  /** Subjects that a shard's journal stream captures. */
  shardLog(shard: number): string {
    return `ps.${this.job}.log.${shard}.>`;
  }

  /** Subject of a trainer's `pull` request to a block actor. */
  pull(parameter: string, index: number, trainer: string): string {
    return `ps.${this.job}.block.${escapeName(parameter)}.${index}.${escapeId(trainer)}.pull`;
  }

  /** Subscription of a block actor. */
  block(parameter: string, index: number): string {
    return `ps.${this.job}.block.${escapeName(parameter)}.${index}.*.pull`;
  }

  /** Subscription to the pulls of all blocks of the job. */
  allPulls(): string {
    return `ps.${this.job}.block.*.*.*.pull`;
  }

  /** Reads the block in a subject that {@link allPulls} matches; undefined if it names none. */
  parsePull(subject: string): { parameter: string; index: number } | undefined {
    const [, , , name = "", number] = subject.split(".");
    const index = parseIndex(number);
    if (index === undefined) return undefined;
    try {
      return { parameter: unescapeName(name), index };
    } catch {
      return undefined;
    }
  }

  /** Subject of a trainer's request for the outcomes of its records in a shard. */
  outcome(shard: number, trainer: string): string {
    return `ps.${this.job}.shard.${shard}.${escapeId(trainer)}.outcome`;
  }

  /** Subject of a trainer's request that waits for a step to close in a shard. */
  step(shard: number, trainer: string): string {
    return `ps.${this.job}.shard.${shard}.${escapeId(trainer)}.step`;
  }

  /** Subject of a trainer's request for the values of many blocks of a shard. */
  read(shard: number, trainer: string): string {
    return `ps.${this.job}.shard.${shard}.${escapeId(trainer)}.read`;
  }

  /** Subject of a trainer's request for the versions of the fragments of a shard. */
  fragments(shard: number, trainer: string): string {
    return `ps.${this.job}.shard.${shard}.${escapeId(trainer)}.fragments`;
  }

  /** Subject of a host's request to the owner of a shard. */
  owner(shard: number, host: string, verb: OwnerVerb): string {
    return `ps.${this.job}.owner.${shard}.${escapeId(host)}.${verb}`;
  }

  /** Subscriptions of a shard's owner besides those of its blocks. */
  shardRequests(shard: number): Record<TrainerRequest | "owner", string> {
    const prefix = `ps.${this.job}.shard.${shard}.*`;
    return {
      outcome: `${prefix}.outcome`,
      read: `${prefix}.read`,
      step: `${prefix}.step`,
      fragments: `${prefix}.fragments`,
      owner: `ps.${this.job}.owner.${shard}.*.*`,
    };
  }

  /**
   * Subject that one run of a host listens to on each connection that answers, in the hosts' queue group. Nothing is
   * answered there: when the broker says that nobody listens, these connections are closed.
   */
  presence(run: string): string {
    return `ps.${this.job}.present.${escapeId(run)}`;
  }

  /** All subjects of {@link presence}. */
  allPresences(): string {
    return `ps.${this.job}.present.*`;
  }

  /** Subject of a trainer's lifecycle request. */
  lifecycle(trainer: string, verb: LifecycleVerb): string {
    return `ps.${this.job}.lifecycle.${escapeId(trainer)}.${verb}`;
  }

  /** Subscription of the hosts' queue group to lifecycle requests. */
  allLifecycle(): string {
    return `ps.${this.job}.lifecycle.*.*`;
  }

  /** Subject of a control request from a trainer or an operator. */
  control(trainer: string, verb: ControlVerb): string {
    return `ps.${this.job}.control.${escapeId(trainer)}.${verb}`;
  }

  /** Subscription of every host to requests that end a save. */
  allStops(): string {
    return `ps.${this.job}.control.*.stop`;
  }

  /** Subscription of the hosts' queue group to control requests. */
  allControl(): string {
    return `ps.${this.job}.control.*.*`;
  }

  /** Subject that the stream of an abandoned journal captures; nobody publishes to it. */
  leftJournal(shard: number, generation: number): string {
    return `ps.${this.job}.left.${shard}.${generation}`;
  }

  /** Subject of the manifests of a shard's snapshots. */
  manifest(shard: number): string {
    return `ps.${this.job}.snap.${shard}.manifest`;
  }

  /** Subject of a part of the fold's state in a snapshot. */
  snapshotState(shard: number, part: number): string {
    return `ps.${this.job}.snap.${shard}.state.${part}`;
  }

  /** Subject of a block's values (`slot` 0), or of one of its optimizer slots, in a snapshot. */
  piece(shard: number, parameter: string, index: number, slot: number): string {
    return `ps.${this.job}.snap.${shard}.piece.${escapeName(parameter)}.${index}.${slot}`;
  }

  /** All subjects of one shard in the snapshot stream. */
  shardSnapshots(shard: number): string {
    return `ps.${this.job}.snap.${shard}.>`;
  }

  /** Subjects that the snapshot stream captures. */
  allSnapshots(): string {
    return `ps.${this.job}.snap.>`;
  }

  /** Subject of a shard's part of the job's tape. */
  tape(shard: number): string {
    return `ps.${this.job}.tape.${shard}`;
  }

  /** Subjects that the stream of the tape captures. */
  allTapes(): string {
    return `ps.${this.job}.tape.>`;
  }

  /** Inbox prefix of a trainer, without a final dot. Hosts answer a trainer nowhere else. */
  inbox(trainer: string): string {
    return `_INBOX_${this.job}.${escapeId(trainer)}`;
  }

  /** Inbox prefix of a host. No trainer's id is escaped as `=host`. */
  hostInbox(host: string): string {
    return `_INBOX_${this.job}.=host.${escapeId(host)}`;
  }

  /** Returns whether a reply subject lies under the inbox of the trainer with this id. */
  isTrainerInbox(reply: string, trainer: string): boolean {
    return isBelow(reply, this.inbox(trainer));
  }

  /**
   * Returns whether a request of this trainer may be answered at `reply`. The subject lies below the
   * trainer's own inbox or, in a job across accounts only, is one that the broker maps back into the account
   * of the request. Such a subject does not tell which trainer it leads to, so a job of one account takes
   * none.
   */
  mayAnswer(reply: string, trainer: string): boolean {
    if (this.isTrainerInbox(reply, trainer)) return true;
    return this.#acrossAccounts && this.isOfOtherAccount(reply);
  }

  /** Returns whether the broker made up this reply subject for a request from another of its accounts. */
  isOfOtherAccount(reply: string): boolean {
    return isBelow(reply, ACCOUNT_REPLY);
  }

  /** Returns whether a reply subject lies under the inbox of the host with this id. */
  isHostInbox(reply: string, host: string): boolean {
    return isBelow(reply, this.hostInbox(host));
  }

  /**
   * Stream of a shard's journal. From generation 2 on the generation is part of the name: a PubAck names the
   * stream, and so the generation of its sequence number.
   */
  journalStream(shard: number, generation: number): string {
    return generation === 1 ? `PS_${this.job}_${shard}` : `PS_${this.job}_${shard}_${generation}`;
  }

  /**
   * Reads shard and generation in the name of a journal stream of this job.
   * @throws BAD_MESSAGE if the stream is not a journal of this job.
   */
  parseJournalStream(stream: string): { shard: number; generation: number } {
    const [shard, generation = 1] = stream
      .slice(this.bucket().length + 1)
      .split("_")
      .map(parseIndex);
    // Only the canonical spelling is accepted, for instance no leading zeros: a stream has one name.
    if (shard !== undefined && this.journalStream(shard, generation) === stream) {
      return { shard, generation };
    }
    throw new PserverError(
      "BAD_MESSAGE",
      `expected a journal stream of job ${this.job}; received ${stream.slice(0, 80)}`,
    );
  }

  /** Stream of the job's snapshots. */
  snapshotStream(): string {
    return `PS_${this.job}_SNAPSHOT`;
  }

  /** Stream of the job's tape. */
  tapeStream(): string {
    return `PS_${this.job}_TAPE`;
  }

  /** Stream that is created and removed again to find out whether the broker has storage left. */
  storageProbeStream(): string {
    return `PS_${this.job}_ROOM`;
  }

  /** Subject that {@link storageProbeStream} captures; nobody publishes to it. */
  storageProbe(): string {
    return `ps.${this.job}.room`;
  }

  /** KV bucket of the job's entries. */
  bucket(): string {
    return `PS_${this.job}`;
  }

  /** KV bucket of the leases; its entries expire. */
  leaseBucket(): string {
    return `PS_${this.job}_LEASE`;
  }

  /**
   * Parses a journal subject of this job.
   * @throws BAD_MESSAGE or BAD_NAME if the subject is not one.
   */
  parseLog(subject: string): LogSubject {
    const tokens = subject.split(".");
    const [root, job, log, shardToken, by, ...rest] = tokens;
    const shard = parseIndex(shardToken);
    if (root === "ps" && job === this.job && log === "log" && shard !== undefined) {
      const [first = "", second = "", third = "", fourth] = rest;
      const index = parseIndex(fourth);
      if (by === "host" && rest.length === 1 && isOneOf(HOST_VERBS, first)) {
        return { by: "host", shard, verb: first };
      }
      if (by === "trainer" && rest.length === 2 && isOneOf(BLOCKLESS_VERBS, second)) {
        return { by: second, shard, trainer: unescapeId(first) };
      }
      if (
        by === "trainer" &&
        rest.length === 4 &&
        isOneOf(TRAINER_VERBS, second) &&
        index !== undefined
      ) {
        const [trainer, parameter] = [unescapeId(first), unescapeName(third)];
        return { by: "trainer", shard, trainer, verb: second, parameter, index };
      }
    }
    throw new PserverError(
      "BAD_MESSAGE",
      `expected a journal subject of job ${this.job}; received ${subject.slice(0, 120)}`,
    );
  }

  /**
   * Reads the sender's id and the verb of a request whose subject ends in `<id>.<verb>`.
   * @throws BAD_NAME if the id is not an escaped name.
   */
  parseSender(subject: string): { id: string; verb: string } {
    const tokens = subject.split(".");
    return { id: unescapeId(tokens.at(-2) ?? ""), verb: tokens.at(-1) ?? "" };
  }
}

/** Returns whether a subject lies below a prefix of tokens and may be published to. */
function isBelow(subject: string, prefix: string): boolean {
  return subject.startsWith(`${prefix}.`) && INBOX_TOKENS.test(subject.slice(prefix.length + 1));
}

function parseIndex(token: string | undefined): number | undefined {
  if (token === undefined || !/^(?:0|[1-9][0-9]{0,8})$/.test(token)) return undefined;
  return Number(token);
}

/** No job's name holds a `_`, so the first one ends it. */
const STREAM_OF_JOB = /^(?:KV_)?PS_([A-Za-z0-9-]{1,40})(?:_.*)?$/;

/** Returns the name of the stream that keeps a KV bucket. */
export function bucketStream(bucket: string): string {
  return `KV_${bucket}`;
}

/** Returns the job that a stream belongs to, by its name; undefined for a stream of something else. */
export function jobOfStream(stream: string): string | undefined {
  return STREAM_OF_JOB.exec(stream)?.[1];
}
