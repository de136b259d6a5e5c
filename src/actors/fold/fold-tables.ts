import { createHash } from "node:crypto";
import { packValue } from "../../protocol/codec.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { RulesRecord } from "../../protocol/host-records.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { type BlockHeader, blockLabel } from "./block.ts";
import { BlockTable, type ShardHooks } from "./block-table.ts";
import { DeclarationTable } from "./declaration-table.ts";
import {
  damaged,
  type FoldState,
  parseFoldState,
  rulesOfState,
  toFoldState,
} from "./fold-state.ts";
import { discardOpenSteps } from "./open-step.ts";
import type { KnownRules, Rules } from "./rules.ts";
import type { SavedSteps } from "./saved-steps.ts";
import { heldBytes, slotPlan } from "./slots.ts";
import { StepTable } from "./step-table.ts";
import { TrainerTable } from "./trainer-table.ts";
import { UnloadedSlots } from "./unloaded-slots.ts";
import { UnreadableCounts } from "./unreadable-counts.ts";

/** The whole state of a fold between two records, and how it is saved and restored. */
export class FoldTables {
  /** Sequence of the last record folded; 0 before the first. */
  seq = 0;
  /** Checksum in the envelope of record {@link seq}; 0 if that record is none or unreadable. */
  crc = 0;
  /** Whether sequence {@link seq} is known to have a record. */
  endsWithRecord = false;
  /** Sums of the journal up to {@link seq}: what was folded, and so no part of the state. */
  readonly sums: Uint32Array = new Uint32Array(3);
  /** Undefined before the first `rules` record. */
  rules: Rules | undefined;
  readonly blocks: BlockTable;
  trainers: TrainerTable = new TrainerTable();
  steps: StepTable = new StepTable();
  readonly declarations: DeclarationTable;
  unreadable: UnreadableCounts = new UnreadableCounts();
  readonly unloaded: UnloadedSlots = new UnloadedSlots();
  readonly #shard: number;
  readonly #knownRules: KnownRules;

  constructor(options: {
    readonly shard: number;
    readonly memory: ShardMemory;
    readonly hooks: ShardHooks;
    readonly knownRules: KnownRules;
  }) {
    this.#shard = options.shard;
    this.#knownRules = options.knownRules;
    this.blocks = new BlockTable(options.memory, options.hooks);
    this.declarations = new DeclarationTable(options.shard);
  }

  /**
   * Puts the rules of a `rules` record into force. Only the first one sets the synchronization: the
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

  /** The state without values and slots; equal tables give equal bytes. */
  save(): FoldState {
    const { synchronization } = this.steps;
    const parts = {
      seq: this.seq,
      crc: this.crc,
      rules: this.rules?.version ?? 0,
      synchronization,
      ...(synchronization.mode === "async" ? {} : { steps: this.steps.save() }),
      floor: this.trainers.floor,
      unreadable: this.unreadable.total,
      blocks: this.blocks.sorted().map((block) => block.header()),
      declared: this.declarations.sorted(),
      live: this.trainers.live,
      unreadableOf: this.unreadable.sorted(),
    };
    return toFoldState(parts, this.trainers.sorted());
  }

  /** Goes on with record 1 of a new journal: known outcomes move to record 0. */
  restartJournal(): void {
    this.trainers.restartJournal();
    this.standAtBeginning();
  }

  /** Goes on after a sequence that no record has, so that there is no checksum to recognize it by. */
  standAt(seq: number): void {
    this.seq = seq;
    this.crc = 0;
    this.endsWithRecord = false;
  }

  /** Goes on with record 1 of a new journal. */
  standAtBeginning(): void {
    this.standAt(0);
    this.sums.fill(0);
  }

  /**
   * Makes these the tables with which another job's shard begins: before record 1, with the same rules, blocks,
   * optimizer slots and declarations, but without trainers, outcomes and steps. Gradients of a step that has not
   * closed are discarded.
   * @returns the number of blocks whose open step was discarded.
   */
  detach(): number {
    const { synchronization } = this.steps;
    this.trainers = new TrainerTable();
    this.unreadable = new UnreadableCounts();
    this.steps = new StepTable();
    this.steps.synchronization = synchronization;
    this.standAtBeginning();
    return discardOpenSteps(this.blocks.all());
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
   * Restores a saved state into empty tables, except for the bytes of blocks, which {@link loadSlot}
   * brings.
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
    this.trainers.restoreSessions(restored.floor, restored.live);
    for (const declared of restored.declared) this.declarations.restore(declared);
    for (const [trainer, entry] of restored.trainers) this.trainers.restore(trainer, entry, rules);
    for (const header of restored.blocks) this.#restoreBlock(header, rules);
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

  #restoreBlock(header: BlockHeader, rules: Rules): void {
    const { blocks } = this;
    const label = blockLabel(header.parameter, header.index);
    if (blocks.get(header.parameter, header.index) !== undefined) {
      throw damaged(`${label}: expected once; received twice`);
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
