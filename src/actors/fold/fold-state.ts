import { createHash } from "node:crypto";
import { type Fields, packValue } from "../../protocol/codec.ts";
import { type Synchronization, toConfig, toSynchronization } from "../../protocol/config/index.ts";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import {
  asMap,
  dtypeField,
  flagField,
  integerField,
  listField,
  mapField,
  numberField,
  textField,
} from "../../protocol/fields.ts";
import { BLOCK_NUMBER_MAX, MEMBERS_MAX, TRAINERS_MAX } from "../../protocol/limits.ts";
import {
  type InitializedJob,
  parseInitializedJob,
  type ReadyRecord,
  type RulesRecord,
} from "../../protocol/messages/host-records.ts";
import { type OutcomeRow, outcomeRow, parseOutcomeRow } from "../../protocol/messages/outcomes.ts";
import { isWholeRows } from "../../protocol/messages/parts.ts";
import {
  type DeclaredParameter,
  type KnowledgePage,
  parseDeclared,
} from "../../protocol/messages/shard-knowledge.ts";
import { checkShape } from "../../protocol/tensor.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import { discardOpenSteps } from "./apply-update.ts";
import {
  type Block,
  type BlockHeader,
  blockLabel,
  heldBytes,
  isPlaced,
  type OpenStep,
  slotPlan,
} from "./block-actor.ts";
import { BlockTable, type ShardHooks } from "./block-table.ts";
import { DeclarationTable } from "./declaration-table.ts";
import { discardSums } from "./fragments/displacement.ts";
import {
  FragmentTable,
  parseSavedFragments,
  type SavedFragments,
} from "./fragments/fragment-table.ts";
import { GuardTable, type NormRow, parseNormRow } from "./guards/guard-table.ts";
import type { KnownRules, Rules } from "./rules.ts";
import { type SavedSteps, StepTable } from "./step-table.ts";
import {
  type CountRow,
  type TrainerEntry,
  TrainerTable,
  UnreadableCounts,
} from "./trainer-table.ts";

/**
 * Reads a saved step table and checks each field by itself; `StepTable.restore` checks the whole.
 * @throws BAD_MESSAGE if a field is missing or malformed.
 */
function parseSavedSteps(fields: Fields): SavedSteps {
  return {
    revision: integerField(fields, "revision"),
    started: flagField(fields, "started"),
    closed: integerField(fields, "closed"),
    members: listField(fields, "members", MEMBERS_MAX).map((value) => {
      const row: Fields = { ...listField({ member: value }, "member", 2) };
      return [textField(row, "0"), integerField(row, "1")] as const;
    }),
    participants: listField(fields, "participants", TRAINERS_MAX).map((trainer) =>
      textField({ trainer }, "trainer"),
    ),
  };
}

const FORMAT = 1;

/** A trainer in a saved state: id, session, done, and its outcomes in the order of the journal. */
type TrainerRow = readonly [
  trainer: string,
  session: number,
  done: number,
  outcomes: readonly OutcomeRow[],
];

/**
 * The state of a shard without its values, as plain data for `packValue`. Equal states have equal
 * bytes: trainers and blocks are sorted, outcomes are in the order of the journal.
 */
export interface FoldState {
  readonly format: typeof FORMAT;
  /** Sequence of the last record folded; 0 before the first. */
  readonly seq: number;
  /** Checksum in that record's envelope; 0 if it could not be read. */
  readonly crc: number;
  /** Version of the rules; 0 before the first `rules` record. */
  readonly rules: number;
  /** How the job's trainers are synchronized; `async` before the first `rules` record. */
  readonly synchronization: Synchronization;
  /** Absent in `async`. */
  readonly steps?: SavedSteps;
  /** Absent but in `diloco`. */
  readonly fragments?: SavedFragments;
  readonly floor: number;
  /** Records that could not be read. */
  readonly unreadable: number;
  readonly trainers: readonly TrainerRow[];
  readonly blocks: readonly BlockHeader[];
  /** The job's initialization, as hosts have told of it; absent before. */
  readonly job?: InitializedJob;
  /** Parameters that hosts have declared, by name; absent if there are none. */
  readonly declared?: readonly DeclaredParameter[];
  /** Sessions up to the floor that have not ended, ascending; absent if there are none. */
  readonly live?: readonly number[];
  /** Sessions that were ended by themselves, by trainer, in the order of the journal; absent if there are none. */
  readonly ended?: readonly CountRow[];
  /** Sessions whose rejected records made more work than their applied ones, by trainer; absent if there are none. */
  readonly rejected?: readonly CountRow[];
  /** Unreadable records by the trainer in their subjects, of some trainers; absent if none. */
  readonly unreadableOf?: readonly CountRow[];
  /** Norms by which guards judge, by block and trainer; absent if there are none. */
  readonly norms?: readonly NormRow[];
}

/** A state read by {@link parseFoldState}. */
export interface RestoredState
  extends Omit<FoldState, "format" | "trainers" | "rejected" | keyof OptionalEntries>,
    OptionalEntries {
  readonly trainers: readonly (readonly [trainer: string, entry: TrainerEntry])[];
}

/** Entries that a saved state leaves out if they are empty. */
interface OptionalEntries {
  readonly declared: readonly DeclaredParameter[];
  readonly live: readonly number[];
  readonly ended: readonly CountRow[];
  readonly unreadableOf: readonly CountRow[];
  readonly norms: readonly NormRow[];
}

/** Returns a state in the present format. The parts must be sorted already. */
function toFoldState(
  parts: Omit<FoldState, "format" | "trainers" | "rejected">,
  trainers: readonly (readonly [trainer: string, entry: TrainerEntry])[],
): FoldState {
  const { seq, crc, rules, synchronization, steps, fragments } = parts;
  const { floor, unreadable, blocks } = parts;
  const rows = trainers.map(([trainer, entry]): TrainerRow => {
    return [trainer, entry.session, entry.done, [...entry.outcomes.values()].map(outcomeRow)];
  });
  const counts = trainers.map(([trainer, entry]): CountRow => [trainer, entry.rejected]);
  const { job, declared = [], live = [], ended = [], unreadableOf = [], norms = [] } = parts;
  const rejected = counts.filter(([, records]) => records > 0);
  return {
    ...{ format: FORMAT, seq, crc, rules, synchronization },
    ...(steps === undefined ? {} : { steps }),
    ...(fragments === undefined ? {} : { fragments }),
    ...{ floor, unreadable, trainers: rows, blocks },
    ...(job === undefined ? {} : { job }),
    ...(declared.length === 0 ? {} : { declared }),
    ...(live.length === 0 ? {} : { live }),
    ...(ended.length === 0 ? {} : { ended }),
    ...(rejected.length === 0 ? {} : { rejected: rejected }),
    ...(unreadableOf.length === 0 ? {} : { unreadableOf }),
    ...(norms.length === 0 ? {} : { norms }),
  };
}

/**
 * Reads a saved state and checks each entry by itself; the tables check whether they fit together.
 * @throws SNAPSHOT_DAMAGED with the name of the wrong entry.
 */
export function parseFoldState(state: unknown): RestoredState {
  try {
    const fields = asMap(state, "fold state");
    integerField(fields, "format", FORMAT, FORMAT);
    const { steps, fragments, job } = fields;
    const rejected = new Map(countRows(fields, "rejected"));
    const trainers = listField(fields, "trainers", Number.POSITIVE_INFINITY);
    return {
      seq: integerField(fields, "seq"),
      crc: integerField(fields, "crc", 0, 0xffffffff),
      rules: integerField(fields, "rules"),
      synchronization: toSynchronization(mapField(fields, "synchronization")),
      ...(steps === undefined ? {} : { steps: parseSavedSteps(mapField(fields, "steps")) }),
      ...(fragments === undefined
        ? {}
        : { fragments: parseSavedFragments(mapField(fields, "fragments")) }),
      floor: integerField(fields, "floor"),
      unreadable: integerField(fields, "unreadable"),
      trainers: trainers.map((row) => parseTrainer(row, rejected)),
      blocks: listField(fields, "blocks", Number.POSITIVE_INFINITY).map(parseBlock),
      ...(job === undefined ? {} : { job: parseInitializedJob(mapField(fields, "job")) }),
      declared: listOrNone(fields, "declared").map(parseDeclared),
      live: listOrNone(fields, "live").map((live) => integerField({ live }, "live", 1)),
      ended: countRows(fields, "ended"),
      unreadableOf: countRows(fields, "unreadableOf"),
      norms: listOrNone(fields, "norms").map(parseNormRow),
    };
  } catch (cause) {
    throw damaged(`the fold's state: ${ensureError(cause).message}`, cause);
  }
}

/** Returns the error for a snapshot with a bad state. */
function damaged(message: string, cause?: unknown): PserverError {
  return new PserverError("SNAPSHOT_DAMAGED", message, {}, { cause });
}

/**
 * Reads the rules version of a saved state. It is read before the rest, because states of another version may have
 * other entries.
 * @throws SNAPSHOT_DAMAGED if it names none.
 */
function rulesOfState(state: unknown): number {
  try {
    return integerField(asMap(state, "fold state"), "rules");
  } catch (cause) {
    throw damaged(`the fold's state: ${ensureError(cause).message}`, cause);
  }
}

/** Whether an initialization of the job is later than the one that is known. */
function isLaterJob(job: InitializedJob, known: InitializedJob | undefined): boolean {
  if (known === undefined || job.revised !== known.revised) {
    return job.revised > (known?.revised ?? -1);
  }
  return job.epoch > known.epoch;
}

function listOrNone(fields: Fields, key: string): readonly unknown[] {
  return fields[key] === undefined ? [] : listField(fields, key, Number.POSITIVE_INFINITY);
}

function countRows(fields: Fields, key: string): CountRow[] {
  return listOrNone(fields, key).map((value) => {
    const row: Fields = { ...listField({ [key]: value }, key, 2) };
    return [textField(row, "0"), integerField(row, "1", 1)];
  });
}

function parseTrainer(
  value: unknown,
  rejected: ReadonlyMap<string, number>,
): [string, TrainerEntry] {
  const row: Fields = { ...listField({ trainer: value }, "trainer", 4) };
  const trainer = textField(row, "0");
  const outcomes = listField(row, "3", Number.POSITIVE_INFINITY).map(parseOutcomeRow);
  const entry = {
    session: integerField(row, "1", 1),
    done: integerField(row, "2"),
    outcomes: new Map(outcomes.map((outcome) => [outcome.n, outcome])),
    rejected: rejected.get(trainer) ?? 0,
  };
  if (entry.outcomes.size === outcomes.length) return [trainer, entry];
  throw damaged(`trainer ${trainer}: expected one outcome a number`);
}

function parseBlock(value: unknown): BlockHeader {
  const fields = asMap(value, "block");
  const header: BlockHeader = {
    parameter: textField(fields, "parameter"),
    index: integerField(fields, "index"),
    number: integerField(fields, "number", 1, BLOCK_NUMBER_MAX),
    epoch: integerField(fields, "epoch", 1),
    dtype: dtypeField(fields),
    shape: checkShape(listField(fields, "shape", 64)),
    start: integerField(fields, "start"),
    count: integerField(fields, "count", 1),
    config: toConfig(mapField(fields, "config")),
    version: integerField(fields, "version", 1),
    updates: integerField(fields, "updates"),
    ...(fields["open"] === undefined ? {} : { open: parseOpenStep(mapField(fields, "open")) }),
  };
  const isWhole = !header.config.sparse || isWholeRows(header);
  if (isPlaced(header.index, header) && isWhole && header.updates < header.version) return header;
  throw damaged(`${blockLabel(header.parameter, header.index)}: its header contradicts itself`);
}

function parseOpenStep(fields: Fields): OpenStep {
  const trainers = listField(fields, "trainers", MEMBERS_MAX).map((trainer) =>
    textField({ trainer }, "trainer"),
  );
  if (trainers.length === 0 || new Set(trainers).size < trainers.length) {
    throw damaged("open: expected trainers, each once");
  }
  if (fields["learningRate"] === undefined) return { trainers };
  return { trainers, learningRate: numberField(fields, "learningRate") };
}

/** Tracks which values and slots of restored blocks have not been loaded yet. */
export class UnloadedSlots {
  readonly #slots: Map<Block, Set<number>> = new Map();

  /** Expects all slots of this block. */
  expect(block: Block): void {
    this.#slots.set(block, new Set(Array.from({ length: 1 + block.slots }, (_, slot) => slot)));
  }

  /**
   * Copies bytes into a slot of a block.
   * @throws SNAPSHOT_DAMAGED if there is no such slot, or it has another length.
   */
  load(block: Block, slot: number, bytes: Uint8Array): void {
    const label = blockLabel(block.parameter, block.index);
    if (slot > block.slots) {
      throw damaged(`${label}: expected slots up to ${block.slots}; received slot ${slot}`);
    }
    const target = block.slotBytes(slot);
    if (bytes.length !== target.length) {
      throw damaged(
        `${label} slot ${slot}: expected ${target.length} bytes; received ${bytes.length}`,
      );
    }
    target.set(bytes);
    const unloaded = this.#slots.get(block);
    unloaded?.delete(slot);
    if (unloaded?.size === 0) this.#slots.delete(block);
  }

  /** @throws SNAPSHOT_DAMAGED if a slot has not been loaded. */
  check(): void {
    for (const [{ parameter, index }, slots] of this.#slots) {
      const label = blockLabel(parameter, index);
      throw damaged(
        `${label}: the bytes of slots ${[...slots].join(", ")} are not in the snapshot`,
      );
    }
  }
}

/** Holds the whole state of a fold between two records; saves and restores it. */
export class FoldTables {
  /** Sequence of the last record folded; 0 before the first. */
  seq = 0;
  /** Checksum in the envelope of record {@link seq}; 0 if there is no such record, or it is unreadable. */
  crc = 0;
  /** Whether sequence {@link seq} is known to have a record. */
  endsWithRecord = false;
  /** Checksum of the journal up to {@link seq}. It describes what was folded, so it is no part of the state. */
  readonly sums: Uint32Array = new Uint32Array(3);
  /** Rules in force; undefined before the first `rules` record. */
  rules: Rules | undefined;
  readonly blocks: BlockTable;
  trainers: TrainerTable = new TrainerTable();
  steps: StepTable = new StepTable();
  fragments: FragmentTable;
  readonly declarations: DeclarationTable;
  /** The job's initialization, as hosts have told of it. */
  job: InitializedJob | undefined;
  unreadable: UnreadableCounts = new UnreadableCounts();
  guards: GuardTable = new GuardTable();
  readonly unloaded: UnloadedSlots = new UnloadedSlots();
  readonly #job: string;
  readonly #shard: number;
  readonly #knownRules: KnownRules;

  constructor(options: {
    /** Name of the job. */
    readonly job: string;
    readonly shard: number;
    readonly memory: ShardMemory;
    readonly hooks: ShardHooks;
    readonly knownRules: KnownRules;
  }) {
    this.#job = options.job;
    this.fragments = new FragmentTable(options.job);
    this.#shard = options.shard;
    this.#knownRules = options.knownRules;
    this.blocks = new BlockTable(options.memory, options.hooks);
    this.declarations = new DeclarationTable(options.shard);
    this.blocks.onRemoved = (number) => this.guards.forgetBlock(number);
  }

  /**
   * Puts the rules of a `rules` record into force. Only the first such record sets the synchronization, because the
   * slots of blocks depend on it.
   * @throws UNKNOWN_RULES if this program lacks the version.
   */
  takeRules({
    rules: version,
    synchronization = { mode: "async" },
  }: Pick<RulesRecord, "rules" | "synchronization">): Rules {
    const rules = this.#requireRules(version);
    if (this.rules === undefined) this.steps.synchronization = synchronization;
    this.rules = rules;
    return rules;
  }

  /** Takes what hosts tell of initializations, unless they have told of a later one of the job. */
  takeReady({ job, parameters }: ReadyRecord): void {
    if (job !== undefined && isLaterJob(job, this.job)) this.job = job;
    for (const [parameter, epoch] of parameters) this.declarations.initialized(parameter, epoch);
  }

  /** The state without values and slots; equal tables give equal bytes. */
  save(): FoldState {
    const { synchronization } = this.steps;
    const parts = {
      seq: this.seq,
      crc: this.crc,
      rules: this.rules?.version ?? 0,
      synchronization,
      ...(synchronization.mode === "async" ? {} : { steps: this.steps.save() }),
      ...(synchronization.mode === "diloco" ? { fragments: this.fragments.save() } : {}),
      floor: this.trainers.floor,
      unreadable: this.unreadable.total,
      blocks: this.blocks.sorted().map((block) => block.header()),
      ...(this.job === undefined ? {} : { job: this.job }),
      declared: this.declarations.sorted(),
      live: this.trainers.live,
      ended: this.trainers.ended,
      unreadableOf: this.unreadable.sorted(),
      norms: this.guards.save(),
    };
    return toFoldState(parts, this.trainers.sorted());
  }

  /** What the shard knows of its job, with up to `count` parameters after a name. */
  known(after: string, count: number): KnowledgePage {
    const { declarations, job, steps, trainers } = this;
    const parameters = declarations.after(after, count);
    return {
      ...(job === undefined ? {} : { job }),
      sweptUpTo: trainers.floor,
      members: { revision: steps.revision, started: steps.started, trainers: steps.members },
      parameters,
      more: parameters.length === count,
    };
  }

  /** Moves before record 1 of a new journal; known outcomes move to record 0. */
  restartJournal(): void {
    this.trainers.restartJournal();
    this.fragments.restartJournal();
    this.moveToBeginning();
  }

  /** Moves to a sequence without a record, so that there is no checksum of a last record. */
  moveTo(seq: number): void {
    this.seq = seq;
    this.crc = 0;
    this.endsWithRecord = false;
  }

  /** Moves before record 1 of a new journal. */
  moveToBeginning(): void {
    this.moveTo(0);
    this.sums.fill(0);
  }

  /**
   * Turns these into the first tables of another job's shard: before record 1, with the same rules, blocks, optimizer
   * slots and declarations, but without trainers, outcomes, steps, rounds and norms, and without what hosts have told of
   * initializations. Discards the gradients of an open step, and contributions of open rounds.
   * @returns the number of blocks whose open step or round was discarded.
   */
  detach(): number {
    const { synchronization } = this.steps;
    this.trainers = new TrainerTable();
    this.unreadable = new UnreadableCounts();
    this.steps = new StepTable();
    this.steps.synchronization = synchronization;
    this.job = undefined;
    this.declarations.forgetInitialized();
    this.moveToBeginning();
    this.fragments = new FragmentTable(this.#job);
    this.guards = new GuardTable();
    const discarded = discardSums(this.blocks, this.blocks.all());
    return discarded + discardOpenSteps(this.blocks.all());
  }

  /** SHA-256, in hex, of the state, all values and slots: equal exactly if the tables are. */
  digest(): string {
    const hash = createHash("sha256").update(packValue(this.save()));
    for (const block of this.blocks.sorted()) {
      for (let slot = 0; slot <= block.slots; slot++) hash.update(block.slotBytes(slot));
    }
    return hash.digest("hex");
  }

  /**
   * Restores a saved state into empty tables, without the bytes of blocks: {@link loadSlot} brings those.
   * @throws SNAPSHOT_DAMAGED if the state contradicts itself; UNKNOWN_RULES.
   */
  restore(state: unknown): void {
    const version = rulesOfState(state);
    if (version !== 0) this.#requireRules(version);
    const restored = parseFoldState(state);
    this.seq = restored.seq;
    this.crc = restored.crc;
    this.endsWithRecord = restored.crc !== 0;
    this.unreadable.restore(restored.unreadable, restored.unreadableOf);
    if (restored.rules === 0) {
      if (restored.trainers.length + restored.blocks.length + restored.floor === 0) return;
      throw damaged("the fold's state: expected nothing before the first rules");
    }
    const rules = this.takeRules(restored);
    this.#restoreSteps(restored.steps);
    this.trainers.restoreSessions(restored.floor, restored.live, restored.ended);
    this.job = restored.job;
    for (const declared of restored.declared) this.declarations.restore(declared);
    for (const [trainer, entry] of restored.trainers) this.trainers.restore(trainer, entry, rules);
    for (const header of restored.blocks) this.#restoreBlock(header, rules);
    this.#restoreFragments(restored.fragments);
    for (const row of restored.norms) {
      this.guards.restore(row, rules.guardNormsMax, (number, trainer) => {
        const isRemembered = trainer === undefined || this.trainers.has(trainer);
        return isRemembered && this.blocks.ofNumber(number) !== undefined;
      });
    }
  }

  /**
   * Copies bytes into a slot of a restored block.
   * @throws SNAPSHOT_DAMAGED if there is no such slot, or it has another length.
   */
  loadSlot(parameter: string, index: number, slot: number, bytes: Uint8Array): void {
    const block = this.blocks.get(parameter, index);
    if (block === undefined) {
      const label = blockLabel(parameter, index);
      throw damaged(`${label}: received bytes of a block that is not there`);
    }
    this.unloaded.load(block, slot, bytes);
  }

  #restoreSteps(steps: SavedSteps | undefined): void {
    const expected = this.steps.synchronization.mode !== "async";
    if (expected !== (steps !== undefined)) {
      throw damaged(`the fold's state: expected ${expected ? "steps" : "no steps"}`);
    }
    if (steps !== undefined) this.steps.restore(steps);
  }

  #restoreFragments(saved: SavedFragments | undefined): void {
    const expected = this.steps.synchronization.mode === "diloco";
    if (expected !== (saved !== undefined)) {
      throw damaged(`the fold's state: expected ${expected ? "fragments" : "no fragments"}`);
    }
    if (saved === undefined) return;
    try {
      this.fragments.restore(saved);
    } catch (cause) {
      throw damaged(`the fold's fragments: ${ensureError(cause).message}`, cause);
    }
    for (const block of this.blocks.all()) {
      const { fragment } = block.config;
      if (fragment === undefined) continue;
      block.contributions = this.fragments.get(fragment)?.round.length ?? 0;
    }
  }

  #restoreBlock(header: BlockHeader, rules: Rules): void {
    const { blocks } = this;
    const label = blockLabel(header.parameter, header.index);
    const { parameter, index, number } = header;
    if (blocks.get(parameter, index) !== undefined || blocks.ofNumber(number) !== undefined) {
      throw damaged(`${label}, number ${number}: expected once; received twice`);
    }
    const plan = slotPlan(header, this.steps.synchronization);
    if (header.open !== undefined && plan.accumulator === undefined) {
      throw damaged(`${label}: expected no open step in a job without steps`);
    }
    if (
      blocks.bytes + heldBytes(header, plan) > rules.shardBytesMax ||
      blocks.count >= rules.blocksMax
    ) {
      throw damaged(`${label}: more than a shard may hold`);
    }
    this.unloaded.expect(blocks.put(header, plan, () => undefined));
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
