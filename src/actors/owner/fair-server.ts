import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import {
  busy,
  decodeMessage,
  encodeError,
  encodeMessage,
  ensureError,
  escapeId,
  type Fields,
  type JobSubjects,
  type Message,
  PserverError,
  RETRY_AFTER_MS,
} from "../../protocol/index.ts";
import { payloadBytesMaxOf } from "../../transport/bulk-transport.ts";

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

/**
 * Answers one request: returns the entries of the reply, or throws the error that the reply carries.
 * With `tell` it may send messages before that, to inboxes of the asker only; to others nothing is sent.
 */
export type RequestHandler = (
  id: string,
  verb: string,
  message: Message,
  tell: (inbox: string, entries: Fields) => void,
) => Promise<Fields>;

/** Options of {@link RequestServer}. */
export interface RequestServerOptions {
  readonly connection: NatsConnection;
  /** Of all requests that come through the connection. */
  readonly refusals: Refusals;
  readonly subjects: JobSubjects;
  /** Subject with the asker's id and the verb as its last tokens. */
  readonly subject: string;
  /** In the order in which they are served; a verb that belongs to none is refused. */
  readonly queues: readonly RequestQueue[];
  readonly handle: RequestHandler;
  /** Whether every host gets each request, not one of them alone. */
  readonly isForAll?: boolean;
  /** Called for each request from another account of the broker; none of them is answered. */
  readonly onOtherAccount?: (trainer: string) => void;
}

/**
 * Answers requests that any host of the job may answer, each by one of them, or by all. Trainers are
 * served in turns; a trainer with too many waiting requests is refused with BUSY.
 */
export class RequestServer {
  readonly #options: RequestServerOptions;
  readonly #turn: Turn = new Turn(TURN_MS, () => {
    this.#options.refusals.review();
    this.#work();
  });
  #subscription: Subscription | undefined;
  #active = 0;
  #isClosed = false;
  #idle: (() => void) | undefined;

  constructor(options: RequestServerOptions) {
    this.#options = options;
  }

  /** Begins to take requests. */
  listen(): void {
    const { connection, subject, isForAll } = this.#options;
    this.#subscription = connection.subscribe(subject, {
      ...(isForAll === true ? {} : { queue: "hosts" }),
      callback: (error, message) => {
        if (error === null) this.#receive(message);
      },
    });
  }

  /** Stops taking requests, refuses waiting ones with BUSY, and waits for those in work. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#subscription?.unsubscribe();
    for (const queue of this.#options.queues) {
      for (const { reply } of queue.drain()) {
        this.#respond(reply, encodeError(busy("the host is closing", { expected: 0 })));
      }
    }
    if (this.#active === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  #receive(message: Msg): void {
    const { subjects, queues, onOtherAccount } = this.#options;
    const reply = message.reply ?? "";
    const sender = this.#sender(message.subject);
    if (sender === undefined) return;
    const { id: trainer, verb } = sender;
    // A reply to any other subject would let the asker write where only this host may.
    if (!subjects.mayAnswer(reply, trainer)) {
      if (subjects.isOfOtherAccount(reply)) onOtherAccount?.(trainer);
      return;
    }
    const queue = queues.find((candidate) => candidate.takes(verb));
    if (queue === undefined) {
      const error = new PserverError("BAD_MESSAGE", `no such verb: ${verb}`, { received: verb });
      this.#refuse(trainer, reply, error);
      return;
    }
    // A copy, so that a waiting request does not keep the whole received chunk alive.
    const request = { trainer, verb, reply, data: Uint8Array.from(message.data) };
    const refusal = queue.add(request);
    if (refusal !== undefined) this.#refuse(trainer, reply, refusal);
    else this.#work();
  }

  #sender(subject: string): { id: string; verb: string } | undefined {
    try {
      return this.#options.subjects.parseSender(subject);
    } catch {
      // The subject names no asker, so there is nobody to answer.
      return undefined;
    }
  }

  /** Begins as many requests as this turn allows. */
  #work(): void {
    for (const queue of this.#options.queues) {
      while (!this.#isClosed && !this.#turn.isOver) {
        const request = queue.next();
        if (request === undefined) break;
        this.#turn.begin();
        void this.#answer(queue, request);
      }
    }
  }

  async #answer(queue: RequestQueue, request: Request): Promise<void> {
    this.#active++;
    this.#respond(request.reply, await this.#reply(request));
    queue.done(request);
    this.#active--;
    if (this.#active === 0) this.#idle?.();
    this.#work();
  }

  async #reply({ trainer, verb, data }: Request): Promise<Uint8Array> {
    const { subjects, handle } = this.#options;
    const tell = (inbox: string, entries: Fields): void => {
      if (subjects.isTrainerInbox(inbox, trainer)) {
        this.#respond(inbox, encodeMessage(entries));
      }
    };
    try {
      return encodeMessage(await handle(trainer, verb, decodeMessage(data), tell));
    } catch (error) {
      return encodeError(ensureError(error));
    }
  }

  #refuse(trainer: string, reply: string, error: PserverError): void {
    this.#turn.begin();
    if (this.#options.refusals.take(trainer)) this.#respond(reply, encodeError(error));
  }

  #respond(reply: string, bytes: Uint8Array): void {
    const { connection } = this.#options;
    if (connection.isClosed()) return;
    connection.publish(reply, replyThatFits(bytes, payloadBytesMaxOf(connection)));
  }
}

/** A request that has arrived and is to be answered. */
export interface Request {
  readonly trainer: string;
  readonly verb: string;
  readonly reply: string;
  readonly data: Uint8Array;
}

/** What one queue takes, and how much of it a host works on at one time. */
export interface RequestQueueOptions {
  readonly verbs: readonly string[];
  /** Requests in work at one time. */
  readonly atOnce: number;
  /** Of them, at most so many of one trainer. */
  readonly atOnceEach: number;
  /** Cost of a waiting request besides its own bytes, of the 16 MiB that one trainer has. */
  readonly requestBytes?: number;
  /** Waiting time that a refusal names. */
  readonly retryAfterMs?: number;
}

/** Requests of one kind, served in turns of the trainers, a limited number at a time. */
export class RequestQueue {
  readonly #options: RequestQueueOptions;
  readonly #waiting: FairQueue<Request> = new FairQueue(QUEUED_BYTES);
  readonly #running: Map<string, number> = new Map();
  #runningTotal = 0;

  constructor(options: RequestQueueOptions) {
    this.#options = options;
  }

  /** Whether requests with this verb belong here. */
  takes(verb: string): boolean {
    return this.#options.verbs.includes(verb);
  }

  /** Keeps a request until its turn; or returns the BUSY to refuse it with. */
  add(request: Request): PserverError | undefined {
    const { requestBytes = REQUEST_BYTES, retryAfterMs = RETRY_AFTER_MS } = this.#options;
    const cost = requestBytes + request.data.length;
    if (this.#waiting.push(request.trainer, request, cost)) return undefined;
    const { trainer, verb } = request;
    const expected = Math.floor(QUEUED_BYTES.each / requestBytes);
    const text = `${verb}: expected at most ${expected} waiting requests of a trainer, and space for all`;
    return busy(text, { trainer, expected }, retryAfterMs);
  }

  /** The request to work on next, which counts as running until {@link done}; undefined if none. */
  next(): Request | undefined {
    const { atOnce, atOnceEach } = this.#options;
    if (this.#runningTotal >= atOnce) return undefined;
    const served = this.#waiting.next((trainer) => this.#runningOf(trainer) < atOnceEach);
    if (served === undefined) return undefined;
    this.#running.set(served.trainer, this.#runningOf(served.trainer) + 1);
    this.#runningTotal++;
    return served.task;
  }

  /** Ends the work on a request. */
  done({ trainer }: Request): void {
    const left = this.#runningOf(trainer) - 1;
    if (left > 0) this.#running.set(trainer, left);
    else this.#running.delete(trainer);
    this.#runningTotal--;
  }

  /** Removes and returns all waiting requests. */
  *drain(): Generator<Request, void, undefined> {
    for (let served = this.#waiting.next(); served !== undefined; served = this.#waiting.next()) {
      yield served.task;
    }
  }

  #runningOf(trainer: string): number {
    return this.#running.get(trainer) ?? 0;
  }
}
