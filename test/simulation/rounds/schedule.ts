import type { FoldedRecord } from "../../../src/actors/fold/journal-record.ts";
import { CURRENT_RULES } from "../../../src/actors/fold/rules.ts";
import { Shard } from "../../../src/actors/fold/shard.ts";
import { toSynchronization } from "../../../src/protocol/config/index.ts";
import { elementsOf } from "../../actors/fold/folded.ts";
import { DESCENT } from "../../actors/fold/fragments/fragment-job.ts";
import { JournalWriter } from "../../actors/fold/journal-writer.ts";
import type { MemoryPool } from "../fold-maker.ts";
import { Random } from "../random.ts";
import { promise } from "../violation.ts";
import { Learner, type SentContribution } from "./learner.ts";
import {
  foldOptions,
  type KeptState,
  type OwnerFaults,
  type OwnerWorld,
  RoundOwner,
} from "./owner.ts";

const TRAINERS = ["a", "b", "c"];
const ACTIONS = 250;

/** What is different from the real thing. */
export interface Variant {
  readonly owner?: OwnerFaults;
}

/** What has happened in a schedule, to show that things do go wrong in it. */
export interface ScheduleReport {
  readonly records: number;
  readonly rounds: number;
  readonly late: number;
  readonly restarts: number;
  readonly takeOvers: number;
  readonly inParts: number;
  readonly clipped: number;
}

/** A message that may reach the journal, later, more than once or never. */
interface Message {
  readonly subject: string;
  readonly payload: Uint8Array;
}

/** Runs the schedule of a seed, and checks what it leaves. @throws a violation naming what is broken. */
export function runSchedule(seed: number, pool: MemoryPool, variant: Variant = {}): ScheduleReport {
  const random = new Random(seed);
  try {
    const world = new World(random, pool, variant);
    for (let action = 0; action < ACTIONS; action++) world.act();
    world.heal();
    return world.check();
  } finally {
    pool.reclaim();
  }
}

class World implements OwnerWorld {
  readonly writer = new JournalWriter();
  readonly random: Random;
  readonly pool: MemoryPool;
  readonly #variant: Variant;
  readonly #learners: Learner[];
  #owners: RoundOwner[] = [];
  #kept: KeptState[] = [];
  #network: Message[] = [];
  #revision = 0;
  #isWell = false;
  #takeOvers = 0;
  #restarts = 0;

  constructor(random: Random, pool: MemoryPool, variant: Variant) {
    this.random = random;
    this.pool = pool;
    this.#variant = variant;
    const { writer } = this;
    const late = random.chance(0.5) ? ({ late: "carry", lateDecay: 0 } as const) : {};
    const settings = {
      mode: "diloco",
      quorum: 1 + random.below(3),
      weights: "uniform",
      ...late,
    } as const;
    const history = random.chance(0.5) ? ("trainer" as const) : ("cohort" as const);
    const guard = { action: "clip", factor: 1, window: 4, warmup: 1, history } as const;
    const guarded = random.chance(0.8) ? { guard } : {};
    const synchronization = toSynchronization({ ...settings, merge: "mean" });
    writer.host({ verb: "rules", rules: CURRENT_RULES, synchronization });
    for (const [parameter, count] of [
      ["u", 4],
      ["w", 3],
    ] as const) {
      writer.init(new Float32Array(count), {
        trainer: "init",
        parameter,
        config: { fragment: "f", ...DESCENT, ...guarded },
      });
    }
    this.#members(TRAINERS);
    const numberOf = (parameter: string, epoch: number, index: number): number =>
      writer.numberOf(parameter, epoch, index);
    this.#learners = TRAINERS.map((trainer) => new Learner(trainer, random, numberOf));
    this.#takeOver();
  }

  publish(subject: string, payload: Uint8Array): boolean {
    if (!this.#isWell && this.random.chance(0.1)) return false;
    this.#network.push({ subject, payload });
    return true;
  }

  /** One thing happens. */
  act(): void {
    const learner = this.random.pick(this.#learners) as Learner;
    const owner = this.random.pick(this.#owners) as RoundOwner;
    this.random.pickWeighted<() => void>([
      [30, () => this.#send(learner)],
      [30, () => this.#deliver()],
      [40, () => this.#fold(owner)],
      [8, () => learner.pulled(owner.shard.fragmentVersion("f") ?? 0)],
      [8, () => this.#ask(learner, owner)],
      [10, () => owner.clock.fireOne()],
      [3, () => this.#kept.push(owner.save())],
      [2, () => this.#takeOver()],
      [1, () => this.#restart(learner)],
      [1, () => this.#members(TRAINERS.filter(() => this.random.chance(0.7)))],
    ])?.();
  }

  /** Nothing fails any more: everything arrives, and everybody gets on. */
  heal(): void {
    this.#isWell = true;
    this.#members(TRAINERS);
    this.#takeOver();
    const owner = this.#owners.at(-1) as RoundOwner;
    const settle = (): void => {
      for (let turn = 0; turn < 50; turn++) {
        while (this.#network.length > 0) this.#deliver();
        while (owner.shard.seq < this.writer.records.length) this.#fold(owner);
        owner.clock.fireOne();
        for (const learner of this.#learners) {
          this.#ask(learner, owner);
          for (const { payload } of learner.open(false)) this.publish(learner.subject, payload);
        }
      }
    };
    settle();
    const before = owner.shard.fragmentVersion("f") ?? 0;
    for (const learner of this.#learners) {
      learner.restart();
      learner.pulled(before);
      for (const { payload } of learner.open(true)) this.publish(learner.subject, payload);
    }
    settle();
    const after = owner.shard.fragmentVersion("f") ?? 0;
    promise(after > before, () => `the round after version ${before} does not close`);
  }

  #send(learner: Learner): void {
    for (const { payload } of learner.open(true)) {
      if (this.random.chance(0.8)) this.publish(learner.subject, payload);
    }
  }

  /** Any one of the messages under way reaches the journal; it may come again. */
  #deliver(): void {
    const message = this.random.pick(this.#network);
    if (message === undefined) return;
    if (this.#isWell || this.random.chance(0.9)) {
      this.#network = this.#network.filter((other) => other !== message);
    }
    this.writer.append(message.subject, message.payload);
  }

  #fold(owner: RoundOwner): void {
    owner.foldNext((trainer, session, outcome) => {
      if (!this.#isWell && this.random.chance(0.3)) return;
      this.#learners.find((each) => each.trainer === trainer)?.told(session, outcome);
    });
  }

  /** A learner asks what became of its records; an owner that has not folded so far would not answer. */
  #ask(learner: Learner, owner: RoundOwner): void {
    const numbers = learner.open(false).map(({ n }) => n);
    const outcomes = owner.shard.outcomes(learner.trainer, { session: learner.session, numbers });
    for (const outcome of outcomes) {
      const isKnown = outcome.code !== "BAD_CHECKSUM" && outcome.code !== "UNKNOWN_RULES";
      if (isKnown) learner.told(learner.session, outcome);
    }
  }

  #restart(learner: Learner): void {
    this.#restarts += 1;
    learner.restart();
  }

  /** Another host takes over, from any snapshot; the one before does not always notice. */
  #takeOver(): void {
    this.#takeOvers += 1;
    const from = this.random.pick([...this.#kept, undefined]);
    const left = this.random.chance(0.5) ? this.#owners.slice(-1) : [];
    for (const owner of this.#owners) if (!left.includes(owner)) owner.kill();
    this.#owners = [...left, new RoundOwner(this, from, this.#variant.owner ?? {})];
  }

  #members(trainers: readonly string[]): void {
    this.#revision += 1;
    this.writer.host({ verb: "members", revision: this.#revision, started: true, trainers });
  }

  /** The oracles. */
  check(): ScheduleReport {
    const options = foldOptions(this.pool);
    const folded = Shard.create(options);
    const history = new History(this.#learners.flatMap(({ sent }) => sent));
    folded.observers = [history];
    for (const record of this.writer.records) {
      folded.apply(record);
      history.checkValues(folded, record.seq);
    }
    for (const owner of this.#owners) {
      while (owner.shard.seq < folded.seq) owner.foldNext(() => undefined);
      promise(owner.shard.digest() === folded.digest(), () => "an owner has come to another state");
    }
    history.checkTold();
    const { processed, merged, late, dropped } = folded.fragments.ledger.total;
    const known = merged.contributions + late.contributions + dropped.contributions;
    const open = folded.fragments.get("f")?.round.length ?? 0;
    promise(processed.contributions === known + open, () => "an account does not add up");
    return {
      records: this.writer.records.length,
      rounds: folded.fragmentVersion("f") ?? 0,
      late: late.contributions + dropped.contributions,
      restarts: this.#restarts,
      takeOvers: this.#takeOvers,
      inParts: this.#learners
        .flatMap(({ sent }) => sent)
        .filter(({ records }) => records.length > 1).length,
      clipped: history.clipped,
    };
  }
}

/** Restates what rounds come to, from what learners have sent and what the journal says of it. */
class History {
  readonly measures = false;
  readonly #sent: readonly SentContribution[];
  /** The contributions that counted, by the records that completed them, with the round that each was told. */
  readonly #counted = new Map<
    number,
    { readonly sent: SentContribution; readonly round: number; readonly value: number }
  >();
  /** How many contributions guards have clipped. */
  clipped = 0;
  readonly #merged = new Map<SentContribution, number>();
  #value = 0;
  #broken: Error | undefined;

  constructor(sent: readonly SentContribution[]) {
    this.#sent = sent;
  }

  observe(folded: FoldedRecord): void {
    if (folded.kind === "trainer" && folded.contributed !== undefined && !folded.isRepeat) {
      const { contribution, round } = folded.contributed;
      if (round === 0) return;
      const { subject, header, seq } = folded;
      const sent = this.#sent.find(({ trainer, session, id }) => {
        return trainer === subject.trainer && session === header.session && id === contribution.id;
      });
      promise(sent !== undefined, () => `record ${seq} counts, which nobody has sent`);
      const again = [...this.#counted.values()].some((each) => each.sent === sent);
      promise(!again, () => `contribution ${sent.id} of ${sent.trainer} counts twice`);
      const { norm = 1, limit = 1 } = folded.outcome.guard ?? {};
      if (limit < norm) this.clipped += 1;
      this.#counted.set(seq, { sent, round, value: (sent.value * limit) / norm });
    }
    if (folded.kind === "host" && folded.closed !== undefined) this.#close(folded.closed);
  }

  #close({
    merged,
    round,
  }: {
    readonly merged: readonly { readonly seq: number }[];
    readonly round: number;
  }): void {
    let sum = 0;
    for (const { seq } of merged) {
      const counted = this.#counted.get(seq);
      promise(
        counted?.round === round,
        () => `round ${round} merges record ${seq}, which is not of it`,
      );
      promise(!this.#merged.has(counted.sent), () => `record ${seq} is merged twice`);
      this.#merged.set(counted.sent, round);
      sum += counted.value;
    }
    if (merged.length > 0) this.#value -= sum / merged.length;
  }

  failed(_record: FoldedRecord, error: Error): void {
    // The fold goes on, whatever its observers find.
    this.#broken ??= error;
  }

  /** All elements have the value that the merged contributions give: none was torn. */
  checkValues(shard: Shard, seq: number): void {
    if (this.#broken !== undefined) throw this.#broken;
    for (const block of shard.blocks()) {
      for (const value of elementsOf(block.values(), Float32Array)) {
        const text = `after record ${seq}: ${block.parameter} is ${value}, not ${this.#value}`;
        promise(Math.abs(value - this.#value) < 1e-3, () => text);
      }
    }
  }

  /** Who was told that a contribution counts in a round was told the truth, and so was everybody else. */
  checkTold(): void {
    const rounds = new Map([...this.#counted.values()].map(({ sent, round }) => [sent, round]));
    for (const sent of this.#sent) {
      const outcomes = sent.records.flatMap(({ outcome }) => outcome ?? []);
      const told = Math.max(0, ...outcomes.map(({ version }) => version));
      const round = rounds.get(sent) ?? 0;
      const isAnswered = outcomes.length === sent.records.length;
      const text = `${sent.trainer} was told round ${told} of contribution ${sent.id}, which counts in ${round}`;
      promise(told === round || (told === 0 && !isAnswered), () => text);
    }
  }
}
