import { PserverError } from "./errors.ts";
import { checkJobName, escapeId, escapeName, unescapeId, unescapeName } from "./names.ts";

/** Verbs of the journal that trainers publish about a block; `clock` is about none. */
export const TRAINER_VERBS = ["init", "push", "set"] as const;
/** One of {@link TRAINER_VERBS}. */
export type TrainerVerb = (typeof TRAINER_VERBS)[number];

/** Verbs of the journal that only hosts publish. */
export const HOST_VERBS = [
  "rules",
  "members",
  "declare",
  "drop",
  "floor",
  "sessions",
  "forget",
] as const;
/** One of {@link HOST_VERBS}. */
export type HostVerb = (typeof HOST_VERBS)[number];

/** Requests of the lifecycle. */
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

/** Requests to whichever host answers first. */
export const CONTROL_VERBS = ["save", "stop", "snapshot", "hosts", "versions"] as const;
/** One of {@link CONTROL_VERBS}. */
export type ControlVerb = (typeof CONTROL_VERBS)[number];

/** Requests to the owner of one shard, from hosts. */
export const OWNER_VERBS = [
  "check",
  "pull",
  "snapshot",
  "status",
  "memory",
  "versions",
  "trainers",
] as const;
/** One of {@link OWNER_VERBS}. */
export type OwnerVerb = (typeof OWNER_VERBS)[number];

/** Tokens that a client may choose for its inboxes: printable ASCII without wildcards. */
const INBOX_TOKENS = /^[!-)+,\-/-=?-~]+(?:\.[!-)+,\-/-=?-~]+)*$/;

/** Prefix of the replies that the broker makes for a request between two of its accounts. */
const ACCOUNT_REPLY = "_R_";

/** What a journal subject says: who does what to which block. */
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
  | { by: "host"; shard: number; verb: HostVerb };

/**
 * The subjects, streams and buckets of one job: the only place that knows how they are spelled.
 * Names go in and come out unescaped.
 */
export class JobSubjects {
  readonly job: string;
  readonly #acrossAccounts: boolean;

  /**
   * `acrossAccounts`: whether requests may come from another account of the broker, which rewrites
   * where their answers go.
   * @throws BAD_NAME if the job's name is not valid.
   */
  constructor(job: string, acrossAccounts = false) {
    this.job = checkJobName(job);
    this.#acrossAccounts = acrossAccounts;
  }

  /** Journal record of a trainer. */
  log(shard: number, trainer: string, verb: TrainerVerb, parameter: string, index: number): string {
    return `ps.${this.job}.log.${shard}.trainer.${escapeId(trainer)}.${verb}.${escapeName(parameter)}.${index}`;
  }

  /** Journal record of a trainer that has ended a step. */
  clock(shard: number, trainer: string): string {
    return `ps.${this.job}.log.${shard}.trainer.${escapeId(trainer)}.clock`;
  }

  /** Journal record of a host. */
  hostLog(shard: number, verb: HostVerb): string {
    return `ps.${this.job}.log.${shard}.host.${verb}`;
  }

  /** What the subjects of all journal records begin with. */
  logPrefix(): string {
    return `ps.${this.job}.log.`;
  }

  /** Everything a shard's journal stream captures. */
  shardLog(shard: number): string {
    return `ps.${this.job}.log.${shard}.>`;
  }

  /** Request `pull` of a trainer to a block actor. */
  pull(parameter: string, index: number, trainer: string): string {
    return `ps.${this.job}.block.${escapeName(parameter)}.${index}.${escapeId(trainer)}.pull`;
  }

  /** What a block actor subscribes to. */
  block(parameter: string, index: number): string {
    return `ps.${this.job}.block.${escapeName(parameter)}.${index}.*.pull`;
  }

  /** The pulls of all blocks of the job. */
  allPulls(): string {
    return `ps.${this.job}.block.*.*.*.pull`;
  }

  /** The block that a subject {@link allPulls} covers is of; undefined if it names none. */
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

  /** Request of a trainer for the outcomes of its records in a shard. */
  outcome(shard: number, trainer: string): string {
    return `ps.${this.job}.shard.${shard}.${escapeId(trainer)}.outcome`;
  }

  /** Request of a trainer that waits for a step of a shard. */
  step(shard: number, trainer: string): string {
    return `ps.${this.job}.shard.${shard}.${escapeId(trainer)}.step`;
  }

  /** Request of a host to the owner of a shard. */
  owner(shard: number, host: string, verb: OwnerVerb): string {
    return `ps.${this.job}.owner.${shard}.${escapeId(host)}.${verb}`;
  }

  /** What a shard's owner subscribes to beside its blocks. */
  shardRequests(shard: number): { outcome: string; step: string; owner: string } {
    return {
      outcome: `ps.${this.job}.shard.${shard}.*.outcome`,
      step: `ps.${this.job}.shard.${shard}.*.step`,
      owner: `ps.${this.job}.owner.${shard}.*.*`,
    };
  }

  /** Lifecycle request of a trainer. */
  lifecycle(trainer: string, verb: LifecycleVerb): string {
    return `ps.${this.job}.lifecycle.${escapeId(trainer)}.${verb}`;
  }

  /** What hosts subscribe to, in a queue group, for lifecycle requests. */
  allLifecycle(): string {
    return `ps.${this.job}.lifecycle.*.*`;
  }

  /** Control request of a trainer or operator. */
  control(trainer: string, verb: ControlVerb): string {
    return `ps.${this.job}.control.${escapeId(trainer)}.${verb}`;
  }

  /** What every host subscribes to beside that, to hear of saves that are to end. */
  allStops(): string {
    return `ps.${this.job}.control.*.stop`;
  }

  /** What hosts subscribe to, in a queue group, for control requests. */
  allControl(): string {
    return `ps.${this.job}.control.*.*`;
  }

  /** What the stream of a journal that was left captures; nobody publishes there. */
  leftJournal(shard: number, generation: number): string {
    return `ps.${this.job}.left.${shard}.${generation}`;
  }

  /** Manifests of a shard's snapshots. */
  manifest(shard: number): string {
    return `ps.${this.job}.snap.${shard}.manifest`;
  }

  /** A part of the fold's state in a snapshot. */
  snapshotState(shard: number, part: number): string {
    return `ps.${this.job}.snap.${shard}.state.${part}`;
  }

  /** A block's values (`slot` 0) or one of its optimizer slots in a snapshot. */
  piece(shard: number, parameter: string, index: number, slot: number): string {
    return `ps.${this.job}.snap.${shard}.piece.${escapeName(parameter)}.${index}.${slot}`;
  }

  /** Everything of one shard in the snapshot stream. */
  shardSnapshots(shard: number): string {
    return `ps.${this.job}.snap.${shard}.>`;
  }

  /** Everything the snapshot stream captures. */
  allSnapshots(): string {
    return `ps.${this.job}.snap.>`;
  }

  /** Inbox prefix of a trainer, without a final dot; hosts answer it nowhere else. */
  inbox(trainer: string): string {
    return `_INBOX_${this.job}.${escapeId(trainer)}`;
  }

  /** Inbox prefix of a host. `=host` is no escape of any trainer's id. */
  hostInbox(host: string): string {
    return `_INBOX_${this.job}.=host.${escapeId(host)}`;
  }

  /** Whether a reply subject lies under the inbox of the trainer with this id. */
  isTrainerInbox(reply: string, trainer: string): boolean {
    return isBelow(reply, this.inbox(trainer));
  }

  /**
   * Whether a request of this trainer may be answered at `reply`: below its own inbox or, across
   * accounts only, where the broker leads back into the account that the request came from. Where
   * that is does not show in such a subject, so a job of one account takes none.
   */
  mayAnswer(reply: string, trainer: string): boolean {
    if (this.isTrainerInbox(reply, trainer)) return true;
    return this.#acrossAccounts && this.isOfOtherAccount(reply);
  }

  /** Whether the broker has made a reply subject for a request from another of its accounts. */
  isOfOtherAccount(reply: string): boolean {
    return isBelow(reply, ACCOUNT_REPLY);
  }

  /** Whether a reply subject lies under the inbox of the host with this id. */
  isHostInbox(reply: string, host: string): boolean {
    return isBelow(reply, this.hostInbox(host));
  }

  /**
   * Stream of a shard's journal. A stream made anew has its generation in the name, so that a
   * PubAck, which names the stream, says of which generation its sequence is.
   */
  journalStream(shard: number, generation: number): string {
    return generation === 1 ? `PS_${this.job}_${shard}` : `PS_${this.job}_${shard}_${generation}`;
  }

  /**
   * Shard and generation of a journal stream of this job.
   * @throws BAD_MESSAGE if it is no such stream.
   */
  parseJournalStream(stream: string): { shard: number; generation: number } {
    const [shard, generation = 1] = stream
      .slice(this.bucket().length + 1)
      .split("_")
      .map(parseIndex);
    // Spelled again, so that nothing else counts as the same stream.
    if (shard !== undefined && this.journalStream(shard, generation) === stream) {
      return { shard, generation };
    }
    throw new PserverError(
      "BAD_MESSAGE",
      `no journal stream of job ${this.job}: ${stream.slice(0, 80)}`,
    );
  }

  /** Stream of the job's snapshots. */
  snapshotStream(): string {
    return `PS_${this.job}_SNAPSHOT`;
  }

  /** Stream that is made to see whether the broker has room, and removed. */
  roomStream(): string {
    return `PS_${this.job}_ROOM`;
  }

  /** What that stream captures; nobody publishes there. */
  room(): string {
    return `ps.${this.job}.room`;
  }

  /** KV bucket of the job's records. */
  bucket(): string {
    return `PS_${this.job}`;
  }

  /** KV bucket of the leases; its entries expire. */
  leaseBucket(): string {
    return `PS_${this.job}_LEASE`;
  }

  /**
   * What a journal subject of this job says.
   * @throws BAD_MESSAGE or BAD_NAME if it is no such subject.
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
      if (by === "trainer" && rest.length === 2 && second === "clock") {
        return { by: "clock", shard, trainer: unescapeId(first) };
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
      `no journal subject of job ${this.job}: ${subject.slice(0, 120)}`,
    );
  }

  /**
   * The sender's id and the verb of a request whose subject ends in `<id>.<verb>`.
   * @throws BAD_NAME if the id is no escaped name.
   */
  parseSender(subject: string): { id: string; verb: string } {
    const tokens = subject.split(".");
    return { id: unescapeId(tokens.at(-2) ?? ""), verb: tokens.at(-1) ?? "" };
  }
}

/** Whether `text` is one of a list of words. */
export function isOneOf<Word extends string>(words: readonly Word[], text: string): text is Word {
  return (words as readonly string[]).includes(text);
}

/** Whether a subject that may be published to lies below a prefix of tokens. */
function isBelow(subject: string, prefix: string): boolean {
  return subject.startsWith(`${prefix}.`) && INBOX_TOKENS.test(subject.slice(prefix.length + 1));
}

function parseIndex(token: string | undefined): number | undefined {
  if (token === undefined || !/^(?:0|[1-9][0-9]{0,8})$/.test(token)) return undefined;
  return Number(token);
}
