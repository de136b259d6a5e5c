import { toSynchronization } from "../../../src/protocol/config/index.ts";
import type { Outcome } from "../../../src/protocol/messages/outcomes.ts";
import type { MemoryPool } from "../fold-maker.ts";
import { Network } from "../network.ts";
import { type Phases, runPhases } from "../phases.ts";
import { Random } from "../random.ts";
import { promise } from "../violation.ts";
import { isBatch } from "./batch-faults.ts";
import { Owner, type OwnerFaults, restoreFold, type Snapshot } from "./owner.ts";
import { PlainSteps, recordKey, type Stepped } from "./plain-steps.ts";
import {
  BATCHED_PARAMETER,
  ELEMENTS,
  type Entry,
  firstRecords,
  PARAMETER,
  type Publication,
  publishHost,
  SHARDS,
} from "./records.ts";
import { Registry } from "./registry.ts";
import { StepProcess, type TrainerFaults, type TrainerWorld, type WantedStep } from "./trainer.ts";

/** Parts that break the protocol on purpose. */
export interface Variant {
  readonly owner?: OwnerFaults;
  readonly trainer?: TrainerFaults;
  /** Hosts that let in a trainer whose request comes after its exit. */
  readonly forgetsExits?: boolean;
}

/** What a schedule came to; the test wants to know that the rare things happened. */
export interface ScheduleReport {
  readonly records: number;
  /** That closed while everything failed. */
  readonly stormSteps: number;
  readonly restarts: number;
  readonly takeOvers: number;
  readonly revisions: number;
  readonly late: number;
  readonly batches: number;
}

const NAMES = ["a", "b", "c", "d", "e"];
const ACTIONS = 1200;
const SNAPSHOTS_MAX = 6;

/** Steps that every trainer must get done in the calm, and rounds in which it must. */
const CALM_STEPS = 3;
const CALM_ROUNDS = 150;

/** Elements kept for the calm. */
const CALM_ELEMENTS = NAMES.length * SHARDS * CALM_ROUNDS * 0.2;

/** Runs one schedule, decided by its seed alone. @throws Violation if a promise is broken. */
export function runSchedule(seed: number, pool: MemoryPool, variant: Variant = {}): ScheduleReport {
  return runPhases(pool, () => new Schedule(seed, pool, variant));
}

class Schedule implements TrainerWorld, Phases<ScheduleReport> {
  readonly shards = SHARDS;
  readonly synchronization: Stepped;
  readonly #random: Random;
  readonly #network: Network;
  readonly #pool: MemoryPool;
  readonly #variant: Variant;
  readonly #registry: Registry;
  readonly #journals: Entry[][] = Array.from({ length: SHARDS }, () => []);
  readonly #plain: PlainSteps[];
  /** What the rules say to each record, in the order of each journal. */
  readonly #answers: (string | undefined)[][] = Array.from({ length: SHARDS }, () => []);
  readonly #owners: Owner[];
  readonly #snapshots: Snapshot[][] = Array.from({ length: SHARDS }, () => []);
  readonly #lives: StepProcess[] = [];
  readonly #current: Map<string, StepProcess> = new Map();
  readonly #loss: number;
  /** Copies of requests to enter that come late, as of a host that stood still. */
  readonly #stragglers: (() => void)[] = [];
  #elements = 0;
  #elementsMax = ELEMENTS - CALM_ELEMENTS;
  #takeOvers = 0;
  #stormSteps = 0;

  constructor(seed: number, pool: MemoryPool, variant: Variant) {
    this.#random = new Random(seed);
    this.#network = new Network(this.#random);
    this.#pool = pool;
    this.#variant = variant;
    this.#loss = this.#random.below(4) / 10;
    this.synchronization = this.#anySynchronization();
    this.#registry = new Registry(this.synchronization.trainers, variant.forgetsExits === true);
    this.#plain = this.#journals.map(() => new PlainSteps(this.synchronization));
    for (const shard of this.#journals.keys()) {
      for (const record of firstRecords(shard, this.synchronization)) this.#append(shard, record);
    }
    this.#owners = this.#journals.map((_, shard) => this.#owner(shard, undefined));
    for (const name of NAMES.slice(0, this.synchronization.trainers)) this.#join(name);
  }

  /** Everything happens in any order, and much of it fails. */
  storm(): void {
    const actions: readonly (readonly [weight: number, act: () => void])[] = [
      [300, () => this.#network.deliverOne(this.#loss)],
      [90, () => this.#random.pick([...this.#current.values()])?.act()],
      [90, () => this.#foldSome(this.#random.below(SHARDS), 1 + this.#random.below(8))],
      [6, () => this.#snapshot(this.#random.below(SHARDS))],
      [3, () => this.#takeOver(this.#random.below(SHARDS))],
      [3, () => this.#restart()],
      [1, () => this.#join(this.#random.pick(NAMES) ?? "a")],
      [1, () => this.#kill()],
      [6, () => this.#expel()],
      [4, () => this.#exit()],
      [6, () => this.#repair(this.#random.below(SHARDS))],
      [3, () => this.#stragglers.splice(this.#random.below(this.#stragglers.length), 1)[0]?.()],
    ];
    for (let step = 0; step < ACTIONS; step++) this.#random.pickWeighted(actions)?.();
  }

  /** Steps that have closed so far. */
  get #closedSteps(): number {
    return this.#plain.reduce((sum, { closed }) => sum + closed, 0);
  }

  /** Nothing fails any more: whoever is alive gets on, whoever is not is waited for no longer. */
  calm(): void {
    for (const arrive of this.#stragglers) arrive();
    this.#elementsMax = ELEMENTS;
    this.#stormSteps = this.#closedSteps;
    for (const name of NAMES) {
      const alive = [...this.#current.values()].filter((one) => one.alive && !one.isRetired);
      if (
        alive.length < this.synchronization.trainers &&
        !alive.some((one) => one.trainer === name)
      ) {
        this.#join(name);
      }
    }
    const goals = new Map(
      [...this.#current.values()].map((one) => [one, one.stepsEnded + CALM_STEPS]),
    );
    const isThere = (process: StepProcess): boolean =>
      !process.alive || process.isRetired || process.stepsEnded >= (goals.get(process) ?? 0);
    for (let round = 0; round < CALM_ROUNDS; round++) {
      if ([...goals.keys()].every(isThere)) return;
      for (const [trainer, session] of this.#registry.members) {
        if (!this.#isAlive(trainer, session)) this.#remove(trainer, session);
      }
      for (const shard of this.#journals.keys()) this.#repair(shard);
      for (const process of this.#current.values()) process.act();
      this.#network.deliverAll();
      for (const shard of this.#journals.keys()) this.#foldSome(shard, Number.POSITIVE_INFINITY);
      this.#network.deliverAll();
    }
    const stuck = [...goals.keys()].filter((process) => !isThere(process));
    promise(
      stuck.length === 0,
      () => `${stuck.map(({ trainer }) => trainer)} wait for ever in ${this.synchronization.mode}`,
    );
  }

  /** Holds the end against the journals. */
  evaluate(): ScheduleReport {
    for (const [shard, journal] of this.#journals.entries()) {
      this.#foldSome(shard, Number.POSITIVE_INFINITY);
      this.#checkShard(shard, journal);
    }
    this.#checkTold();
    return {
      records: this.#journals.flat().length,
      stormSteps: this.#stormSteps,
      restarts: this.#lives.length - this.#current.size,
      takeOvers: this.#takeOvers,
      revisions: this.#registry.record.revision,
      late: this.#answers.flat().filter((answer) => answer === "LATE").length,
      batches: this.#journals.flat().filter(isBatch).length,
    };
  }

  enter(process: StepProcess): void {
    const { trainer, session, exits } = process;
    const arrive = (): void => {
      const newest = this.#current.get(trainer)?.session;
      if (newest !== session) {
        this.#network.send(() => process.superseded());
        return;
      }
      if (this.#registry.enter(trainer, session, exits)) this.#announce();
      const { revision } = this.#registry.record;
      this.#network.send(() => process.entered(revision));
    };
    this.#network.send(arrive);
    if (this.#random.chance(0.3)) this.#stragglers.push(arrive);
  }

  publish(shard: number, publication: Publication, stored: (seq: number) => void): void {
    this.#network.send(() => {
      const seq = this.#append(shard, publication);
      this.#network.send(() => stored(seq));
    });
  }

  askOutcome(process: StepProcess, shard: number, n: number, seq: number): void {
    this.#network.send(() => {
      const outcome = this.#owners[shard]?.outcome(process.trainer, process.session, n, seq);
      if (outcome !== undefined) this.#network.send(() => process.outcomeTold(shard, outcome));
    });
  }

  askStep(process: StepProcess, shard: number, { revision, step, seq }: WantedStep): void {
    const { trainer } = process;
    this.#network.send(() => {
      const answer = this.#owners[shard]?.step(trainer, revision, step, seq);
      if (answer !== undefined) this.#network.send(() => process.stepAnswered(shard, answer));
    });
  }

  hasLostPlace(session: number): boolean {
    return this.#registry.removed.has(session);
  }

  nextElement(): number | undefined {
    if (this.#elements >= this.#elementsMax) return undefined;
    this.#elements += 1;
    return this.#elements - 1;
  }

  #anySynchronization(): Stepped {
    const trainers = 2 + this.#random.below(2);
    const input = this.#random.chance(0.25)
      ? ({ mode: "ssp", trainers, staleness: this.#random.below(3) } as const)
      : ({
          mode: "sync",
          trainers,
          backups: this.#random.below(2),
          reduce: this.#random.chance(0.5) ? "mean" : "sum",
        } as const);
    return toSynchronization(input) as Stepped;
  }

  #append(shard: number, publication: Publication): number {
    const journal = this.#journals[shard] as Entry[];
    const seq = journal.length + 1;
    journal.push({ seq, ...publication });
    this.#answers[shard]?.push(this.#plain[shard]?.take(publication.intent));
    return seq;
  }

  /** The journals are told the members, unless the host that changed them dies before. */
  #announce(): void {
    for (const shard of this.#journals.keys()) {
      this.#network.send(() => this.#append(shard, publishHost(shard, this.#registry.record)));
    }
  }

  /** The shard's host finds that its journal does not know the newest members. */
  #repair(shard: number): void {
    const { record } = this.#registry;
    if (record.revision === 0 || this.#owners[shard]?.fold.steps.revision === record.revision)
      return;
    this.#append(shard, publishHost(shard, record));
  }

  #owner(shard: number, from: Snapshot | undefined): Owner {
    const journal = this.#journals[shard] as Entry[];
    return new Owner({ shard, journal, pool: this.#pool, from, faults: this.#variant.owner ?? {} });
  }

  /** The owner of a shard dies; the next one begins with one of the last snapshots. */
  #takeOver(shard: number): void {
    this.#takeOvers += 1;
    const from = this.#random.pick([undefined, ...(this.#snapshots[shard] ?? []).slice(-2)]);
    this.#owners[shard] = this.#owner(shard, from);
  }

  #snapshot(shard: number): void {
    const kept = this.#snapshots[shard] as Snapshot[];
    const owner = this.#owners[shard];
    if (owner !== undefined && kept.length < SNAPSHOTS_MAX) kept.push(owner.snapshot());
  }

  #foldSome(shard: number, count: number): void {
    this.#owners[shard]?.foldSome(count, (entry, outcome) => this.#check(shard, entry, outcome));
  }

  /** Every record is answered as the plain rules say. */
  #check(shard: number, entry: Entry, outcome: Outcome | undefined): void {
    if (entry.intent.by === "host") return;
    const answer = outcome === undefined ? undefined : (outcome.code ?? "applied");
    const expected = this.#answers[shard]?.[entry.seq - 1];
    promise(
      answer === expected,
      () =>
        `record ${entry.seq} of shard ${shard}, ${JSON.stringify(entry.intent)}: ` +
        `answered ${answer}, not ${expected}`,
    );
  }

  #join(trainer: string): void {
    const old = this.#current.get(trainer);
    const process = new StepProcess(
      this,
      trainer,
      this.#lives.length + 1,
      this.#variant.trainer ?? {},
    );
    this.#lives.push(process);
    this.#current.set(trainer, process);
    if (old !== undefined) this.#remove(trainer, old.session);
  }

  /** A trainer begins a new life; the old one may not know that it is over. */
  #restart(): void {
    const old = this.#random.pick([...this.#current.values()]);
    if (old === undefined) return;
    if (this.#random.chance(0.7)) old.alive = false;
    this.#join(old.trainer);
  }

  #kill(): void {
    const process = this.#random.pick([...this.#current.values()]);
    if (process !== undefined) process.alive = false;
  }

  #isAlive(trainer: string, session: number): boolean {
    const process = this.#current.get(trainer);
    return process?.alive === true && process.session === session;
  }

  /** The lease of a member is lost: mostly of a dead one, sometimes of one that was only slow. */
  #expel(): void {
    const isAlive = this.#random.chance(0.15);
    const candidates = this.#registry.members.filter(([id, session]) => {
      return this.#isAlive(id, session) === isAlive;
    });
    const lost = this.#random.pick(candidates);
    if (lost !== undefined) this.#remove(...lost);
  }

  #remove(trainer: string, session: number): void {
    if (this.#registry.remove(trainer, session)) this.#announce();
  }

  /** A trainer exits, sometimes for good: then nobody may wait for it, although it is alive. */
  #exit(): void {
    const process = this.#random.pick([...this.#current.values()]);
    if (process?.exit(this.#random.chance(0.3)) !== true) return;
    const { trainer, session, exits } = process;
    if (this.#registry.exit(trainer, session, exits)) this.#announce();
  }

  /** The owner, the journal folded anew and every snapshot folded on end in what the rules say. */
  #checkShard(shard: number, journal: readonly Entry[]): void {
    const plain = this.#plain[shard] as PlainSteps;
    const again = this.#owner(shard, undefined);
    again.foldSome(journal.length, (entry, outcome) => this.#check(shard, entry, outcome));
    const digest = again.fold.digest();
    this.#checkValues(again, shard, PARAMETER, plain.values);
    this.#checkValues(again, shard, BATCHED_PARAMETER, plain.batchedValues);
    promise(again.fold.steps.closed === plain.closed, () => `shard ${shard} closed another step`);
    promise(
      this.#owners[shard]?.fold.digest() === digest,
      () => `the owner of shard ${shard} holds another state than its journal`,
    );
    for (const snapshot of this.#snapshots[shard] ?? []) {
      const fold = restoreFold(this.#pool, shard, snapshot);
      for (const entry of journal.slice(snapshot.seq)) {
        this.#check(shard, entry, fold.apply(entry)?.outcome);
      }
      promise(
        fold.digest() === digest,
        () => `the snapshot at ${snapshot.seq} of shard ${shard} replays differently`,
      );
    }
  }

  #checkValues({ fold }: Owner, shard: number, parameter: string, expected: Float64Array): void {
    const bytes = fold.block(parameter, 0)?.values() ?? new Uint8Array(0);
    const values = new Float32Array(Uint8Array.from(bytes).buffer);
    const at = values.findIndex((value, i) => value !== Math.fround(expected[i] as number));
    promise(
      at === -1,
      () => `element ${at} of ${parameter} in shard ${shard} is ${values[at]}, not ${expected[at]}`,
    );
  }

  /** What a trainer was told to be applied is in the values once its step has closed, nothing else is. */
  #checkTold(): void {
    for (const { shard, intent, applied } of this.#lives.flatMap((life) => life.told)) {
      const { element = -1, step } = intent;
      const plain = this.#plain[shard] as PlainSteps;
      // Gradients that are sent again have other records, of which at most one is applied.
      const takenBy = plain.taken.get(element);
      if (!applied && takenBy !== undefined && takenBy !== recordKey(intent)) continue;
      promise(!plain.twice.has(element), () => `${JSON.stringify(intent)} was applied twice`);
      const isIn = plain.values[element] !== 0;
      const isOver = this.synchronization.mode === "ssp" || step <= plain.closed;
      promise(
        isIn === (applied && isOver),
        () => `${JSON.stringify(intent)} was ${applied ? "" : "not "}applied, yet is ${isIn}`,
      );
    }
  }
}
