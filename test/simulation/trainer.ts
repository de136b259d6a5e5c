import type { Outcome } from "../../src/protocol/outcomes.ts";
import { WINDOW } from "./fold-maker.ts";
import { type Publication, publishTrainer, SUBJECTS, type TrainerIntent } from "./intents.ts";
import type { Random } from "./random.ts";
import { describe, type Verdict, type Verdicts } from "./verdicts.ts";
import { promise } from "./violation.ts";

/** What a trainer reaches of its world: nothing that a real client would not. */
export interface TrainerWorld {
  readonly verdicts: Verdicts;
  /** Sends a record to the journal; the PubAck, if it arrives, brings the sequence. */
  publish(publication: Publication, stored: (seq: number) => void): void;
  /** Asks all owners of the shard what became of a record, once they have folded so far. */
  ask(trainer: TrainerProcess, request: { session: number; numbers: number[] }, seq: number): void;
  /** The process has learned that its session ended. */
  fenced(trainer: TrainerProcess): void;
}

/** Deviations from the protocol, for proving that the oracles find them. */
export interface TrainerFaults {
  /** Repeats under a new number what was not acknowledged. */
  readonly renumbers?: boolean;
  /** Says `done` of everything sent before. */
  readonly overpromises?: boolean;
}

interface Pending {
  publication: Publication;
  intent: TrainerIntent;
  position?: number;
}

/** What a trainer wants done, apart from what the protocol adds. */
export type Wish = Pick<TrainerIntent, "verb" | "index" | "epoch" | "element" | "flaw">;

/** One life of a trainer: it follows the protocol until it is killed or told that it is over. */
export class TrainerProcess {
  readonly trainer: string;
  readonly session: number;
  readonly reply: string;
  /** What it was told, by record; a record it gave up on, or died with, is missing. */
  readonly told: Map<TrainerIntent, Verdict> = new Map();
  readonly #world: TrainerWorld;
  readonly #faults: TrainerFaults;
  readonly #sent: Map<number, TrainerIntent> = new Map();
  readonly #pending: Map<number, Pending> = new Map();
  #alive = true;
  #next = 1;
  #done = 0;

  constructor(world: TrainerWorld, trainer: string, session: number, faults: TrainerFaults) {
    this.trainer = trainer;
    this.session = session;
    this.reply = `${SUBJECTS.inbox(trainer)}.${session}`;
    this.#world = world;
    this.#faults = faults;
  }

  get alive(): boolean {
    return this.#alive;
  }

  get pending(): number {
    return this.#pending.size;
  }

  /** Whether its window has room for another record. */
  get ready(): boolean {
    return this.#alive && this.#next <= this.#done + WINDOW;
  }

  submit(wish: Wish): void {
    promise(this.ready, () => `${this.trainer} submits beyond its window`);
    const n = this.#next++;
    const { trainer, session, reply } = this;
    const done = this.#faults.overpromises === true ? n - 1 : this.#done;
    const { verb, index, epoch, element, flaw } = wish;
    const intent: TrainerIntent = {
      ...{ by: "trainer", trainer, session, n, done, reply },
      ...{ verb, index, epoch, element, flaw },
    };
    const pending = { intent, publication: publishTrainer(intent) };
    this.#sent.set(n, intent);
    this.#pending.set(n, pending);
    this.#publish(pending);
  }

  /** The timer of one of its records fires. */
  timeOut(random: Random): void {
    const pending = random.pick([...this.#pending.values()]);
    // A repeat may promise more than the first copy did.
    if (pending !== undefined) this.#chase(pending, random.chance(0.3));
  }

  /** All timers fire. */
  timeOutAll(): void {
    for (const pending of [...this.#pending.values()]) this.#chase(pending, false);
  }

  /** The deadline of one record passes: what became of it stays unknown, and it is not sent again. */
  giveUp(random: Random): void {
    const n = random.pick([...this.#pending.keys()]);
    if (n === undefined) return;
    this.#pending.delete(n);
    this.#advance();
  }

  /** The process dies. What it sent is still under way. */
  kill(): void {
    this.#alive = false;
    this.#pending.clear();
  }

  /** An answer of some owner arrives; the first counts, and no other may contradict it. */
  receive(outcome: Outcome): void {
    const intent = this.#sent.get(outcome.n);
    promise(intent !== undefined, () => `${this.trainer} never sent number ${outcome.n}`);
    const verdict = this.#world.verdicts.noteTold(intent, outcome);
    if (!this.#alive || !this.#pending.has(outcome.n)) return;
    if (outcome.code === "SUPERSEDED" || outcome.code === "REJOIN") {
      this.kill();
      this.#world.fenced(this);
      return;
    }
    promise(verdict !== undefined, () => `${describe(intent)} is ${outcome.code} too early`);
    this.told.set(intent, verdict);
    this.#pending.delete(outcome.n);
    this.#advance();
  }

  /** Repeats a record that is not known to be stored, or asks what became of it. */
  #chase(pending: Pending, afresh: boolean): void {
    const { intent, position } = pending;
    if (position !== undefined) {
      this.#world.ask(this, { session: this.session, numbers: [intent.n] }, position);
    } else if (this.#faults.renumbers === true) {
      this.#pending.delete(intent.n);
      this.#advance();
      if (this.ready) this.submit(intent);
    } else {
      if (afresh) pending.publication = publishTrainer({ ...intent, done: this.#done });
      this.#publish(pending);
    }
  }

  #publish(pending: Pending): void {
    this.#world.publish(pending.publication, (seq) => {
      pending.position ??= seq;
    });
  }

  #advance(): void {
    while (this.#done + 1 < this.#next && !this.#pending.has(this.#done + 1)) this.#done += 1;
  }
}
