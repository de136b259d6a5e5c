import type { Clock } from "../../../src/actors/concurrent.ts";
import { KNOWN_RULES } from "../../../src/actors/fold/rules.ts";
import { Shard, type ShardOptions } from "../../../src/actors/fold/shard.ts";
import { RoundCloser } from "../../../src/actors/owner/round-closer.ts";
import { type Fields, packValue, unpackValue } from "../../../src/protocol/codec.ts";
import { PserverError } from "../../../src/protocol/errors.ts";
import { type CloseRecord, encodeHostRecord } from "../../../src/protocol/messages/host-records.ts";
import type { Outcome } from "../../../src/protocol/messages/outcomes.ts";
import { type JournalWriter, SHARD, SUBJECTS } from "../../actors/fold/journal-writer.ts";
import type { MemoryPool } from "../fold-maker.ts";
import type { Random } from "../random.ts";

/** Deviations of an owner, for proving that the oracles find them. */
export interface OwnerFaults {
  /** Leaves the parts of incomplete contributions out of its snapshots. */
  readonly forgetsParts?: boolean;
  /** Leaves the accounts of trainers out of its snapshots. */
  readonly forgetsAccounts?: boolean;
  /** Leaves out of its snapshots from which versions trainers have contributed. */
  readonly forgetsBases?: boolean;
  /** Its snapshots lack the norms that guards compare with. */
  readonly forgetsNorms?: boolean;
  /** Closes rounds with contributions that it has not folded. */
  readonly closesAhead?: boolean;
  /** Leaves every tenth record out. */
  readonly skipsRecords?: boolean;
}

/** Settings of a fold with the real limits, in a memory of the pool. */
export function foldOptions(pool: MemoryPool): ShardOptions {
  return { ...pool.options(), subjects: SUBJECTS, shard: SHARD, knownRules: KNOWN_RULES };
}

/** A clock whose timers fire in any order; time moves to that of the timer, if it is later. */
class JumpingClock implements Clock {
  readonly #random: Random;
  readonly #timers = new Map<() => void, number>();
  #nowMs = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): () => void {
    this.#timers.set(run, this.#nowMs + delayMs);
    return () => this.#timers.delete(run);
  }

  /** Fires any one of the timers. */
  fireOne(): void {
    const timer = this.#random.pick([...this.#timers]);
    if (timer === undefined) return;
    const [run, atMs] = timer;
    this.#timers.delete(run);
    this.#nowMs = Math.max(this.#nowMs, atMs);
    run();
  }
}

/** What an owner shares with all others. */
export interface OwnerWorld {
  readonly writer: JournalWriter;
  readonly pool: MemoryPool;
  readonly random: Random;
  /** Has a message reach the journal some time, perhaps. */
  publish(subject: string, payload: Uint8Array): boolean;
}

/** A state with all bytes, as a snapshot keeps it. */
export interface KeptState {
  readonly state: Uint8Array;
  readonly slots: ReadonlyMap<string, Uint8Array>;
}

/** A host that owns the shard, or still believes so: its fold, and what it decides about rounds. */
export class RoundOwner {
  readonly shard: Shard;
  readonly clock: JumpingClock;
  readonly #world: OwnerWorld;
  readonly #faults: OwnerFaults;
  readonly #closer: RoundCloser;

  /** Begins from a snapshot, or from the first record. */
  constructor(world: OwnerWorld, from: KeptState | undefined, faults: OwnerFaults) {
    this.#world = world;
    this.#faults = faults;
    this.clock = new JumpingClock(world.random);
    const options = foldOptions(world.pool);
    this.shard =
      from === undefined
        ? Shard.create(options)
        : Shard.restore(options, unpackValue(from.state), ({ parameter, index }, slot) => {
            return from.slots.get(`${parameter} ${index} ${slot}`) ?? new Uint8Array(0);
          });
    this.#closer = new RoundCloser({
      shard: this.shard,
      append: (record) => this.#append(record),
      onFailed: () => undefined,
      clock: this.clock,
    });
    this.shard.observers = [this.#closer];
  }

  /** Folds the next record; tells the answer that it sends. */
  foldNext(answer: (trainer: string, session: number, outcome: Outcome) => void): void {
    const record = this.#world.writer.records[this.shard.seq];
    if (record === undefined) return;
    if (this.#faults.skipsRecords === true && record.seq % 10 === 0) {
      this.shard.skipTo(record.seq);
      return;
    }
    const settled = this.shard.apply(record);
    if (settled !== undefined) answer(settled.trainer, settled.session, settled.outcome);
    this.#closer.advanced();
  }

  /** Makes a snapshot. */
  save(): KeptState {
    const slots = new Map<string, Uint8Array>();
    for (const block of this.shard.blocks()) {
      for (let slot = 0; slot <= block.slots; slot++) {
        slots.set(`${block.parameter} ${block.index} ${slot}`, block.slotBytes(slot).slice());
      }
    }
    return { state: packValue(this.#damaged(this.shard.saveState())), slots };
  }

  kill(): void {
    this.#closer.stop();
  }

  #append(record: CloseRecord): Promise<void> {
    const { contributions } = record;
    const ahead = this.#faults.closesAhead === true ? contributions + 1 : contributions;
    const payload = encodeHostRecord({ ...record, contributions: ahead });
    const isStored = this.#world.publish(SUBJECTS.hostLog(SHARD, "close"), payload);
    return isStored ? Promise.resolve() : Promise.reject(new PserverError("NO_BROKER", "away"));
  }

  #damaged(state: ReturnType<Shard["saveState"]>): Fields {
    const { fragments } = state;
    if (fragments === undefined) return { ...state };
    const { forgetsParts, forgetsAccounts, forgetsBases, forgetsNorms } = this.#faults;
    return {
      ...state,
      fragments: {
        fragments: forgetsBases
          ? fragments.fragments.map(([name, version, weight, round, norms, , since]) => {
              return [name, version, weight, round, norms, [], since];
            })
          : fragments.fragments,
        ledger: forgetsAccounts ? [] : fragments.ledger,
        open: forgetsParts ? [] : fragments.open,
      },
      ...(forgetsNorms ? { norms: [] } : {}),
    };
  }
}
