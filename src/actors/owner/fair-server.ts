import { busy, encodeError, escapeId, PserverError, RETRY_AFTER_MS } from "../../protocol/index.ts";

/** Limits of a shared resource, in units of the caller's choice. */
interface ShareLimits {
  /** The most that one trainer may hold, unless it holds a single larger amount. */
  readonly each: number;
  /** The most that all may hold together. */
  readonly all: number;
}

/**
 * Divides a limited resource among trainers. Invariant: when a trainer takes more, it then holds no more than is left
 * free. So those who hold the most are refused first, and a trainer that holds nothing can always take some: one
 * greedy trainer leaves half free, two leave a third.
 */
export class FairShares {
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

/** Bytes by which a trainer's debt shrinks with each turn that it skips. */
const QUANTUM = 1024 * 1024;

/** Bytes that count as much as a millisecond of work: about what a host sends in that time. */
const BYTES_PER_MS = QUANTUM;

/** The waiting tasks of one trainer. */
interface TrainerQueue<Task> {
  readonly tasks: { readonly task: Task; readonly cost: number }[];
  /** Bytes that its served tasks took beyond a quantum each. */
  debt: number;
}

/** A task that is to be served now, and its trainer. */
export interface ServedTask<Task> {
  readonly trainer: string;
  readonly task: Task;
}

/**
 * Tasks of many trainers. Each trainer has a queue of its own, and the queues are served in turn, one task at a time:
 * however long one queue is, every other trainer's first task is served within one round.
 */
export class FairQueue<Task> {
  readonly #shares: FairShares;
  /** Queues by trainer, in the order in which they are served. */
  readonly #queues: Map<string, TrainerQueue<Task>> = new Map();
  #size = 0;

  /** `limits`: limits of the costs of waiting tasks. */
  constructor(limits: ShareLimits) {
    this.#shares = new FairShares(limits);
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
   * Removes and returns the task that is next; undefined if none may be served. A trainer that `mayServe` rejects
   * keeps its place.
   */
  next(mayServe: (trainer: string) => boolean = () => true): ServedTask<Task> | undefined {
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

  /**
   * Charges what a served task took, in time and in bytes sent, whichever is more: others get as much before the
   * trainer's next task.
   */
  charge(trainer: string, workMs: number, bytes = 0): void {
    const cost = Math.max(bytes, workMs * BYTES_PER_MS);
    const queue = this.#queues.get(trainer);
    if (queue !== undefined) queue.debt += Math.max(0, cost - QUANTUM);
  }
}

/**
 * Limits the time that one kind of work takes in one turn of the event loop, so that timers, above all those that
 * renew leases, and messages of other connections are not delayed.
 */
export class TimeSlice {
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

  /** Whether further work has to wait for the next turn of the event loop. */
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
 * Limits how many refusals are sent in a period. A request without a reply is sent again after a second. Requests of
 * a trainer that has had its refusals are dropped unread for the rest of the period: its queue is full, and reading
 * would cost more than refusing.
 */
export class RefusalBudget {
  readonly #sent: Map<string, number> = new Map();
  readonly #dropped: Set<string> = new Set();
  readonly #now: () => number;
  #total = 0;
  #endsAtMs = 0;

  /** `now`: in milliseconds, of a clock that does not go back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Takes one refusal of a trainer, to be sent; false if none is left. */
  take(trainer: string): boolean {
    if (this.#total === 0) this.#endsAtMs = this.#now() + PERIOD_MS;
    const sent = this.#sent.get(trainer) ?? 0;
    if (sent >= EACH_MAX || this.#total >= ALL_MAX) {
      this.#dropped.add(escapeId(trainer));
      return false;
    }
    this.#sent.set(trainer, sent + 1);
    this.#total++;
    return true;
  }

  /** Whether requests of the trainer with this token in its subjects are to be dropped now. */
  readonly isDropped = (token: string): boolean => this.#dropped.has(token);

  /** Begins a new period if the last one is over. Call it in each turn of the event loop. */
  review(): void {
    if (this.#total === 0 || this.#now() < this.#endsAtMs) return;
    this.#sent.clear();
    this.#dropped.clear();
    this.#total = 0;
  }
}

/** Bytes of requests that may wait in one queue: of one trainer, and of all together. */
export const QUEUED_BYTES = { each: 16 * 1024 * 1024, all: 64 * 1024 * 1024 } as const;

/** Cost of a waiting request besides its own bytes: some 14,000 small ones of one trainer fit. */
const REQUEST_BYTES = 1024;

/** How long one kind of work may take in one turn of the event loop. */
export const SLICE_MS = 4;

/** Returns the reply, or TOO_LARGE in place of one that the broker would not take. */
export function replyThatFits(reply: Uint8Array, payloadBytesMax: number): Uint8Array {
  if (reply.length <= payloadBytesMax) return reply;
  const text = `the reply has ${reply.length} bytes; the broker takes ${payloadBytesMax}`;
  const details = { expected: payloadBytesMax, received: reply.length };
  return encodeError(new PserverError("TOO_LARGE", text, details));
}

/** A request that has arrived and is to be answered. */
interface FairRequest {
  /** Key of the trainer or host that asks; a host's differs from any trainer's. */
  readonly from: string;
  /** Valid during {@link FairServer.take} only. */
  readonly data: Uint8Array;
  /** Answers the request, now or when the promise settles; must not fail. `data` is valid during the call only. */
  readonly run: (data: Uint8Array) => Promise<void> | void;
  /** Sends an error in place of the answer. */
  readonly refuse: (error: PserverError) => void;
}

/** Options of a {@link Lane}. */
export interface LaneOptions {
  /** Requests in work at one time, and how many of them may be of one trainer; any number by default. */
  readonly atOnce?: number;
  readonly atOnceEach?: number;
  /** Cost of a waiting request besides its own bytes, of the 16 MiB that one trainer has. */
  readonly requestBytes?: number;
  /** Waiting time that a refusal names. */
  readonly retryAfterMs?: number;
}

/** Requests of one kind: those that wait, and how many are in work. */
class Lane {
  readonly waiting: FairQueue<FairRequest> = new FairQueue(QUEUED_BYTES);
  readonly #options: LaneOptions;
  /** Requests in work, by trainer. */
  readonly #running: Map<string, number> = new Map();
  #runningTotal = 0;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /** Whether a further request of this trainer may be worked on now. */
  readonly admits = (trainer: string): boolean => {
    const { atOnce = Number.POSITIVE_INFINITY, atOnceEach = atOnce } = this.#options;
    return this.#runningTotal < atOnce && (this.#running.get(trainer) ?? 0) < atOnceEach;
  };

  /** Keeps a copy of a request until it is served; false if too much waits already. */
  push({ from, data, run, refuse }: FairRequest): boolean {
    const { requestBytes = REQUEST_BYTES } = this.#options;
    // The data is a view, which would keep the whole receive buffer alive.
    const request = { from, data: Uint8Array.from(data), run, refuse };
    return this.waiting.push(from, request, requestBytes + data.length);
  }

  /** Makes the error for a request that {@link push} does not keep. */
  busy(trainer: string): PserverError {
    const { requestBytes = REQUEST_BYTES, retryAfterMs = RETRY_AFTER_MS } = this.#options;
    const expected = Math.floor(QUEUED_BYTES.each / requestBytes);
    const text = `expected at most ${expected} waiting requests of one trainer, and space for those of all`;
    return busy(text, { trainer, expected }, retryAfterMs);
  }

  begin(trainer: string): void {
    this.#running.set(trainer, (this.#running.get(trainer) ?? 0) + 1);
    this.#runningTotal++;
  }

  end(trainer: string): void {
    const left = (this.#running.get(trainer) ?? 0) - 1;
    if (left > 0) this.#running.set(trainer, left);
    else this.#running.delete(trainer);
    this.#runningTotal--;
  }
}

/**
 * Decides when each request is worked on, whoever receives it. A request runs as it arrives while the time slice of
 * this turn of the event loop lasts and its lane admits it; others wait, and are taken from each trainer in turn. A
 * trainer may not have more waiting than is left free for others: its requests are then refused with BUSY, a few
 * times, and dropped unread for a while. The lanes, kinds of requests with their own limits, are served in their
 * order.
 */
export class FairServer {
  readonly #lanes: readonly Lane[];
  readonly #refusals: RefusalBudget;
  readonly #onWork: () => void;
  readonly #slice: TimeSlice = new TimeSlice(SLICE_MS, () => {
    this.#refusals.review();
    this.#work();
  });
  #active = 0;
  #isClosed = false;
  #idle: () => void = () => undefined;

  /**
   * `refusals`: limits how often a trainer is refused; shared with the connection. `onWork` is called for each request
   * that is worked on.
   */
  constructor(
    refusals: RefusalBudget,
    lanes: readonly LaneOptions[] = [{}],
    onWork: () => void = () => undefined,
  ) {
    this.#refusals = refusals;
    this.#onWork = onWork;
    this.#lanes = lanes.map((options) => new Lane(options));
  }

  /** Works on a request of the lane with this index now or later, or refuses it with BUSY. */
  take(request: FairRequest, place = 0): void {
    const lane = this.#lanes[place];
    if (lane === undefined) throw new PserverError("INTERNAL", `there is no lane ${place}`);
    const { from, refuse } = request;
    const mayRun = lane.waiting.size === 0 && !this.#slice.isOver && lane.admits(from);
    this.#slice.begin();
    if (mayRun) this.#run(lane, request);
    else if (!lane.push(request)) this.refuse(from, () => refuse(lane.busy(from)));
  }

  /** Refuses a request, unless its trainer has had its refusals of this period. */
  refuse(trainer: string, send: () => void): void {
    this.#slice.begin();
    if (this.#refusals.take(trainer)) send();
  }

  /** Refuses waiting requests with BUSY, begins none any more, and waits for those in work. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const error = busy("the host is closing", { expected: 0 });
    for (const { waiting } of this.#lanes) {
      for (let next = waiting.next(); next !== undefined; next = waiting.next()) {
        next.task.refuse(error);
      }
    }
    if (this.#active === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  /** Begins as many waiting requests as this turn of the event loop and the lanes allow. */
  #work(): void {
    for (const lane of this.#lanes) {
      while (!this.#isClosed && !this.#slice.isOver) {
        const served = lane.waiting.next(lane.admits);
        if (served === undefined) break;
        this.#slice.begin();
        this.#run(lane, served.task);
      }
    }
  }

  #run(lane: Lane, { from, data, run }: FairRequest): void {
    this.#onWork();
    const startedMs = performance.now();
    const answered = run(data);
    if (answered === undefined) {
      lane.waiting.charge(from, performance.now() - startedMs);
      return;
    }
    lane.begin(from);
    this.#active++;
    void answered.then(() => {
      lane.end(from);
      this.#active--;
      if (this.#active === 0) this.#idle();
      this.#work();
    });
  }
}
