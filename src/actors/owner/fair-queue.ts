import { encodeError, escapeId, PserverError } from "../../protocol/index.ts";

/** Limits of a shared resource, in units of the caller's choice. */
export interface ShareLimits {
  /** The most that one trainer may hold, unless it holds a single larger amount. */
  readonly each: number;
  /** The most that all may hold together. */
  readonly all: number;
}

/**
 * Shares out a limited resource among trainers. Invariant: when a trainer takes more, it then holds no
 * more than is left free. So those who hold the most are refused first, and a trainer that holds nothing
 * can always take some: one greedy trainer leaves half free, two leave a third.
 */
export class Shares {
  readonly #limits: ShareLimits;
  readonly #held: Map<string, number> = new Map();
  #total = 0;

  constructor(limits: ShareLimits) {
    this.#limits = limits;
  }

  /** The amount that all hold together. */
  get total(): number {
    return this.#total;
  }

  /** Gives a trainer more, if the limits allow it; false changes nothing. */
  take(trainer: string, amount: number): boolean {
    const { each, all } = this.#limits;
    const before = this.#held.get(trainer) ?? 0;
    const held = before + amount;
    if ((before > 0 && held > each) || held > all - this.#total) return false;
    this.#held.set(trainer, held);
    this.#total += amount;
    return true;
  }

  /** Takes back what {@link take} gave. */
  giveBack(trainer: string, amount: number): void {
    const held = (this.#held.get(trainer) ?? 0) - amount;
    if (held > 0) this.#held.set(trainer, held);
    else this.#held.delete(trainer);
    this.#total -= amount;
  }
}

/** Bytes of debt that a trainer works off with each turn that it skips. */
const QUANTUM = 1024 * 1024;

/** The waiting tasks of one trainer. */
interface TrainerQueue<Task> {
  readonly tasks: { readonly task: Task; readonly cost: number }[];
  /** Bytes that its served tasks took beyond their turns. */
  debt: number;
}

/** A task whose turn has come, and its trainer. */
export interface Served<Task> {
  readonly trainer: string;
  readonly task: Task;
}

/**
 * Tasks of many trainers. Each trainer has a queue of its own, and the queues are served in turn, one
 * task at a time: however long one queue is, every other trainer's first task is served within one round.
 */
export class FairQueue<Task> {
  readonly #shares: Shares;
  /** By trainer, in the order of their turns. */
  readonly #queues: Map<string, TrainerQueue<Task>> = new Map();
  #size = 0;

  /** `limits`: of the costs of waiting tasks. */
  constructor(limits: ShareLimits) {
    this.#shares = new Shares(limits);
  }

  /** Number of waiting tasks. */
  get size(): number {
    return this.#size;
  }

  /** Appends a task to its trainer's queue; false if too much waits already. */
  push(trainer: string, task: Task, cost = 1): boolean {
    if (!this.#shares.take(trainer, cost)) return false;
    const queue = this.#queues.get(trainer);
    if (queue === undefined) this.#queues.set(trainer, { tasks: [{ task, cost }], debt: 0 });
    else queue.tasks.push({ task, cost });
    this.#size++;
    return true;
  }

  /**
   * Removes and returns the task whose turn it is; undefined if none may be served. A trainer that
   * `mayServe` rejects keeps its turn.
   */
  next(mayServe: (trainer: string) => boolean = () => true): Served<Task> | undefined {
    for (const [trainer, queue] of this.#queues) {
      if (!mayServe(trainer)) continue;
      this.#queues.delete(trainer);
      if (queue.debt > 0) {
        queue.debt -= QUANTUM;
        this.#queues.set(trainer, queue);
        continue;
      }
      const first = queue.tasks.shift();
      if (first === undefined) continue;
      if (queue.tasks.length > 0) this.#queues.set(trainer, queue);
      this.#shares.giveBack(trainer, first.cost);
      this.#size--;
      return { trainer, task: first.task };
    }
    return undefined;
  }

  /** Charges the bytes that a served task took: others get as much before the trainer's next task. */
  charge(trainer: string, bytes: number): void {
    const queue = this.#queues.get(trainer);
    if (queue !== undefined) queue.debt += Math.max(0, bytes - QUANTUM);
  }
}

/**
 * Limits the work done in one turn of the event loop, so that timers, above all those that renew leases,
 * and messages of other connections have their turns.
 */
export class Turn {
  readonly #lengthMs: number;
  readonly #onNext: () => void;
  #endsAtMs: number | undefined;

  /** `onNext` is called in the turn after each one in which {@link begin} was called. */
  constructor(lengthMs: number, onNext: () => void) {
    this.#lengthMs = lengthMs;
    this.#onNext = onNext;
  }

  /** Notes that work is done in this turn. */
  begin(): void {
    if (this.#endsAtMs !== undefined) return;
    this.#endsAtMs = performance.now() + this.#lengthMs;
    setImmediate(() => {
      this.#endsAtMs = undefined;
      this.#onNext();
    });
  }

  /** Whether further work has to wait for the next turn. */
  get isOver(): boolean {
    return this.#endsAtMs !== undefined && performance.now() >= this.#endsAtMs;
  }
}

/** Refusals sent to one trainer in one period, and to all together. */
const EACH_MAX = 16;
const ALL_MAX = 1_024;

/** Length of a period; shorter than the waiting time that refusals name. */
const PERIOD_MS = 100;

/**
 * Limits how many refusals are sent, period by period. A request without a reply is sent again after a
 * second. The requests of a trainer that has had its share of refusals are dropped unread for the rest of
 * the period: its queue is full, and reading would cost more than refusing.
 */
export class Refusals {
  readonly #told: Map<string, number> = new Map();
  readonly #unheard: Set<string> = new Set();
  readonly #now: () => number;
  #total = 0;
  #endsAtMs = 0;

  /** `now`: in milliseconds, of a clock that does not go back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Takes one refusal from a trainer's share, to be sent; false if none is left. */
  take(trainer: string): boolean {
    if (this.#total === 0) this.#endsAtMs = this.#now() + PERIOD_MS;
    const told = this.#told.get(trainer) ?? 0;
    if (told >= EACH_MAX || this.#total >= ALL_MAX) {
      this.#unheard.add(escapeId(trainer));
      return false;
    }
    this.#told.set(trainer, told + 1);
    this.#total++;
    return true;
  }

  /** Whether requests of the trainer with this token in its subjects are to be dropped now. */
  readonly isUnheard = (token: string): boolean => this.#unheard.has(token);

  /** Begins a new period if the last one is over. Call it in each turn of the event loop. */
  review(): void {
    if (this.#total === 0 || this.#now() < this.#endsAtMs) return;
    this.#told.clear();
    this.#unheard.clear();
    this.#total = 0;
  }
}

/** Bytes of requests that may wait in one queue: of one trainer, and of all together. */
export const QUEUED_BYTES = { each: 16 * 1024 * 1024, all: 64 * 1024 * 1024 } as const;

/** Cost of a waiting request besides its own bytes: some 14,000 small ones of one trainer fit. */
export const REQUEST_BYTES = 1024;

/** How long one kind of work may take in one turn of the event loop. */
export const TURN_MS = 4;

/** The reply, or TOO_LARGE in place of one that the broker would not take. */
export function replyThatFits(reply: Uint8Array, payloadBytesMax: number): Uint8Array {
  if (reply.length <= payloadBytesMax) return reply;
  const text = `the reply has ${reply.length} bytes; the broker takes ${payloadBytesMax}`;
  const details = { expected: payloadBytesMax, received: reply.length };
  return encodeError(new PserverError("TOO_LARGE", text, details));
}
