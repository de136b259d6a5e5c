import { type ShareLimits, Shares } from "./shares.ts";

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
