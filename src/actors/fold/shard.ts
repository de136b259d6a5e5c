import { createHash } from "node:crypto";
import { type Message, packValue, readCrc } from "../../protocol/codec.ts";
import type { GuardAction, Synchronization } from "../../protocol/config/index.ts";
import { type ErrorCode, ensureError, PserverError } from "../../protocol/errors.ts";
import { parseHostRecord } from "../../protocol/messages/host-records.ts";
import type { Outcome, OutcomeRequest } from "../../protocol/messages/outcomes.ts";
import { parseRecordHeader } from "../../protocol/messages/records.ts";
import type { KnowledgePage } from "../../protocol/messages/shard-knowledge.ts";
import { quoteName } from "../../protocol/names.ts";
import type { JobSubjects, LogSubject } from "../../protocol/subjects.ts";
import { ShardMemory } from "../kernel/shard-memory.ts";
import { closeStep } from "./apply-update.ts";
import type { Block, BlockName } from "./block-actor.ts";
import type { ShardHooks } from "./block-table.ts";
import {
  type FoldResult,
  foldHostRecord,
  foldTrainerRecord,
  type ParsedRecord,
  roundClosedBy,
  type TrainerSubject,
} from "./fold-record.ts";
import { type FoldState, FoldTables } from "./fold-state.ts";
import type { FragmentProgress } from "./fragments/fragment-table.ts";
import type { GuardPolicy } from "./guards/guard-table.ts";
import {
  addRecord,
  ChecksumComparison,
  checksumOf,
  type JournalChecksum,
  type NotedChecksum,
  toChecksum,
} from "./journal-checksum.ts";
import {
  type FoldedRecord,
  type FoldObserver,
  type JournalRecord,
  LogSubjects,
  type ReadSubject,
  readable,
  readMessage,
} from "./journal-record.ts";
import { KNOWN_RULES, type KnownRules } from "./rules.ts";
import type { StepProgress } from "./step-table.ts";
import { noRules, type RememberedSessions, type Senders } from "./trainer-table.ts";

/**
 * Codes that `apply` throws unchanged: they are about order, rules or memory, not about a record that cannot be
 * folded.
 */
const KNOWN_FAILURES: readonly ErrorCode[] = [
  "JOURNAL_DAMAGED",
  "UNKNOWN_RULES",
  "TOO_LARGE",
  "NO_MEMORY",
];

/** The answer to a trainer's record. */
export interface RecordAnswer {
  readonly trainer: string;
  readonly session: number;
  /** Subject of the answer, in the trainer's inbox; "" for no answer. */
  readonly reply: string;
  readonly outcome: Outcome;
  /** What a guard has done about it; undefined if none has, and for a repeated record. */
  readonly guarded?: GuardAction | undefined;
}

/** Options of {@link Shard}. */
export interface ShardOptions {
  readonly subjects: JobSubjects;
  /** Number of the shard. Records of other shards count as unreadable. */
  readonly shard: number;
  /** Memory of the values; by default a new one. */
  readonly memory?: ShardMemory;
  readonly hooks?: ShardHooks;
  /** Versions of the rules; by default all that this program knows. */
  readonly knownRules?: KnownRules;
}

/**
 * Folds the journal of a shard, record by record, and holds the state of the shard. Pure and synchronous: the outcome
 * of a record depends only on the records before it, its subject and its payload. A rejected record changes no block.
 */
export class Shard {
  readonly memory: ShardMemory;
  readonly #subjects: JobSubjects;
  readonly #logSubjects: LogSubjects;
  readonly #shard: number;
  readonly #tables: FoldTables;
  /** Get each record with its outcome. No part of the state. */
  #observers: readonly FoldObserver[] = [];
  #measures = false;
  #failure: PserverError | undefined;
  /** Compares the journal with noted checksums; no part of the state. */
  readonly #comparison: ChecksumComparison;
  #unobserved = 0;

  private constructor(parts: {
    readonly subjects: JobSubjects;
    readonly logSubjects: LogSubjects;
    readonly shard: number;
    readonly memory: ShardMemory;
    readonly tables: FoldTables;
  }) {
    this.#subjects = parts.subjects;
    this.#logSubjects = parts.logSubjects;
    this.#shard = parts.shard;
    this.memory = parts.memory;
    this.#tables = parts.tables;
    this.#comparison = new ChecksumComparison(parts.shard);
  }

  /** Creates a shard before its first record. */
  static create(options: ShardOptions): Shard {
    const { subjects, shard, memory = ShardMemory.create() } = options;
    const { hooks = {}, knownRules = KNOWN_RULES } = options;
    const logSubjects = new LogSubjects(subjects);
    const tables = new FoldTables({ job: subjects.job, shard, memory, hooks, knownRules });
    return new Shard({ subjects, logSubjects, shard, memory, tables });
  }

  /** How guards decide from the next record on, if not as parameters say: the state is then not that of the journal. */
  set guardPolicy(policy: GuardPolicy) {
    this.#tables.guards.policy = policy;
  }

  /** Callbacks for changes of blocks; replaces those of the options. */
  set hooks(hooks: ShardHooks) {
    this.#tables.blocks.hooks = hooks;
  }

  /** Who gets each record with its outcome, one after the other. An error of one does not reach the others. */
  get observers(): readonly FoldObserver[] {
    return this.#observers;
  }

  set observers(observers: readonly FoldObserver[]) {
    this.#observers = observers;
    this.#measures = observers.some(({ measures }) => measures);
  }

  /** Sequence of the last record folded; 0 before the first. */
  get seq(): number {
    return this.#tables.seq;
  }

  /** Version of the rules in force; 0 before the first `rules` record. */
  get rules(): number {
    return this.#tables.rules?.version ?? 0;
  }

  /** How the job's trainers are synchronized, from the first `rules` record. */
  get synchronization(): Synchronization {
    return this.#tables.steps.synchronization;
  }

  /** Progress of the steps of the job's trainers; a live view. */
  get steps(): StepProgress {
    return this.#tables.steps;
  }

  /** The fragments of the model that contributions go to; a live view. */
  get fragments(): FragmentProgress {
    return this.#tables.fragments;
  }

  /** Returns who of the members may contribute to a round of a fragment; undefined if all may. */
  sampledFor(fragment: string, round: number): ReadonlySet<string> | undefined {
    const { fragments, steps } = this.#tables;
    return fragments.samples.of(fragment, round, steps);
  }

  /** Returns how many rounds of a fragment have closed; undefined if no parameter here belongs to it. */
  fragmentVersion(fragment: string): number | undefined {
    const { declarations, fragments } = this.#tables;
    if (declarations.ofFragment(fragment).length === 0) return undefined;
    return fragments.get(fragment)?.version ?? 0;
  }

  /** Names and versions of all fragments that have parameters in the shard, in order of the names. */
  fragmentVersions(): [fragment: string, version: number][] {
    const { declarations, fragments } = this.#tables;
    return declarations.fragments.map((name) => [name, fragments.get(name)?.version ?? 0]);
  }

  /** Checksum in the envelope of record {@link seq}; 0 before the first and after a skipped gap. */
  get lastCrc(): number {
    return this.#tables.crc;
  }

  /**
   * The checksum of the journal up to {@link seq}: equal if the same records were folded. It is no part of the state;
   * a manifest keeps it, and {@link continueChecksum} restores it.
   */
  get noted(): NotedChecksum {
    return { seq: this.#tables.seq, checksum: toChecksum(this.#tables.sums) };
  }

  /** Whether sequence {@link seq} is known to have a record: not before the first, and not in a skipped gap. */
  get endsWithRecord(): boolean {
    return this.#tables.endsWithRecord;
  }

  /** Bytes of all values and slots. */
  get valueBytes(): number {
    return this.#tables.blocks.bytes;
  }

  /** Counts of senders and of their rejected and unreadable records. */
  get senders(): Senders {
    return {
      trainers: this.#tables.trainers.count,
      declared: this.#tables.declarations.count,
      unreadable: this.#tables.unreadable.total,
      rejectedOf: this.#tables.trainers.rejectedCounts(),
      unreadableOf: this.#tables.unreadable.sorted(),
    };
  }

  /** How many records an observer could neither observe nor note as failed. */
  get unobserved(): number {
    return this.#unobserved;
  }

  /** What the shard knows of its job from hosts' records, with up to `count` parameters after a name. */
  known(after: string, count: number): KnowledgePage {
    return this.#tables.known(after, count);
  }

  /** The trainers that the shard remembers; a live view. */
  get trainers(): RememberedSessions {
    return this.#tables.trainers;
  }

  /**
   * Folds the next record.
   * @returns the answer to a trainer's record, repeated and rejected ones included; undefined for a
   * host's record and for one without a readable sender.
   * @throws BAD_CHECKSUM, only with `reread: false`, if the payload does not match its checksum. The
   * shard is unchanged. After any other error the shard is unusable: each later call throws it again.
   * @throws JOURNAL_DAMAGED unless the record is the one after {@link seq}, or if records up to it are not those
   * that were folded before, see {@link expect}.
   * @throws UNKNOWN_RULES for a `rules` record of a version this program lacks.
   * @throws TOO_LARGE if this process has no memory for a block that the rules allow.
   * @throws FOLD_FAILED, naming the record, for anything else that goes wrong: a defect of this program.
   */
  apply(record: JournalRecord): RecordAnswer | undefined {
    if (this.#failure !== undefined) throw this.#failure;
    let subject: LogSubject | undefined;
    try {
      this.#checkOrder(record.seq);
      const { rules } = this.#tables;
      const read = this.#logSubjects.read(record.subject);
      subject = read.parsed;
      const message = readMessage(record, subject, rules, this.#shard);
      const settled = this.#fold(record, subject, message);
      this.#passRecord(record, read, message !== undefined);
      this.#comparison.check(record.seq, this.#tables.sums);
      return settled;
    } catch (error) {
      const cause = ensureError(error);
      if (cause.code === "BAD_CHECKSUM") throw cause;
      this.#failure = KNOWN_FAILURES.includes(cause.code)
        ? cause
        : foldFailed(this.#shard, record.seq, subject, cause);
      throw this.#failure;
    }
  }

  /**
   * Has the journal compared with checksums noted when it was folded before, ascending, while it is folded on.
   * Replaces those of earlier calls.
   */
  expect(noted: readonly NotedChecksum[]): void {
    this.#comparison.expect(noted, this.#tables.seq);
  }

  /** Whether all expected checksums have been compared. */
  get isCompared(): boolean {
    return this.#comparison.isDone;
  }

  /** Returns the block of this name; undefined if there is none. */
  block(parameter: string, index: number): Block | undefined {
    return this.#tables.blocks.get(parameter, index);
  }

  /** Returns the block that has this number now; undefined if there is none. */
  blockOfNumber(number: number): Block | undefined {
    return this.#tables.blocks.ofNumber(number);
  }

  /** Returns the name of the block that was declared under this number; undefined if there is none. */
  nameOfNumber(number: number): BlockName | undefined {
    const found = this.#tables.declarations.ofNumber(number);
    return found && { parameter: found.declared.name, index: found.index };
  }

  /** Lists all blocks, or those of one parameter, in no particular order. */
  blocks(parameter?: string): Iterable<Block> {
    return parameter === undefined ? this.#tables.blocks.all() : this.#tables.blocks.of(parameter);
  }

  /**
   * Looks up the outcomes of a trainer's records, in the order of the request. The records must have been folded: an
   * unknown number is BAD_CHECKSUM, because its record was unreadable.
   */
  outcomes(trainer: string, request: Pick<OutcomeRequest, "session" | "numbers">): Outcome[] {
    if (this.#failure !== undefined) throw this.#failure;
    const rules = this.#tables.rules;
    if (rules === undefined) return request.numbers.map((n) => noRules(n, this.#tables.seq));
    return request.numbers.map((n) =>
      this.#tables.trainers.outcome(trainer, request.session, n, this.#tables.seq, rules),
    );
  }

  /** The state without values and slots; equal shards give equal bytes. */
  saveState(): FoldState {
    return this.#tables.save();
  }

  /** Computes the SHA-256, in hex, of the state, all values and slots: equal exactly if the shards are. */
  digest(): string {
    return this.#tables.digest();
  }

  /**
   * Continues with record 1 of a new journal; all else stays. Known outcomes stay valid and move to record 0: with a
   * sequence of the old journal, whoever asks for them would wait for that record in the new one.
   */
  restartJournal(): void {
    this.#tables.restartJournal();
    this.#comparison.restart(0);
  }

  /**
   * Turns this into the first state of another job's shard; see {@link FoldTables.detach} for what it drops and
   * returns.
   */
  detach(): number {
    this.#comparison.restart(0);
    return this.#tables.detach();
  }

  /**
   * Skips the records after {@link seq} up to `seq`, which the journal does not hold and nobody has
   * folded; all else stays.
   * @throws INTERNAL if record `seq` has been folded.
   */
  skipTo(seq: number): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (seq <= this.#tables.seq) {
      throw new PserverError(
        "INTERNAL",
        `journal of shard ${this.#shard}: cannot skip to record ${seq}: record ${this.#tables.seq} is already applied`,
        { shard: this.#shard, expected: this.#tables.seq + 1, received: seq },
      );
    }
    this.#tables.moveTo(seq);
  }

  /**
   * Restores the shard that {@link saveState} was called on. `readSlot` returns the bytes of each slot
   * of each block (slot 0: the values), which are copied. Calls `hooks.blockAdded` for every block.
   * @throws SNAPSHOT_DAMAGED if the state contradicts itself or the bytes.
   * @throws UNKNOWN_RULES if this program lacks the rules of the state.
   */
  static restore(
    options: ShardOptions,
    state: unknown,
    readSlot: (block: Block, slot: number) => Uint8Array,
  ): Shard {
    const shard = Shard.restoreEmpty(options, state);
    for (const block of shard.blocks()) {
      for (let slot = 0; slot <= block.slots; slot++) {
        shard.loadSlot(block.parameter, block.index, slot, readSlot(block, slot));
      }
    }
    return shard;
  }

  /**
   * Restores like {@link restore}, but without bytes: {@link loadSlot} brings them. Until {@link checkLoaded} passes,
   * the shard must not be used for anything else.
   */
  static restoreEmpty(options: ShardOptions, state: unknown): Shard {
    const shard = Shard.create(options);
    shard.#tables.restore(state);
    return shard;
  }

  /** Continues a restored shard's journal checksum from the one in its manifest. */
  continueChecksum(checksum: JournalChecksum): void {
    this.#tables.sums.set(checksum);
    this.#comparison.restart(this.#tables.seq);
  }

  /**
   * Copies bytes into a slot of a restored block.
   * @throws SNAPSHOT_DAMAGED if there is no such slot, or it has another length.
   */
  loadSlot(parameter: string, index: number, slot: number, bytes: Uint8Array): void {
    this.#tables.loadSlot(parameter, index, slot, bytes);
  }

  /** @throws SNAPSHOT_DAMAGED if a slot of a restored block has not been loaded. */
  checkLoaded(): void {
    this.#tables.unloaded.check();
  }

  #checkOrder(seq: number): void {
    const expected = this.#tables.seq + 1;
    if (seq === expected) return;
    throw new PserverError(
      "JOURNAL_DAMAGED",
      `journal of shard ${this.#shard}: expected record ${expected}; found ${seq}`,
      { shard: this.#shard, expected, found: seq },
    );
  }

  #fold(
    record: JournalRecord,
    subject: LogSubject | undefined,
    message: Message | undefined,
  ): RecordAnswer | undefined {
    let settled: RecordAnswer | undefined;
    if (subject?.shard !== this.#shard) {
      this.#foldUnreadable(record, undefined);
    } else if (message === undefined) this.#foldUnreadable(record, subject);
    else if (subject.by === "host") this.#foldHost(record, subject, message);
    else settled = this.#foldTrainer(record, subject, message);
    this.memory.unstage();
    this.#closeStep();
    return settled;
  }

  /** Moves the fold's place and the journal's checksum past a record. */
  #passRecord({ seq, payload }: JournalRecord, { crc }: ReadSubject, isRead: boolean): void {
    const tables = this.#tables;
    tables.seq = seq;
    tables.crc = isRead ? readCrc(payload) : 0;
    tables.endsWithRecord = true;
    addRecord(tables.sums, seq, checksumOf(crc, payload, isRead));
  }

  #foldHost(
    journalRecord: JournalRecord,
    subject: Extract<LogSubject, { by: "host" }>,
    message: Message,
  ): void {
    const { seq, timeMs = 0 } = journalRecord;
    const { verb } = subject;
    const record = readable(() => parseHostRecord(verb, message));
    if (record === undefined) {
      this.#foldUnreadable(journalRecord, subject);
      return;
    }
    const fold = { tables: this.#tables, memory: this.memory };
    const closed = roundClosedBy(fold, record);
    this.#observe({ kind: "host", seq, timeMs, record, closed });
    foldHostRecord(fold, record, closed);
  }

  /** Counts a record that cannot be answered, for the trainer in its subject if there is one. */
  #foldUnreadable(
    { seq, payload, timeMs = 0 }: JournalRecord,
    subject: LogSubject | undefined,
  ): void {
    const trainer = subject === undefined || subject.by === "host" ? undefined : subject.trainer;
    const { unreadable, rules } = this.#tables;
    unreadable.count(trainer, rules?.unreadableTrainersMax ?? 0);
    this.#observe({ kind: "unreadable", seq, timeMs, subject, payloadBytes: payload.length });
  }

  /** Shows a record to the observers. Their errors do not stop the fold. */
  #observe(record: FoldedRecord): void {
    for (const observer of this.#observers) {
      try {
        observer.observe(record);
      } catch (error) {
        this.#observeFailed(observer, record, ensureError(error));
      }
    }
  }

  #observeFailed(observer: FoldObserver, record: FoldedRecord, error: PserverError): void {
    try {
      observer.failed(record, error);
    } catch {
      this.#unobserved += 1;
    }
  }

  #foldTrainer(
    record: JournalRecord,
    subject: TrainerSubject,
    message: Message,
  ): RecordAnswer | undefined {
    const { trainer } = subject;
    const header = readable(() => parseRecordHeader(message.fields));
    if (header === undefined) {
      this.#foldUnreadable(record, subject);
      return undefined;
    }
    const isInbox = this.#subjects.isTrainerInbox(header.reply, trainer);
    const isAnswerable = isInbox || header.reply === "";
    const headerBytes = record.payload.length - message.data.length;
    const parsed = { header, message, headerBytes, isAnswerable };
    const { outcome, verdict } = this.#settle(record, subject, parsed);
    const reply = isInbox ? header.reply : "";
    return { trainer, session: header.session, reply, outcome, guarded: verdict?.action };
  }

  #settle(
    { seq, timeMs = 0 }: JournalRecord,
    subject: TrainerSubject,
    received: ParsedRecord,
  ): FoldResult {
    const { header, message } = received;
    const folded = foldTrainerRecord(
      { tables: this.#tables, memory: this.memory, measures: this.#measures },
      seq,
      subject,
      received,
    );
    if (this.#observers.length > 0) {
      const kind = "trainer";
      const { outcome, change, runs, isRepeat, fault, contributed, verdict } = folded;
      const sent = { subject, header, message };
      const done = { outcome, isRepeat, change, runs, fault, contributed, verdict };
      this.#observe({ kind, seq, timeMs, ...sent, ...done });
    }
    return folded;
  }

  /** Applies the open step if the folded record has ended it. */
  #closeStep(): void {
    const closed = this.#tables.steps.close();
    if (closed === undefined) return;
    const { blocks } = this.#tables;
    closeStep({ memory: this.memory, blocks }, blocks.all(), closed.divisor);
  }
}

/** Returns the error for a record that the fold cannot pass; `subject` as far as it is known. */
function foldFailed(
  shard: number,
  seq: number,
  subject: LogSubject | undefined,
  cause: PserverError,
): PserverError {
  const trainer = subject === undefined || subject.by === "host" ? undefined : subject.trainer;
  const verb = subject && ("verb" in subject ? subject.verb : subject.by);
  const sender = trainer === undefined ? "a host" : `trainer ${quoteName(trainer)}`;
  const what = verb === undefined ? "" : `, a ${verb} of ${sender},`;
  return new PserverError(
    "FOLD_FAILED",
    `shard ${shard}: record ${seq}${what} cannot be folded: ${cause.code}: ${cause.message}`,
    { shard, seq, trainer, verb },
    { cause },
  );
}

/** Computes the SHA-256, in hex, of a shard's state without values and slots. */
export function stateDigest(shard: Pick<Shard, "saveState">): string {
  return createHash("sha256").update(packValue(shard.saveState())).digest("hex");
}

/** Computes the SHA-256, in hex, of a block's values and slots. */
export function blockDigest(block: Pick<Block, "slots" | "slotBytes">): string {
  const hash = createHash("sha256");
  for (let slot = 0; slot <= block.slots; slot++) hash.update(block.slotBytes(slot));
  return hash.digest("hex");
}
