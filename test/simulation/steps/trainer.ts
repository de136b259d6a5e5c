import type { Outcome } from "../../../src/protocol/outcomes.ts";
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
  askStep(process: StepProcess, shard: number, wanted: { step: number; seq: number }): void;
  /** An element that no other gradient has; undefined once there are no more. */
  nextElement(): number | undefined;
}

/** Deviations from the protocol, for proving that the oracles find them. */
export interface TrainerFaults {
  /** Ends a step before its gradients are stored. */
  readonly clocksEarly?: boolean;
}

interface Pending {
  readonly intent: TrainerIntent;
  readonly publication: Publication;
  seq?: number;
}

type Phase = "out" | "arriving" | "catching-up" | "waiting" | "sending" | "ending";

/** One life of a trainer that keeps step: it repeats what is unanswered until it is killed. */
export class StepProcess {
  readonly trainer: string;
  readonly session: number;
  /** What it was told of its gradients, with the shard. */
  readonly told: { shard: number; intent: TrainerIntent; applied: boolean }[] = [];
  alive = true;
  /** Steps ended by itself. */
  stepsEnded = 0;
  revision = 0;
  readonly #world: TrainerWorld;
  readonly #faults: TrainerFaults;
  readonly #numbers: number[];
  readonly #positions: number[];
  readonly #pending: Map<number, Pending> = new Map();
  readonly #closed: Map<number, number> = new Map();
  #phase: Phase = "out";
  #ended = 0;
  #isFirstStep = true;
  #hasLostPlace = false;

  constructor(world: TrainerWorld, trainer: string, session: number, faults: TrainerFaults) {
    this.#world = world;
    this.trainer = trainer;
    this.session = session;
    this.#faults = faults;
    this.#numbers = new Array<number>(world.shards).fill(0);
    this.#positions = new Array<number>(world.shards).fill(0);
  }

  /** Does, or does again, what it is waiting for an answer to. */
  act(): void {
    if (!this.alive) return;
    if (this.#phase === "out") this.#world.enter(this);
    else if (this.#phase === "arriving") this.#askSteps(0);
    else if (this.#phase === "waiting") this.#askSteps(this.#wantedStep);
    else for (const [shard, pending] of this.#pending) this.#chase(shard, pending);
  }

  /** It is a member from this revision on. */
  entered(revision: number): void {
    if (!this.alive || this.#phase !== "out") return;
    this.revision = revision;
    this.#phase = "arriving";
    this.#closed.clear();
    this.#isFirstStep = true;
  }

  /** A newer session of the trainer has joined. */
  superseded(): void {
    this.alive = false;
  }

  stepAnswered(shard: number, { closed, isMember }: StepAnswer): void {
    if (!this.alive || (this.#phase !== "arriving" && this.#phase !== "waiting")) return;
    const isArriving = this.#phase === "arriving";
    if (!isArriving && closed < this.#wantedStep) {
      if (!isMember) this.#phase = "out";
      return;
    }
    this.#closed.set(shard, Math.max(closed, this.#closed.get(shard) ?? 0));
    if (this.#closed.size < this.#world.shards) return;
    const most = Math.max(...this.#closed.values());
    if (most > this.#ended || isArriving) {
      this.#ended = Math.max(most, this.#ended);
      this.#begin("catching-up", this.#ended);
    } else this.#beginStep();
  }

  outcomeTold(shard: number, { n, code }: Outcome): void {
    const pending = this.#pending.get(shard);
    if (!this.alive || pending?.intent.n !== n) return;
    const { intent } = pending;
    if (code === "SUPERSEDED") {
      this.alive = false;
      return;
    }
    this.#pending.delete(shard);
    this.#hasLostPlace ||= code === "NOT_MEMBER";
    if (code !== "NOT_MEMBER") this.#note(shard, intent, code);
    // What is under way elsewhere is settled first, as a client does before it enters again.
    if (this.#pending.size > 0) return;
    if (this.#hasLostPlace) this.#phase = "out";
    else this.#proceed();
    this.#hasLostPlace = false;
  }

  #note(shard: number, intent: TrainerIntent, code: Outcome["code"]): void {
    const { synchronization } = this.#world;
    const backups = synchronization.mode === "sync" ? synchronization.backups : 0;
    const mayBeLate = backups > 0 || this.#isFirstStep;
    promise(
      code === undefined || (code === "LATE" && mayBeLate),
      () => `${this.trainer} (session ${this.session}) was told ${code} of step ${intent.step}`,
    );
    if (intent.element !== undefined)
      this.told.push({ shard, intent, applied: code === undefined });
  }

  /** Leaves the steps; it may enter again. */
  exit(): void {
    if (this.alive && this.#pending.size === 0) this.#phase = "out";
  }

  /** The step that must have closed everywhere before its next one. */
  get #wantedStep(): number {
    const { synchronization } = this.#world;
    const staleness = synchronization.mode === "ssp" ? synchronization.staleness : 0;
    return Math.max(0, this.#ended - staleness);
  }

  #proceed(): void {
    if (this.#phase === "sending" && this.#faults.clocksEarly !== true) {
      this.#begin("ending", this.#ended + 1);
    } else if (this.#phase === "ending" && this.#faults.clocksEarly === true) {
      this.#begin("sending", this.#ended + 1);
    } else {
      if (this.#phase !== "catching-up") {
        this.#ended += 1;
        this.stepsEnded += 1;
        this.#isFirstStep = false;
      }
      this.#closed.clear();
      this.#phase = "waiting";
    }
  }

  #beginStep(): void {
    this.#begin(this.#faults.clocksEarly === true ? "ending" : "sending", this.#ended + 1);
  }

  /** Sends a gradient, or a clock, of a step to every shard. */
  #begin(phase: "sending" | "ending" | "catching-up", step: number): void {
    this.#phase = phase;
    if (phase === "catching-up" && step === 0) {
      this.#proceed();
      return;
    }
    for (let shard = 0; shard < this.#world.shards; shard++) {
      const element = phase === "sending" ? this.#world.nextElement() : undefined;
      if (phase === "sending" && element === undefined) continue;
      this.#submit(shard, step, element);
    }
    if (this.#pending.size === 0) this.#proceed();
  }

  #submit(shard: number, step: number, element: number | undefined): void {
    const n = (this.#numbers[shard] ?? 0) + 1;
    this.#numbers[shard] = n;
    const { trainer, session } = this;
    const head = { by: "trainer", trainer, session, n, step } as const;
    const intent = element === undefined ? head : { ...head, element };
    const publication = publishTrainer(shard, intent, this.#world.synchronization.mode);
    const pending = { intent, publication };
    this.#pending.set(shard, pending);
    this.#chase(shard, pending);
  }

  #chase(shard: number, pending: Pending): void {
    if (pending.seq === undefined) {
      this.#world.publish(shard, pending.publication, (seq) => {
        pending.seq ??= seq;
        this.#positions[shard] = Math.max(seq, this.#positions[shard] ?? 0);
      });
    } else this.#world.askOutcome(this, shard, pending.intent.n, pending.seq);
  }

  #askSteps(step: number): void {
    for (let shard = 0; shard < this.#world.shards; shard++) {
      if (this.#closed.has(shard)) continue;
      this.#world.askStep(this, shard, { step, seq: this.#positions[shard] ?? 0 });
    }
  }
}
