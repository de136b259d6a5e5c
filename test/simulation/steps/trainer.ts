import {
  Outbox,
  type OutboxCommands,
  type OutboxListener,
} from "../../../src/client/core/outbox.ts";
import { Positions } from "../../../src/client/core/shard-window.ts";
import {
  newStepCall,
  type StepCall,
  type StepsCommands,
  StepsCore,
} from "../../../src/client/core/steps-core.ts";
import {
  type BlockUpdate,
  type Failure,
  newUpdateCall,
  type UpdateCall,
} from "../../../src/client/core/update-call.ts";

import type { Outcome } from "../../../src/protocol/messages/outcomes.ts";
import { WINDOW } from "../fold-maker.ts";
import { promise } from "../violation.ts";
import type { StepAnswer } from "./owner.ts";
import type { Stepped } from "./plain-steps.ts";
import { type Publication, publishTrainer, type TrainerIntent } from "./records.ts";

/** What a trainer reaches of its world. Whatever it asks for may be lost, or come late or twice. */
export interface TrainerWorld {
  readonly shards: number;
  readonly synchronization: Stepped;
  enter(process: StepProcess): void;
  publish(shard: number, publication: Publication, stored: (seq: number) => void): void;
  askOutcome(process: StepProcess, shard: number, n: number, seq: number): void;
  askStep(process: StepProcess, shard: number, wanted: WantedStep): void;
  /** Whether a session has been removed from the members, even if it is one again. */
  hasLostPlace(session: number): boolean;
  /** An element that no other gradient has; undefined once there are no more. */
  nextElement(): number | undefined;
}

/** A step that must have closed, under members and at a position that must be known. */
export interface WantedStep {
  readonly revision: number;
  readonly step: number;
  readonly seq: number;
}

/** Deviations from the protocol, for proving that the oracles find them. */
export interface TrainerFaults {
  /** Ends a step before its gradients are stored. */
  readonly clocksEarly?: boolean;
}

/** Records under way for a call: gradients, or clocks, which have no elements. */
interface Sending {
  readonly stepCall: StepCall;
  readonly step: number;
  readonly elements: readonly number[];
  /** What follows instead of the answer to the step machine. */
  readonly next?: () => void;
}

const BYTES_MAX = 1 << 20;
const NOT_MEMBER: Failure = { code: "NOT_MEMBER", message: "no place in the steps", details: {} };
/** Time that passes whenever it acts: all that is unanswered is repeated or asked for. */
const ACT_MS = 10_000;

/**
 * One life of a trainer that keeps step: the step machine and the outbox of the client's core, on a network
 * that the simulation decides. It repeats what is unanswered until it is killed.
 */
export class StepProcess implements StepsCommands, OutboxCommands, OutboxListener {
  readonly trainer: string;
  readonly session: number;
  /** What it was told of its gradients, with the shard. */
  readonly told: { shard: number; intent: TrainerIntent; applied: boolean }[] = [];
  alive = true;
  /** Takes part in no later step, although it is alive. */
  isRetired = false;
  /** How often it has exited. */
  exits = 0;
  /** Steps ended by itself. */
  stepsEnded = 0;
  readonly #world: TrainerWorld;
  readonly #faults: TrainerFaults;
  readonly #positions = new Positions({ journalReplaced: () => {} });
  readonly #outbox: Outbox;
  readonly #steps: StepsCore;
  readonly #sendings: Map<number, Sending> = new Map();
  readonly #records: Map<string, { intent: TrainerIntent; update: BlockUpdate }> = new Map();
  /** The call that is to enter, and questions for steps without an answer, by shard. */
  #entering: StepCall | undefined;
  readonly #asks: Map<number, { call: StepCall; revision: number }> = new Map();
  /** Shards that are read from, once the step to be read has closed there. */
  readonly #reads: Set<number> = new Set();
  #running: StepCall | undefined;
  /** Elements of its next gradients, one for each shard that they go to. */
  #elements: readonly number[] = [];
  #revision = 0;
  #calls = 0;
  #nowMs = 0;

  constructor(world: TrainerWorld, trainer: string, session: number, faults: TrainerFaults) {
    this.#world = world;
    this.trainer = trainer;
    this.session = session;
    this.#faults = faults;
    const limits = { inFlightBytesMax: BYTES_MAX, windowRecords: WINDOW };
    const parts = { commands: this, listener: this, positions: this.#positions };
    this.#outbox = new Outbox({ ...parts, ...limits });
    this.#steps = new StepsCore(this);
    this.#steps.sessionBegan(session, world.shards, world.synchronization);
    this.#outbox.start(session, this.#nowMs);
  }

  /** Begins its next step, or does again what it is waiting for an answer to. */
  act(): void {
    if (!this.alive) return;
    if (this.#entering !== undefined) this.#world.enter(this);
    for (const [shard, { call, revision }] of [...this.#asks]) {
      this.#askShard(shard, revision, this.#steps.wantedStep(call));
    }
    const { readStep } = this.#steps;
    if (readStep === undefined) this.#reads.clear();
    for (const shard of this.#reads) this.#askShard(shard, this.#revision, readStep ?? 0);
    this.#nowMs += ACT_MS;
    this.#outbox.tick(this.#nowMs);
    if (this.#running === undefined && this.#reads.size === 0 && !this.isRetired) this.#begin();
  }

  /** It is a member from this revision on. */
  entered(revision: number): void {
    const call = this.#entering;
    this.#entering = undefined;
    this.#revision = revision;
    if (this.alive && call !== undefined) this.#steps.entered(call, revision);
  }

  /** A newer session of the trainer has joined. */
  superseded(): void {
    this.alive = false;
  }

  stepAnswered(shard: number, { closed, hasPlace }: StepAnswer): void {
    if (!this.alive) return;
    const { readStep = 0 } = this.#steps;
    if (this.#reads.has(shard) && (closed >= readStep || !hasPlace)) {
      this.#reads.delete(shard);
      if (hasPlace) this.#steps.noteClosed(shard, closed);
      else this.#steps.lostPlace();
    }
    const ask = this.#asks.get(shard);
    // An answer to an earlier question is none to this one.
    if (ask === undefined || (hasPlace && closed < this.#steps.wantedStep(ask.call))) return;
    this.#asks.delete(shard);
    if (hasPlace) this.#steps.stepAnswered(ask.call, shard, closed);
    else this.#steps.askFailed(ask.call, NOT_MEMBER);
  }

  outcomeTold(shard: number, outcome: Outcome): void {
    const record = this.#records.get(`${shard} ${outcome.n}`);
    if (!this.alive || record === undefined) return;
    if (outcome.code === "SUPERSEDED") this.alive = false;
    if (!this.alive) return;
    const { intent, update } = record;
    if (update.isOpen) this.#note(shard, intent, update, outcome.code);
    const { session } = this;
    const answers = { shard, generation: 1, session, outcomes: [outcome] };
    this.#outbox.answered(answers, true, this.#nowMs);
  }

  /** Leaves the steps; false if it cannot now. It may enter again unless it retires. */
  exit(retires: boolean): boolean {
    if (!this.alive || this.isRetired || this.#running !== undefined) return false;
    this.exits += 1;
    this.isRetired = retires;
    this.#reads.clear();
    const call = newStepCall(++this.#calls, "exit");
    this.#steps.begin(call);
    this.#steps.exited(call);
    return true;
  }

  enter(call: StepCall): void {
    this.#entering = call;
  }

  /** The schedule removes it from the members at once. */
  exitMembers(): void {}

  askStep(call: StepCall, shard: number, revision: number): void {
    this.#asks.set(shard, { call, revision });
  }

  sendGradients(stepCall: StepCall, step: number, countsLate: boolean): void {
    const elements = this.#elements;
    const gradients = { stepCall, step: step === 0 ? this.#steps.ended + 1 : step, elements };
    const send = (): void => this.#send(gradients, elements.length, countsLate);
    if (this.#faults.clocksEarly !== true) send();
    else {
      const early = { stepCall, step: this.#steps.ended + 1, elements: [], next: send };
      this.#send(early, this.#world.shards, false);
    }
  }

  sendClocks(stepCall: StepCall, step: number): void {
    this.#send({ stepCall, step, elements: [] }, this.#world.shards, false);
  }

  stepCallDone({ kind }: StepCall): void {
    if (kind === "exit") return;
    this.#running = undefined;
    this.stepsEnded += 1;
    // Every other step it reads before it goes on; where trainers may run ahead only reads wait.
    const reads = this.#world.synchronization.mode === "ssp" || this.stepsEnded % 2 === 0;
    if (!reads) return;
    for (let shard = 0; shard < this.#world.shards; shard++) this.#reads.add(shard);
  }

  stepCallFailed(_call: StepCall, { code }: Failure): void {
    const isLate = code === "LATE" && this.#world.hasLostPlace(this.session);
    promise(isLate || code === "NOT_MEMBER", () => `${this.trainer} fails with ${code}`);
    this.#running = undefined;
    this.#reads.clear();
  }

  publish(update: BlockUpdate, session: number, done: number): void {
    const { n, shard, index } = update;
    const sending = this.#sendings.get(update.call.id);
    promise(sending !== undefined && done === n - 1, () => `${this.trainer} sends two at a time`);
    const head = { by: "trainer", trainer: this.trainer, session, n, step: sending.step } as const;
    const element = sending.elements[index];
    const intent = element === undefined ? head : { ...head, element };
    this.#records.set(`${shard} ${n}`, { intent, update });
    this.repeat(update);
  }

  repeat(update: BlockUpdate): void {
    const { shard, n, slot, serial } = update;
    const record = this.#records.get(`${shard} ${n}`);
    if (record === undefined) return;
    const publication = publishTrainer(shard, record.intent, this.#world.synchronization.mode);
    this.#world.publish(shard, publication, (seq) => {
      this.#outbox.stored(slot, serial, shard, { generation: 1, seq }, this.#nowMs);
    });
  }

  release(): void {}

  setTimer(): void {}

  askOutcomes(
    shard: number,
    _session: number,
    numbers: readonly number[],
    { seq }: { readonly seq: number },
  ): void {
    for (const n of numbers) this.#world.askOutcome(this, shard, n, seq);
  }

  callOver(call: UpdateCall): void {
    const sending = this.#sendings.get(call.id);
    this.#sendings.delete(call.id);
    if (sending === undefined) return;
    const { stepCall, elements, next } = sending;
    const { rejection, applied, unknown, late } = call;
    const areGradients = elements.length > 0 && next === undefined;
    if (rejection !== undefined && areGradients) {
      this.#steps.gradientsFailed(stepCall, rejection, applied + unknown);
    } else if (rejection !== undefined) this.#steps.failed(stepCall, rejection);
    else if (next !== undefined) next();
    else if (elements.length > 0) this.#steps.gradientsSent(stepCall, late);
    else this.#steps.clocksSent(stepCall);
  }

  sessionOver(): void {
    this.alive = false;
  }

  #begin(): void {
    const shards = Array.from({ length: this.#world.shards }, (_, shard) => shard);
    this.#elements = shards.flatMap(() => this.#world.nextElement() ?? []);
    const kind = this.#elements.length === 0 ? "end" : "gradients";
    const call = newStepCall(++this.#calls, kind, shards.slice(0, this.#elements.length));
    this.#running = call;
    this.#steps.begin(call);
    if (this.#entering !== undefined) this.#world.enter(this);
  }

  #send(sending: Sending, shards: number, countsLate: boolean): void {
    const sizes = Array.from({ length: shards }, (_, shard) => {
      return { shard, blocks: 1, dataBytes: 0, namesVersion: false };
    });
    const mode = { isDoneWhenStored: false, countsLate, countsPresent: false };
    const call = newUpdateCall(++this.#calls, mode, sizes);
    this.#sendings.set(call.id, sending);
    this.#outbox.send(call, this.#nowMs);
  }

  #askShard(shard: number, revision: number, step: number): void {
    const { seq } = this.#positions.get(shard);
    this.#world.askStep(this, shard, { revision, step, seq });
  }

  #note(shard: number, intent: TrainerIntent, { call }: BlockUpdate, code: Outcome["code"]): void {
    // A step closes without a member only if it may be left out, or was none for a time.
    const mayBeLate = call.mode.countsLate || this.#world.hasLostPlace(this.session);
    promise(
      code === undefined || code === "NOT_MEMBER" || (code === "LATE" && mayBeLate),
      () => `${this.trainer} (session ${this.session}) was told ${code} of step ${intent.step}`,
    );
    if (intent.element === undefined || code === "NOT_MEMBER") return;
    this.told.push({ shard, intent, applied: code === undefined });
  }
}
