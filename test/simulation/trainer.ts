import { Outbox, type OutboxCommands, type OutboxListener } from "../../src/client/core/outbox.ts";
import { Positions } from "../../src/client/core/shard-window.ts";
import {
  type BlockUpdate,
  type Failure,
  newUpdateCall,
  type UpdateCall,
} from "../../src/client/core/update-call.ts";
import { reactionTo } from "../../src/protocol/errors.ts";
import type { Outcome } from "../../src/protocol/messages/outcomes.ts";
import { WINDOW } from "./fold-maker.ts";
import {
  ELEMENTS,
  type Publication,
  publishTrainer,
  SHARD,
  SUBJECTS,
  type TrainerIntent,
} from "./intents.ts";
import type { Random } from "./random.ts";
import { describe, type Verdict, type Verdicts } from "./verdicts.ts";
import { promise } from "./violation.ts";

/** What a trainer reaches of its world: nothing that a real client would not. */
export interface TrainerWorld {
  readonly verdicts: Verdicts;
  /** Sends a record to the journal; the PubAck, if it arrives, brings the sequence. */
  publish(publication: Publication, stored: (seq: number) => void): void;
  /** Asks all owners of the shard what became of records, once they have folded so far. */
  ask(trainer: TrainerProcess, request: { session: number; numbers: number[] }, seq: number): void;
  /** The number of another session of a process that must rejoin; undefined if it is to end instead. */
  rejoin(trainer: TrainerProcess): number | undefined;
  /** The process has learned that it is over. */
  fenced(trainer: TrainerProcess): void;
}

/** Deviations from the protocol, for proving that the oracles find them. */
export interface TrainerFaults {
  /** Repeats under a new number what was not acknowledged. */
  readonly renumbers?: boolean;
  /** Says `done` of everything sent before. */
  readonly overpromises?: boolean;
}

/** What a trainer wants done, apart from what the protocol adds. */
export type Wish = Pick<TrainerIntent, "verb" | "index" | "epoch" | "element" | "flaw">;

/** A wish under way. */
interface Submission {
  readonly wish: Wish;
  readonly call: UpdateCall;
  /** The record that it was last sent as. */
  intent?: TrainerIntent;
}

const BLOCK_BYTES = ELEMENTS * 8;
const MODE = { isDoneWhenStored: false, countsLate: false, countsPresent: false };
const GIVEN_UP: Failure = { code: "TIMEOUT", message: "given up", details: {} };
/** Time that passes until a timer fires: to the next look, question, and repeats. */
const PAUSES_MS = [150, 1_100, 2_500, 9_000];

/** Ticks in a pause: it takes several, with PINGs, to learn that a record is lost. */
const TICKS = 4;

/**
 * One life of a trainer: the outbox of the client's core, on a network that the simulation decides. It
 * goes on until it is killed or told that it is over.
 */
export class TrainerProcess implements OutboxCommands, OutboxListener {
  readonly trainer: string;
  readonly reply: string;
  /** What it was told, by record; a record it gave up on, or died with, is missing. */
  readonly told: Map<TrainerIntent, Verdict> = new Map();
  readonly #world: TrainerWorld;
  readonly #faults: TrainerFaults;
  readonly #outbox: Outbox;
  readonly #submissions: Map<number, Submission> = new Map();
  /** Every record it ever sent, by session and number. */
  readonly #sent: Map<string, { intent: TrainerIntent; update: BlockUpdate }> = new Map();
  readonly #renumbered: Submission[] = [];
  #session: number;
  #alive = true;
  #calls = 0;
  #done = 0;
  #nowMs = 0;
  #repeatsAfresh = false;
  /** The last PING; the broker of the simulation reads at once. */
  #ping: number | undefined;

  constructor(world: TrainerWorld, trainer: string, session: number, faults: TrainerFaults) {
    this.trainer = trainer;
    this.reply = `${SUBJECTS.inbox(trainer)}.${session}`;
    this.#session = session;
    this.#world = world;
    this.#faults = faults;
    this.#outbox = new Outbox({
      commands: this,
      listener: this,
      positions: new Positions({ journalReplaced: () => {} }),
      inFlightBytesMax: (WINDOW - 1) * BLOCK_BYTES,
      windowRecords: WINDOW,
    });
    this.#outbox.start(session, this.#nowMs);
  }

  /** The session it is in. */
  get session(): number {
    return this.#session;
  }

  get alive(): boolean {
    return this.#alive;
  }

  get pending(): number {
    return this.#submissions.size;
  }

  /** Whether it has time for another wish. */
  get ready(): boolean {
    return this.#alive && this.pending < WINDOW;
  }

  submit(wish: Wish): void {
    promise(this.ready, () => `${this.trainer} submits more than it can have under way`);
    const size = { shard: SHARD, blocks: 1, dataBytes: BLOCK_BYTES, namesVersion: false };
    const call = newUpdateCall(++this.#calls, MODE, [size]);
    this.#submissions.set(call.id, { wish, call });
    this.#outbox.send(call, this.#nowMs);
  }

  /** Some time passes, and its timer fires. */
  timeOut(random: Random): void {
    // A repeat may promise more than the first copy did.
    this.#repeatsAfresh = random.chance(0.3);
    this.#pass(random.pick(PAUSES_MS) ?? 0);
    this.#repeatsAfresh = false;
  }

  /** So much time passes that everything unanswered is repeated or asked for. */
  timeOutAll(): void {
    this.#pass(10_000);
  }

  /** Its connection is lost and comes back. */
  reconnect(): void {
    if (!this.#alive) return;
    this.#outbox.disconnected();
    this.#outbox.reconnected(this.#nowMs);
  }

  /** The deadline of one call passes: what became of its record stays unknown, and it is not sent again. */
  giveUp(random: Random): void {
    const submission = random.pick([...this.#submissions.values()]);
    if (submission !== undefined) this.#outbox.endCall(submission.call, GIVEN_UP, this.#nowMs);
  }

  /** The process dies. What it sent is still under way. */
  kill(): void {
    this.#alive = false;
    this.#submissions.clear();
  }

  /** An answer of some owner arrives; the first counts, and no other may contradict it. */
  receive(outcome: Outcome, session: number, isReply: boolean): void {
    const record = this.#sent.get(`${session} ${outcome.n}`);
    promise(record !== undefined, () => `${this.trainer} never sent number ${outcome.n}`);
    const { intent, update } = record;
    const { code } = outcome;
    const verdict = this.#world.verdicts.noteTold(intent, outcome);
    const isPending = update.isOpen && update.n === outcome.n && session === this.#session;
    if (!this.#alive) return;
    promise(
      !isPending || verdict !== undefined || code === "SUPERSEDED" || code === "REJOIN",
      () => `${describe(intent)} is ${code} too early`,
    );
    const answers = { shard: SHARD, generation: 1, session, outcomes: [outcome] };
    this.#outbox.answered(answers, isReply, this.#nowMs);
  }

  publish(update: BlockUpdate, session: number, done: number): void {
    const submission = this.#submissions.get(update.call.id);
    promise(submission !== undefined, () => `${this.trainer} publishes a call that is over`);
    const { trainer, reply } = this;
    const { n } = update;
    this.#done = done;
    const intent: TrainerIntent = {
      ...{ by: "trainer", trainer, session, n, reply, ...submission.wish },
      done: this.#faults.overpromises === true ? n - 1 : done,
    };
    submission.intent = intent;
    this.#sent.set(`${session} ${n}`, { intent, update });
    this.#send(update, publishTrainer(intent));
  }

  repeat(update: BlockUpdate): void {
    const submission = this.#submissions.get(update.call.id);
    if (submission?.intent === undefined) return;
    if (this.#faults.renumbers === true) this.#renumbered.push(submission);
    else if (this.#repeatsAfresh) {
      this.#send(update, publishTrainer({ ...submission.intent, done: this.#done }));
    } else this.#send(update, publishTrainer(submission.intent));
  }

  release(): void {}

  ping(sendNumber: number): void {
    this.#ping = sendNumber;
  }

  setTimer(): void {}

  askOutcomes(
    _shard: number,
    session: number,
    numbers: readonly number[],
    { seq }: { readonly seq: number },
  ): void {
    this.#world.ask(this, { session, numbers: [...numbers] }, seq);
  }

  callOver({ id, updates }: UpdateCall): void {
    const intent = this.#submissions.get(id)?.intent;
    this.#submissions.delete(id);
    const fate = updates[0]?.fate;
    if (intent === undefined) return;
    if (fate === "applied" || fate === "rejected") this.told.set(intent, fate);
  }

  sessionOver({ code }: Failure): void {
    const session = reactionTo(code) === "rejoin" ? this.#world.rejoin(this) : undefined;
    if (session === undefined) {
      this.#outbox.pause();
      this.kill();
      this.#world.fenced(this);
      return;
    }
    this.#session = session;
    this.#done = 0;
    this.#outbox.start(session, this.#nowMs);
  }

  #send(update: BlockUpdate, publication: Publication): void {
    const { slot, serial } = update;
    this.#world.publish(publication, (seq) => {
      if (!this.#alive) return;
      this.#outbox.stored(slot, serial, SHARD, { generation: 1, seq }, this.#nowMs);
    });
  }

  #pass(ms: number): void {
    if (!this.#alive) return;
    for (let tick = 1; tick <= TICKS; tick++) {
      this.#nowMs += ms / TICKS;
      this.#outbox.tick(this.#nowMs);
      if (this.#ping !== undefined) this.#outbox.read(this.#ping, this.#nowMs);
    }
    for (const { call, wish } of this.#renumbered.splice(0)) {
      this.#outbox.endCall(call, GIVEN_UP, this.#nowMs);
      if (this.ready) this.submit(wish);
    }
  }
}
