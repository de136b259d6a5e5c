import { createHash } from "node:crypto";
import type { Block } from "../../../src/actors/fold/block-actor.ts";
import {
  CURRENT_RULES,
  type KnownRules,
  RULES_1,
  type Rules,
} from "../../../src/actors/fold/rules.ts";
import { Shard, type ShardOptions } from "../../../src/actors/fold/shard.ts";
import { packValue, unpackValue } from "../../../src/protocol/codec.ts";
import type { SynchronizationInput } from "../../../src/protocol/config/index.ts";
import { toSynchronization } from "../../../src/protocol/config/index.ts";
import type { TensorData } from "../../../src/protocol/dtypes.ts";
import type { Outcome } from "../../../src/protocol/messages/outcomes.ts";
import { JournalWriter, SHARD, SUBJECTS } from "./journal-writer.ts";

/** Version 1 of the rules with these limits in place of its own. */
export function limitedRules(limits: Partial<Rules>): KnownRules {
  return new Map([[1, { ...RULES_1, ...limits }]]);
}

/** A shard and its journal, folded as far as {@link run} has been called. */
export class Folded {
  readonly journal: JournalWriter = new JournalWriter();
  shard: Shard;

  constructor(synchronization?: SynchronizationInput, options: Partial<ShardOptions> = {}) {
    this.shard = Shard.create({ subjects: SUBJECTS, shard: SHARD, ...options });
    const settings =
      synchronization === undefined ? {} : { synchronization: toSynchronization(synchronization) };
    this.journal.host({ verb: "rules", rules: CURRENT_RULES, ...settings });
  }

  /** Folds the records not folded yet; gives the outcomes of trainers' ones. */
  run(): Outcome[] {
    const settled = this.journal.records
      .slice(this.shard.seq)
      .map((record) => this.shard.apply(record)?.outcome);
    return settled.filter((outcome) => outcome !== undefined);
  }

  /** As {@link run}, where every record must be applied. */
  apply(): void {
    for (const { code, message } of this.run()) {
      if (code !== undefined) throw new Error(`${code}: ${message}`);
    }
  }

  block(parameter = "w", index = 0): Block {
    const block = this.shard.block(parameter, index);
    if (block === undefined) throw new Error(`no block ${index} of ${parameter}`);
    return block;
  }

  /**
   * All but where journal and trainers are, what is declared, and counts of what could not be read: what a
   * record must leave that is not applied.
   */
  content(): string {
    const state = this.shard.saveState();
    const { seq: _seq, crc: _crc, trainers: _trainers, rejected: _refused, ...values } = state;
    const { declared: _declared, unreadable: _count, unreadableOf: _counts, ...rest } = values;
    const hash = createHash("sha256").update(packValue(rest));
    for (const block of this.shard.blocks()) {
      for (const bytes of slotsOf(block)) hash.update(bytes);
    }
    return hash.digest("hex");
  }

  /** The shard from its saved state and bytes, through their encoding. */
  restored(): Shard {
    const state = unpackValue(packValue(this.shard.saveState()));
    const bytes = new Map(
      [...this.shard.blocks()].map((block) => [
        `${block.parameter} ${block.index}`,
        slotsOf(block).map((slot) => slot.slice()),
      ]),
    );
    return Shard.restore({ subjects: SUBJECTS, shard: SHARD }, state, (block, slot) => {
      const slots = bytes.get(`${block.parameter} ${block.index}`);
      return slots?.[slot] ?? new Uint8Array(0);
    });
  }
}

/** Writes an `init` with the declaration before it, and folds what the shard has not folded yet. */
export function foldInit(
  shard: Shard,
  writer: JournalWriter,
  ...init: Parameters<JournalWriter["init"]>
): void {
  writer.init(...init);
  for (const record of writer.records.slice(shard.seq)) shard.apply(record);
}

/** The values and all slots of a block: live views. */
export function slotsOf(block: Block): Uint8Array<ArrayBuffer>[] {
  return Array.from({ length: 1 + block.slots }, (_, slot) => block.slotBytes(slot));
}

/** The bytes of a slot as elements, copied. */
export function elementsOf<Data extends TensorData>(
  bytes: Uint8Array<ArrayBuffer>,
  Type: new (buffer: ArrayBuffer) => Data,
): Data {
  return new Type(bytes.slice().buffer);
}
