import { createHash } from "node:crypto";
import { isSealed, type Message, packValue, readCrc } from "../../protocol/codec.ts";
import type { Synchronization } from "../../protocol/config/index.ts";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import { parseHostRecord, type RulesRecord } from "../../protocol/host-records.ts";
import type { Outcome, OutcomeRequest } from "../../protocol/outcomes.ts";
import {
  parseClock,
  parseHead,
  parseTrainerRecord,
  type RecordHead,
} from "../../protocol/records.ts";
import type { HostVerb, JobSubjects, LogSubject } from "../../protocol/subjects.ts";
import { ShardMemory } from "../shard-memory.ts";
import { applyChange } from "./apply-record.ts";
import { type Block, type BlockHeader, blockLabel } from "./block.ts";
import { BlockTable, type ShardHooks } from "./block-table.ts";
import { type Change, checkRecord, checkReply } from "./check-record.ts";
import { DeclarationTable } from "./declaration-table.ts";
import {
  damaged,
  type FoldState,
  parseFoldState,
  rulesOfState,
  toFoldState,
} from "./fold-state.ts";
import { LogSubjects } from "./log-subjects.ts";
import { closeStep } from "./open-step.ts";
import { readable, readRecordMessage } from "./read-record.ts";
import { noRules, rejection } from "./rejection.ts";
import { HOST_VERBS_SINCE_2, KNOWN_RULES, type KnownRules, type Rules } from "./rules.ts";
import type { SavedSteps } from "./saved-steps.ts";
import { heldBytes, slotPlan } from "./slots.ts";
import { type StepProgress, StepTable } from "./step-table.ts";
import { type RememberedSessions, TrainerTable } from "./trainer-table.ts";
import { UnloadedSlots } from "./unloaded-slots.ts";
import { type Senders, UnreadableCounts } from "./unreadable-counts.ts";

/** One record of a shard's journal as the stream delivers it. The fold does not keep `payload`. */
export interface JournalRecord {
  readonly seq: number;
  readonly subject: string;
  readonly payload: Uint8Array;
  /**
   * False if the caller can read the record again: then `apply` throws BAD_CHECKSUM for a payload that
   * does not match its checksum instead of folding it as unreadable; it may have been damaged in
   * transit.
   */
  readonly reread?: boolean;
}

/** The answer to a trainer's record. */
export interface Settled {
  readonly trainer: string;
  readonly session: number;
  /** Subject of the answer, under the trainer's inbox; "" if none is to be sent. */
  readonly reply: string;
  readonly outcome: Outcome;
}

/** The subject of a trainer's record. */
type TrainerSubject = Exclude<LogSubject, { by: "host" }>;

/** A record of a trainer with its head parsed. */
interface Received {
  readonly head: RecordHead;
  readonly message: Message;
  /** Whether it asks for no answer, or for one to the trainer's own inbox. */
  readonly isAnswerable: boolean;
}

/** Options of {@link Shard}. */
export interface ShardOptions {
  readonly subjects: JobSubjects;
  /** Number of the shard; records of other shards count as unreadable. */
  readonly shard: number;
  /** Memory of the values; by default a new one. */
  readonly memory?: ShardMemory;
  readonly hooks?: ShardHooks;
  /** Versions of the rules; by default all that this program knows. */
  readonly knownRules?: KnownRules;
}

/**
 * The state of a shard: the fold of its journal, record by record. Pure and synchronous: the outcome
 * of a record depends only on the records before it, its subject and its payload. A rejected record
 * changes no block.
 */
export class Shard {
  readonly memory: ShardMemory;
  readonly #subjects: JobSubjects;
  readonly #logSubjects: LogSubjects;
  readonly #shard: number;
  readonly #knownRules: KnownRules;
  readonly #blocks: BlockTable;
  readonly #trainers: TrainerTable = new TrainerTable();
  readonly #steps: StepTable = new StepTable();
  readonly #declarations: DeclarationTable;
  readonly #unloaded: UnloadedSlots = new UnloadedSlots();
  #rules: Rules | undefined;
  #seq = 0;
  #crc = 0;
  readonly #unreadable: UnreadableCounts = new UnreadableCounts();
  #failure: PserverError | undefined;

  constructor(options: ShardOptions) {
    this.#subjects = options.subjects;
    this.#logSubjects = new LogSubjects(options.subjects);
    this.#shard = options.shard;
    this.memory = options.memory ?? new ShardMemory();
    this.#knownRules = options.knownRules ?? KNOWN_RULES;
    this.#blocks = new BlockTable(this.memory, options.hooks ?? {});
    this.#declarations = new DeclarationTable(options.shard);
  }

  /** Sequence of the last record folded; 0 before the first. */
  get seq(): number {
    return this.#seq;
  }

  /** Version of the rules in force; 0 before the first `rules` record. */
  get rules(): number {
    return this.#rules?.version ?? 0;
  }

  /** How the job's trainers are synchronized, from the first `rules` record. */
  get synchronization(): Synchronization {
    return this.#steps.synchronization;
  }

  /** Progress of the steps of the job's trainers; a live view. */
  get steps(): StepProgress {
    return this.#steps;
  }

  /** Checksum in the envelope of record {@link seq}; 0 before the first and after a skipped gap. */
  get lastCrc(): number {
    return this.#crc;
  }

  /** Bytes of all values and slots. */
  get valueBytes(): number {
    return this.#blocks.bytes;
  }

  /** Counts of senders and of their rejected and unreadable records. */
  get senders(): Senders {
    return {
      trainers: this.#trainers.count,
      declared: this.#declarations.count,
      unreadable: this.#unreadable.total,
      refusedOf: this.#trainers.wasteful(),
      unreadableOf: this.#unreadable.sorted(),
    };
  }

  /** The trainers that it remembers; a live view. */
  get trainers(): RememberedSessions {
    return this.#trainers;
  }

  /**
   * Folds the next record.
   * @returns the answer to a trainer's record, repeated and rejected ones included; undefined for a
   * host's record and for one without a readable sender.
   * @throws BAD_CHECKSUM, only with `reread: false`, if the payload does not match its checksum. The
   * shard is unchanged. After any other error the shard is unusable: each later call throws it again.
   * @throws JOURNAL_DAMAGED unless the record is the one after {@link seq}.
   * @throws UNKNOWN_RULES for a `rules` record of a version this program lacks.
   * @throws TOO_LARGE if this process has no memory for a block that the rules allow.
   */
  apply(record: JournalRecord): Settled | undefined {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      this.#checkOrder(record.seq);
      return this.#fold(record, this.#read(record));
    } catch (error) {
      const found = ensureError(error);
      if (found.code !== "BAD_CHECKSUM") this.#failure = found;
      throw found;
    }
  }

  /** The block of this name, if it exists. */
  block(parameter: string, index: number): Block | undefined {
    return this.#blocks.get(parameter, index);
  }

  /** All blocks, or those of one parameter, in no particular order. */
  blocks(parameter?: string): Iterable<Block> {
    return parameter === undefined ? this.#blocks.all() : this.#blocks.of(parameter);
  }

  /**
   * The outcomes of a trainer's records, in the order of the request. The records must have been
   * folded: an unknown number is BAD_CHECKSUM, because its record was unreadable.
   */
  outcomes(trainer: string, request: Pick<OutcomeRequest, "session" | "numbers">): Outcome[] {
    if (this.#failure !== undefined) throw this.#failure;
    const rules = this.#rules;
    if (rules === undefined) return request.numbers.map((n) => noRules(n, this.#seq));
    return request.numbers.map((n) =>
      this.#trainers.outcome(trainer, request.session, n, this.#seq, rules),
    );
  }

  /** The state without values and slots; equal shards give equal bytes. */
  saveState(): FoldState {
    const { synchronization } = this;
    const parts = {
      seq: this.#seq,
      crc: this.#crc,
      rules: this.rules,
      synchronization,
      ...(synchronization.mode === "async" ? {} : { steps: this.#steps.save() }),
      floor: this.#trainers.floor,
      unreadable: this.#unreadable.total,
      blocks: this.#blocks.sorted().map((block) => block.header()),
      declared: this.#declarations.sorted(),
      live: this.#trainers.live,
      unreadableOf: this.#unreadable.sorted(),
    };
    return toFoldState(parts, this.#trainers.sorted());
  }

  /** SHA-256, in hex, of the state, all values and slots: equal exactly if the shards are. */
  digest(): string {
    const hash = createHash("sha256").update(packValue(this.saveState()));
    for (const block of this.#blocks.sorted()) {
      for (let slot = 0; slot <= block.slots; slot++) hash.update(block.slotBytes(slot));
    }
    return hash.digest("hex");
  }

  /**
   * Continues with record 1 of a new journal; all else stays. Known outcomes stay valid and move to
   * record 0, because a sequence of the old journal would have their askers wait for a record of the
   * new one.
   */
  restartJournal(): void {
    this.#trainers.restartJournal();
    this.#seq = 0;
    this.#crc = 0;
  }

  /**
   * Skips the records after {@link seq} up to `seq`, which the journal does not hold and nobody has
   * folded; all else stays.
   * @throws INTERNAL if record `seq` has been folded.
   */
  skipTo(seq: number): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (seq <= this.#seq) {
      throw new PserverError(
        "INTERNAL",
        `journal of shard ${this.#shard}: cannot skip to record ${seq}: record ${this.#seq} is already applied`,
        { shard: this.#shard, expected: this.#seq + 1, received: seq },
      );
    }
    this.#seq = seq;
    // No record has this sequence, so there is no checksum to recognize it by.
    this.#crc = 0;
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
   * As {@link restore}, but the bytes come later, through {@link loadSlot}. Until {@link checkLoaded}
   * passes, the shard must not be used for anything else.
   */
  static restoreEmpty(options: ShardOptions, state: unknown): Shard {
    const shard = new Shard(options);
    const version = rulesOfState(state);
    if (version !== 0) shard.#requireRules(version);
    const restored = parseFoldState(state);
    shard.#seq = restored.seq;
    shard.#crc = restored.crc;
    shard.#unreadable.restore(restored.unreadable, restored.unreadableOf);
    if (restored.rules === 0) {
      if (restored.trainers.length + restored.blocks.length + restored.floor === 0) return shard;
      throw damaged("the fold's state: expected nothing before the first rules");
    }
    const rules = shard.#takeRules(restored);
    shard.#restoreSteps(restored.steps);
    shard.#trainers.restoreSessions(restored.floor, restored.live);
    for (const declared of restored.declared) shard.#declarations.restore(declared);
    for (const [trainer, entry] of restored.trainers) {
      shard.#trainers.restore(trainer, entry, rules);
    }
    for (const header of restored.blocks) shard.#restoreBlock(header, rules);
    return shard;
  }

  /**
   * Copies bytes into a slot of a restored block.
   * @throws SNAPSHOT_DAMAGED if there is no such slot, or it has another length.
   */
  loadSlot(parameter: string, index: number, slot: number, bytes: Uint8Array): void {
    const block = this.#blocks.get(parameter, index);
    if (block === undefined) {
      const label = blockLabel(parameter, index);
      throw damaged(`${label}: received bytes of a block that is not there`);
    }
    this.#unloaded.load(block, slot, bytes);
  }

  /** @throws SNAPSHOT_DAMAGED if a slot of a restored block has not been loaded. */
  checkLoaded(): void {
    this.#unloaded.check();
  }

  #restoreSteps(steps: SavedSteps | undefined): void {
    const expected = this.synchronization.mode !== "async";
    if (expected !== (steps !== undefined)) {
      throw damaged(`the fold's state: expected ${expected ? "steps" : "no steps"}`);
    }
    if (steps !== undefined) this.#steps.restore(steps);
  }

  #restoreBlock(header: BlockHeader, rules: Rules): void {
    const label = blockLabel(header.parameter, header.index);
    if (this.#blocks.get(header.parameter, header.index) !== undefined) {
      throw damaged(`${label}: expected once; received twice`);
    }
    const plan = slotPlan(header, this.synchronization);
    if (header.open !== undefined && plan.accumulator === undefined) {
      throw damaged(`${label}: expected no open step in a job without steps`);
    }
    if (
      this.valueBytes + heldBytes(header, plan) > rules.shardBytesMax ||
      this.#blocks.count >= rules.blocksMax
    ) {
      throw damaged(`${label}: more than a shard may hold`);
    }
    const block = this.#blocks.put(header, plan, () => undefined);
    this.#unloaded.expect(block);
  }

  #checkOrder(seq: number): void {
    const expected = this.#seq + 1;
    if (seq === expected) return;
    throw new PserverError(
      "JOURNAL_DAMAGED",
      `journal of shard ${this.#shard}: expected record ${expected}; found ${seq}`,
      { shard: this.#shard, expected, found: seq },
    );
  }

  /** The record's message, undefined if it is unreadable. */
  #read(record: JournalRecord): Message | undefined {
    const message = readRecordMessage(record.payload);
    if (message !== undefined || record.reread !== false) return message;
    // The checksum matches: the record is stored like this.
    if (isSealed(record.payload)) return undefined;
    throw new PserverError(
      "BAD_CHECKSUM",
      `record ${record.seq} of shard ${this.#shard}: ${record.payload.length} bytes do not match ` +
        "their checksum",
      { shard: this.#shard, seq: record.seq },
    );
  }

  #fold(record: JournalRecord, message: Message | undefined): Settled | undefined {
    const subject = this.#logSubjects.parse(record.subject);
    let settled: Settled | undefined;
    if (subject?.shard !== this.#shard) this.#unreadable.count(undefined, undefined);
    else if (message === undefined) this.#foldUnreadable(subject);
    else if (subject.by === "host") this.#foldHost(subject.verb, message);
    else settled = this.#foldTrainer(record.seq, subject, message);
    this.memory.unstage();
    this.#closeStep();
    this.#seq = record.seq;
    this.#crc = message === undefined ? 0 : readCrc(record.payload);
    return settled;
  }

  #foldHost(verb: HostVerb, message: Message): void {
    const record = readable(() => parseHostRecord(verb, message));
    const bounds = this.#rules?.bounds;
    const isLater = bounds === undefined && HOST_VERBS_SINCE_2.includes(verb);
    if (record === undefined || isLater) this.#unreadable.count(undefined, undefined);
    else if (record.verb === "rules") this.#takeRules(record);
    else if (this.#rules === undefined) return;
    else if (record.verb === "members") this.#steps.takeMembers(record);
    else if (record.verb === "drop") {
      this.#blocks.drop(record.parameter, record.epoch);
      this.#declarations.drop(record.parameter, record.epoch);
    } else if (record.verb === "floor") this.#trainers.raiseFloor(record.session);
    else if (record.verb === "sessions") this.#trainers.endSessions(record);
    else if (record.verb === "forget") this.#trainers.forget(record.trainers);
    else if (bounds !== undefined) this.#declarations.take(record, bounds.declaredMax);
  }

  /** Counts a record that cannot be answered, for the trainer in its subject if there is one. */
  #foldUnreadable(subject: LogSubject): void {
    const trainer = subject.by === "host" ? undefined : subject.trainer;
    this.#unreadable.count(trainer, this.#rules?.bounds?.unreadableTrainersMax);
  }

  #foldTrainer(seq: number, subject: TrainerSubject, message: Message): Settled | undefined {
    const { trainer } = subject;
    const head = readable(() => parseHead(message.fields));
    if (head === undefined) {
      this.#foldUnreadable(subject);
      return undefined;
    }
    const isInbox = this.#subjects.isTrainerInbox(head.reply, trainer);
    const isAnswerable = isInbox || head.reply === "";
    const outcome = this.#settle(seq, subject, { head, message, isAnswerable });
    return { trainer, session: head.session, reply: isInbox ? head.reply : "", outcome };
  }

  #settle(seq: number, subject: TrainerSubject, received: Received): Outcome {
    const { head } = received;
    const rules = this.#rules;
    if (rules === undefined) return noRules(head.n, seq);
    const answer = this.#trainers.answerUnlessAdmitted(subject.trainer, head, seq, rules);
    if (answer !== undefined) return answer;
    const outcome = this.#applyOnce(seq, subject, received, rules);
    this.#trainers.note(subject.trainer, head, outcome, rules);
    return outcome;
  }

  #applyOnce(
    seq: number,
    subject: TrainerSubject,
    { head, message, isAnswerable }: Received,
    rules: Rules,
  ): Outcome {
    const context = {
      memory: this.memory,
      blocks: this.#blocks,
      rules,
      steps: this.#steps,
      declarations: this.#declarations,
      trainer: subject.trainer,
      isAnswerable,
    };
    let change: Change;
    try {
      if (subject.by === "clock") {
        const { step } = parseClock(message.fields);
        checkReply(context, head.reply);
        this.#steps.takeClock(subject.trainer, step, rules.bounds?.clockLeadSteps);
        return { n: head.n, seq, version: 0 };
      }
      const record = parseTrainerRecord(subject.verb, head, message);
      const { parameter, index } = subject;
      change = checkRecord(context, { parameter, index }, record, message.data);
    } catch (cause) {
      const error = ensureError(cause);
      if (error.code === "INTERNAL") throw error;
      return rejection(head.n, seq, error.code, error.message);
    }
    return { n: head.n, seq, version: applyChange(context, change) };
  }

  /** Applies the open step if the folded record has ended it. */
  #closeStep(): void {
    const closed = this.#steps.close();
    if (closed === undefined) return;
    closeStep({ memory: this.memory, blocks: this.#blocks }, this.#blocks.all(), closed.divisor);
  }

  /**
   * Later `rules` records change the version only: the slots of blocks depend on the synchronization
   * of the first.
   */
  #takeRules(record: Pick<RulesRecord, "rules" | "synchronization">): Rules {
    const { rules: version, synchronization = { mode: "async" } } = record;
    const rules = this.#requireRules(version);
    if (this.#rules === undefined) this.#steps.synchronization = synchronization;
    this.#rules = rules;
    return rules;
  }

  #requireRules(version: number): Rules {
    const rules = this.#knownRules.get(version);
    if (rules !== undefined) return rules;
    const known = [...this.#knownRules.keys()];
    throw new PserverError(
      "UNKNOWN_RULES",
      `journal of shard ${this.#shard}: expected rules ${known.join(", ")}; found ${version}`,
      { shard: this.#shard, expected: known, found: version },
    );
  }
}
