import type { Synchronization } from "../../../src/protocol/config/index.ts";
import { ELEMENTS, type Intent, isBatched, type TrainerIntent } from "./records.ts";

/** A synchronization with steps. */
export type Stepped = Exclude<Synchronization, { mode: "async" | "diloco" }>;

/** What a record ought to be answered; undefined if nobody is answered. */
export type Answer = "applied" | "NOT_MEMBER" | "LATE" | "EARLY" | "SETTLED" | "SUPERSEDED";

/** Names a record of a trainer. */
export function recordKey({ trainer, session, n }: TrainerIntent): string {
  return `${trainer} ${session} ${n}`;
}

/**
 * The rules of steps once more in the plainest form: it looks at what senders meant, closes step by
 * step, and keeps every answer it has given.
 */
export class PlainSteps {
  readonly values: Float64Array = new Float64Array(ELEMENTS);
  /** Of the block that only batches change. */
  readonly batchedValues: Float64Array = new Float64Array(ELEMENTS);
  /** The record of each gradient that was taken, as {@link recordKey} names it, by its element. */
  readonly taken: Map<number, string> = new Map();
  /** Elements of gradients that were taken in more than one step. */
  readonly twice: Set<number> = new Set();
  closed = 0;
  readonly #synchronization: Stepped;
  readonly #answers: Map<string, Answer> = new Map();
  readonly #sessions: Map<string, { session: number; done: number }> = new Map();
  #revision = 0;
  #started = false;
  #clocks: Map<string, number> = new Map();
  readonly #open: Map<string, number> = new Map();

  constructor(synchronization: Stepped) {
    this.#synchronization = synchronization;
  }

  take(intent: Intent): Answer | undefined {
    const answer = intent.by === "trainer" ? this.#answer(intent) : this.#host(intent);
    while (this.#isOver()) this.#close();
    return answer;
  }

  #host({ record }: Intent & { by: "host" }): undefined {
    if (record.verb !== "members" || record.revision <= this.#revision) return;
    this.#revision = record.revision;
    this.#started ||= record.started;
    this.#clocks = new Map(
      record.trainers.map((id) => [id, this.#clocks.get(id) ?? this.closed] as const),
    );
  }

  #answer(intent: TrainerIntent): Answer {
    const { trainer, session, n } = intent;
    const known = this.#sessions.get(trainer);
    if (known !== undefined && session < known.session) return "SUPERSEDED";
    if (known?.session === session && n <= known.done) return "SETTLED";
    const key = recordKey(intent);
    const answer = this.#answers.get(key) ?? this.#evaluate(intent);
    this.#answers.set(key, answer);
    this.#sessions.set(trainer, { session, done: n - 1 });
    return answer;
  }

  #evaluate(intent: TrainerIntent): Answer {
    const { trainer, step, element } = intent;
    const clock = this.#clocks.get(trainer);
    if (element === undefined) {
      if (clock === undefined) return "NOT_MEMBER";
      this.#clocks.set(trainer, Math.max(clock, step));
      return "applied";
    }
    if (this.#synchronization.mode === "ssp") {
      this.#set(element, -1);
    } else {
      if (clock === undefined) return "NOT_MEMBER";
      if (step <= this.closed) return "LATE";
      if (step > this.closed + 1) return "EARLY";
      if (this.#open.has(trainer)) return "LATE";
      this.#open.set(trainer, element);
    }
    if (this.taken.has(element)) this.twice.add(element);
    this.taken.set(element, recordKey(intent));
    return "applied";
  }

  #set(element: number, value: number): void {
    this.values[element] = value;
    if (isBatched(element)) this.batchedValues[element] = value;
  }

  #isOver(): boolean {
    const backups = this.#synchronization.mode === "sync" ? this.#synchronization.backups : 0;
    const needed = Math.max(1, this.#clocks.size - backups);
    return this.#started && this.#ended().length >= needed;
  }

  #ended(): string[] {
    return [...this.#clocks].filter(([, clock]) => clock > this.closed).map(([id]) => id);
  }

  #close(): void {
    const { mode } = this.#synchronization;
    const isMean = mode === "sync" && this.#synchronization.reduce === "mean";
    const divisor = isMean ? new Set([...this.#ended(), ...this.#open.keys()]).size : 1;
    for (const element of this.#open.values()) this.#set(element, -(1 / divisor));
    this.#open.clear();
    this.closed += 1;
  }
}
