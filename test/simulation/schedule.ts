import type { RecordAnswer } from "../../src/actors/fold/shard.ts";
import type { StoredManifest } from "../../src/actors/journal/manifest.ts";
import { SnapshotCut } from "../../src/actors/journal/snapshots/snapshotter.ts";
import type { HostRecord } from "../../src/protocol/messages/host-records.ts";
import type { TrainerSession } from "../../src/protocol/messages/lifecycle-messages.ts";
import type { FoldMaker, MemoryPool } from "./fold-maker.ts";
import { RULES, SOUND_FOLD, WINDOW } from "./fold-maker.ts";
import {
  BLOCKS,
  blocksOf,
  ELEMENTS,
  PARAMETER,
  type Publication,
  publishGrant,
  publishHost,
  SHARD,
} from "./intents.ts";
import { Journal } from "./journal.ts";
import { Network } from "./network.ts";
import { COPY_BUDGET, Owner, type OwnerFaults, type OwnerWorld, restoreFold } from "./owner.ts";
import { type Phases, runPhases } from "./phases.ts";
import { Random } from "./random.ts";
import { placeOf, replayAll, skipGap } from "./replay.ts";
import { SimulatedClock } from "./simulated-clock.ts";
import { type Snapshot, SnapshotStream } from "./snapshot-stream.ts";
import { type TrainerFaults, TrainerProcess, type TrainerWorld } from "./trainer.ts";
import { describe, Verdicts } from "./verdicts.ts";
import { promise } from "./violation.ts";

/** What is under test: the fold, and optionally parts that break the protocol on purpose. */
export interface Variant {
  readonly maker?: FoldMaker;
  readonly owner?: OwnerFaults;
  readonly trainer?: TrainerFaults;
}

/** What a schedule came to; the tests want to know that the rare things happened. */
export interface ScheduleReport {
  readonly records: number;
  readonly takeOvers: number;
  readonly snapshots: number;
  readonly gaps: number;
  readonly told: Record<"applied" | "rejected", number>;
}

const TRAINERS = ["alice", "bob", "carol"];
/** More than all sessions of a schedule. */
const UNGIVEN = 1_000_000;
const STEPS = 400;
const OWNERS_MAX = 3;
const SNAPSHOTS_MAX = 6;

/** Probability that a delivered record was damaged in transit. */
const DAMAGE = 0.05;

/** Share of wishes that are about all blocks at once. */
const BATCH_SHARE = 0.35;

/** Rounds in which everything must be settled once nothing fails any more. */
const CALM_ROUNDS = 12;

/** Pushes kept for the calm after the storm: more than twice the window, for each trainer. */
const CALM_PUSHES = 2 * WINDOW + 1;
const STORM_ELEMENTS = ELEMENTS - TRAINERS.length * CALM_PUSHES;

/** Runs one schedule, decided by its seed alone. @throws Violation if a promise is broken. */
export function runSchedule(seed: number, pool: MemoryPool, variant: Variant = {}): ScheduleReport {
  return runPhases(pool, () => new Schedule(seed, pool, variant));
}

class Schedule implements TrainerWorld, Phases<ScheduleReport> {
  readonly verdicts: Verdicts = new Verdicts();
  readonly #random: Random;
  readonly #network: Network;
  readonly #pool: MemoryPool;
  readonly #variant: Variant;
  readonly #maker: FoldMaker;
  readonly #journal: Journal = new Journal();
  readonly #stream: SnapshotStream = new SnapshotStream();
  readonly #world: OwnerWorld;
  readonly #clock: SimulatedClock;
  readonly #loss: number;

  /** Every life of every trainer, and by reply subject; the newest of each trainer by name. */
  readonly #lives: TrainerProcess[] = [];
  readonly #current: Map<string, TrainerProcess> = new Map();
  #owners: Owner[] = [];
  #term = 0;
  #takeOvers = 0;
  readonly #snapshots: Snapshot[] = [];
  /** States that owners had, by the record they had folded last. */
  readonly #states: { who: string; seq: number; digest: string }[] = [];
  #sessions = 0;
  #epoch = 0;
  #elements = 0;

  constructor(seed: number, pool: MemoryPool, variant: Variant) {
    this.#random = new Random(seed);
    this.#network = new Network(this.#random);
    this.#pool = pool;
    this.#variant = variant;
    this.#maker = variant.maker ?? SOUND_FOLD;
    this.#loss = this.#random.below(4) / 10;
    this.#clock = new SimulatedClock(this.#random);
    this.#world = this.#makeWorld();
    this.#beginSnapshots();
    this.#journal.append(publishHost({ verb: "rules", rules: RULES.version }));
    for (const trainer of TRAINERS) this.#join(trainer);
    this.#initialize();
    this.#takeOver();
  }

  /** Everything happens in any order, and much of it fails. */
  storm(): void {
    const actions: readonly (readonly [weight: number, act: () => void])[] = [
      [50, () => this.#network.deliverOne(this.#loss)],
      [26, () => this.#foldSome(this.#random.pick(this.#owners))],
      [14, () => this.#push(this.#random.pick([...this.#current.values()]))],
      [7, () => this.#random.pick(this.#lives)?.timeOut(this.#random)],
      [6, () => this.#random.pick(this.#owners)?.beginSnapshot()],
      [5, () => this.#commit(this.#random.pick(this.#owners))],
      [4, () => this.#random.pick(this.#owners)?.storeBlock()],
      [4, () => this.#random.pick(this.#owners)?.writeWatermark()],
      [6, () => this.#clock.fireOne()],
      [2, () => this.#takeOver()],
      [1, () => this.#random.pick(this.#owners)?.kill()],
      [2, () => this.#random.pick(this.#lives)?.giveUp(this.#random)],
      [1, () => this.#random.pick(this.#lives)?.reconnect()],
      [1, () => this.#restart()],
      [1, () => this.#initialize()],
      [1, () => this.#host()],
      [2, () => this.#fillDisk()],
    ];
    for (let step = 0; step < STEPS; step++) {
      this.#random.pickWeighted(actions)?.();
      this.#owners = this.#owners.filter((owner) => owner.alive);
    }
  }

  /** Nothing fails any more: all that is pending must settle, and new pushes must get through. */
  calm(): void {
    for (const owner of this.#owners) this.#noteState(owner);
    this.#takeOver();
    this.#settleAll("what the storm left");
    // The first ones chosen may only learn now that their sessions have ended.
    for (let attempt = 0; attempt === 0 || !this.#initialized(); attempt++) {
      promise(attempt <= TRAINERS.length, () => "no initialization gets through in the calm");
      this.#initialize();
      this.#settleAll("an initialization in the calm");
    }
    const firstInCalm = this.#elements;
    for (let push = 0; push < CALM_PUSHES; push++) {
      for (const process of this.#current.values()) {
        promise(process.ready, () => `the calls of ${process.trainer} are never over`);
        process.submit(this.#wish(this.#elements++));
      }
      this.#settleAll("a push in the calm");
    }
    for (const process of this.#current.values()) {
      // The outcome of a first push stays unknown to a trainer that learns by it of its session's end.
      const inCalm = [...process.told].filter(([{ element }]) => element >= firstInCalm);
      promise(inCalm.length > 1, () => `no push of ${process.trainer} gets through in the calm`);
      for (const [intent, verdict] of inCalm) {
        promise(verdict === "applied", () => `${describe(intent)} is ${verdict} in the calm`);
      }
    }
  }

  /** Holds the end against the journal. */
  evaluate(): ScheduleReport {
    for (const owner of this.#owners) this.#noteState(owner);
    const applied = this.#replay();
    const told = { applied: 0, rejected: 0 };
    for (const [intent, verdict] of this.#lives.flatMap((life) => [...life.told])) {
      told[verdict] += 1;
      if (intent.verb === "init") continue;
      const wanted = verdict === "applied" ? 1 : 0;
      for (const index of blocksOf(intent)) {
        const times = applied.get(placeOf(index, intent.element)) ?? 0;
        promise(
          times === wanted,
          () => `${describe(intent)}: ${verdict}, yet applied ${times} times to block ${index}`,
        );
      }
    }
    for (const [place, times] of applied) {
      promise(times === 1, () => `element ${place} was added to ${times} times`);
    }
    const { length: records } = this.#journal.history;
    const { length: snapshots } = this.#snapshots;
    const gaps = this.#journal.last - records;
    return { records, takeOvers: this.#takeOvers, snapshots, gaps, told };
  }

  /** Folds all anew, from the first record and from every snapshot, and compares every state noted. */
  #replay(): ReadonlyMap<number, number> {
    const { lastRecord: last } = this.#journal;
    const seqs = [
      last,
      ...this.#states.map(({ seq }) => seq),
      ...this.#snapshots.map(({ seq }) => seq),
    ];
    const { digests, applied } = replayAll(
      this.#journal,
      this.#maker,
      this.#pool,
      this.verdicts,
      new Set(seqs),
    );
    for (const { who, seq, digest } of this.#states) {
      promise(
        digest === digests.get(seq),
        () => `${who} holds another state at ${seq} than its journal`,
      );
    }
    for (const snapshot of this.#snapshots) {
      const fold = restoreFold(this.#maker, this.#pool, snapshot);
      promise(
        fold.digest() === digests.get(snapshot.seq),
        () => `the snapshot at ${snapshot.seq} holds another state than its journal`,
      );
      for (const entry of this.#journal.history.filter(({ seq }) => seq > snapshot.seq)) {
        skipGap(fold, entry);
        this.verdicts.noteSettled(entry.seq, fold.apply(entry));
      }
      promise(
        fold.digest() === digests.get(last),
        () => `the snapshot at ${snapshot.seq} replays differently`,
      );
    }
    return applied;
  }

  /** Keeps the state of an owner, to be compared in the end. */
  #noteState({ term, fold }: Owner): void {
    const who = `the owner of term ${term}`;
    this.#states.push({ who, seq: fold.seq, digest: fold.digest() });
  }

  publish(publication: Publication, stored: (seq: number) => void): void {
    this.#network.send(() => {
      const seq = this.#append(publication);
      this.#network.send(() => stored(seq));
    });
  }

  ask(process: TrainerProcess, request: { session: number; numbers: number[] }, seq: number): void {
    this.#network.send(() => {
      for (const owner of this.#owners) {
        const { session } = request;
        owner.ask(process.trainer, request, seq, (outcomes) => {
          for (const outcome of outcomes) {
            this.#network.send(() => process.receive(outcome, session, true));
          }
        });
      }
    });
  }

  rejoin(process: TrainerProcess): number | undefined {
    if (this.#current.get(process.trainer) !== process) return undefined;
    this.#sessions += 1;
    return this.#sessions;
  }

  fenced(process: TrainerProcess): void {
    if (this.#current.get(process.trainer) === process) this.#join(process.trainer);
  }

  #join(trainer: string): void {
    this.#sessions += 1;
    const process = new TrainerProcess(this, trainer, this.#sessions, this.#variant.trainer ?? {});
    this.#lives.push(process);
    this.#current.set(trainer, process);
  }

  /** A trainer begins a new life; the old one may not know that it is over. */
  #restart(): void {
    const old = this.#random.pick([...this.#current.values()]);
    if (old === undefined) return;
    if (this.#random.chance(0.7)) old.kill();
    this.#join(old.trainer);
  }

  /** Some trainer initializes all blocks under a new epoch. */
  #initialize(): void {
    const process = this.#random.pick([...this.#current.values()].filter((one) => one.ready));
    if (process === undefined) return;
    this.#epoch += 1;
    // The journal is told before the trainer is.
    this.#append(publishGrant(process.trainer, this.#epoch));
    for (let index = 0; index < BLOCKS && process.ready; index++) {
      const epoch = this.#epoch;
      process.submit({ verb: "init", index, epoch, element: -1, flaw: "none" });
    }
  }

  /** Whether somebody was told that every block is initialized under the newest epoch. */
  #initialized(): boolean {
    const told = this.#lives.flatMap((life) => [...life.told]);
    const inits = told.filter(([{ verb, epoch }]) => verb === "init" && epoch === this.#epoch);
    return inits.filter(([, verdict]) => verdict === "applied").length === BLOCKS;
  }

  #push(process: TrainerProcess | undefined): void {
    if (process?.ready !== true || this.#elements >= STORM_ELEMENTS) return;
    const flaw =
      this.#random.pick(["damaged", "unfit", ...Array(14).fill("none")] as const) ?? "none";
    // Some trainers have not heard of the newest epoch, and one has dreamt of the next.
    const epoch = Math.max(1, this.#epoch + (this.#random.pick([0, 0, 0, 0, 0, 0, -1, 1]) ?? 0));
    process.submit({ ...this.#wish(this.#elements++), epoch, flaw });
  }

  #wish(element: number) {
    const verb = this.#random.chance(BATCH_SHARE) ? "batch" : "push";
    return {
      verb,
      index: verb === "batch" ? 0 : element % BLOCKS,
      epoch: this.#epoch,
      element,
      flaw: "none",
    } as const;
  }

  /** A host drops blocks, ends sessions, or has invented ones forgotten; what it says may come late. */
  #host(): void {
    const session = this.#random.below(this.#sessions + 1);
    const epoch = Math.max(0, this.#epoch - this.#random.below(2));
    const record = this.#random.pickWeighted<() => HostRecord>([
      [2, () => ({ verb: "floor", session })],
      [4, () => ({ verb: "drop", parameter: PARAMETER, epoch })],
      [3, () => ({ verb: "sessions", upTo: Math.max(1, session), live: this.#live(session) })],
      [3, () => ({ verb: "forget", trainers: this.#invented() })],
    ]);
    if (record === undefined) return;
    const publication = publishHost(record());
    this.#network.send(() => this.#append(publication));
  }

  /** The sessions up to this one that go on. */
  #live(upTo: number): number[] {
    const sessions = [...this.#current.values()].map((process) => process.session);
    return sessions.filter((session) => session <= upTo);
  }

  /** Each trainer with the sessions of the others, and with a number that is not given here. */
  #invented(): TrainerSession[] {
    const given = [...this.#current.values()].map(({ trainer, session }) => ({ trainer, session }));
    return TRAINERS.flatMap((trainer) => {
      const others = given.filter((other) => other.trainer !== trainer);
      return [...others.map(({ session }) => session), UNGIVEN].map((session): TrainerSession => {
        return [trainer, session];
      });
    });
  }

  #foldSome(owner: Owner | undefined): void {
    for (let left = 1 + this.#random.below(4); left > 0; left--) this.#fold(owner);
  }

  /** Records are refused, and use up sequences; their senders send them again. */
  #fillDisk(): void {
    for (let left = 1 + this.#random.below(3); left > 0; left--) this.#journal.refuse();
  }

  /**
   * The journal stores a record. If the disk was full before it, the owner skips the gap before
   * anybody else takes over, who would have to take it for a loss.
   */
  #append(publication: Publication): number {
    const isBehindGap = this.#journal.last > this.#journal.lastRecord;
    if (isBehindGap && this.#newestOwner === undefined) this.#takeOver();
    const seq = this.#journal.append(publication);
    const owner = this.#newestOwner;
    while (isBehindGap && owner !== undefined && owner.behind > 0) this.#fold(owner);
    return seq;
  }

  get #newestOwner(): Owner | undefined {
    return this.#owners.find((owner) => owner.alive && owner.term === this.#term);
  }

  #fold(owner: Owner | undefined): void {
    const isDamaged = this.#random.chance(DAMAGE);
    const settled = owner?.foldNext(isDamaged, (seq, answer) =>
      this.verdicts.noteSettled(seq, answer),
    );
    if (settled !== undefined && settled.reply !== "") this.#answer(settled);
  }

  #answer({ reply, outcome, session }: RecordAnswer): void {
    const process = this.#lives.find((life) => life.reply === reply);
    promise(process !== undefined, () => `an answer to ${reply}, where nobody ever listened`);
    this.#network.send(() => process.receive(outcome, session, false));
  }

  /** A new owner takes over, whether the old ones know it or not. */
  #takeOver(): void {
    if (this.#owners.length >= OWNERS_MAX) this.#owners.shift()?.kill();
    this.#term += 1;
    this.#takeOvers += 1;
    // A damaged snapshot is replaced by the one before it.
    const newest = this.#stream.manifests.slice(-2);
    const from = (this.#random.chance(0.8) ? newest.at(-1) : newest[0]) as StoredManifest;
    const { owner: faults = {} } = this.#variant;
    const verifies = this.#maker === SOUND_FOLD && faults.skipsRecord !== true;
    this.#owners.push(new Owner(this.#world, { term: this.#term, from, faults, verifies }));
  }

  #makeWorld(): OwnerWorld {
    const { journal, stream } = { journal: this.#journal, stream: this.#stream };
    return {
      ...{ journal, stream, network: this.#network, clock: this.#clock },
      ...{ maker: this.#maker, pool: this.#pool, watermark: undefined },
      committed: (snapshot) => this.#snapshots.push(snapshot),
    };
  }

  /** A new shard has a snapshot of nothing. */
  #beginSnapshots(): void {
    const fold = SOUND_FOLD.create(this.#pool.options());
    this.#stream.commitCut(
      new SnapshotCut(fold, new Map(), COPY_BUDGET),
      { term: 1, owner: "" },
      0,
    );
  }

  /** An owner commits the snapshot it began. */
  #commit(owner: Owner | undefined): void {
    if (this.#snapshots.length < SNAPSHOTS_MAX) owner?.finishSnapshot();
  }

  #settleAll(what: string): void {
    for (let round = 0; round < CALM_ROUNDS; round++) {
      this.#network.deliverAll();
      for (const owner of this.#owners) while (owner.alive && owner.behind > 0) this.#fold(owner);
      this.#network.deliverAll();
      this.#owners = this.#owners.filter((owner) => owner.alive);
      if (this.#lives.every((life) => life.pending === 0) && this.#network.count === 0) return;
      for (const life of this.#lives) life.timeOutAll();
    }
    const stuck = this.#lives.filter((life) => life.pending > 0).map((life) => life.reply);
    promise(false, () => `${what} of shard ${SHARD} never settles: ${stuck.join(", ")}`);
  }
}
