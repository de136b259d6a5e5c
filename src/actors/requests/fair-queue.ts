import { type ShareLimits, Shares } from "./shares.ts";

/** What a trainer that was charged for more than its turn pays back with each turn it passes. */
const QUANTUM = 1024 * 1024;

/** The tasks of one trainer. */
interface Line<Task> {
  readonly tasks: { readonly task: Task; readonly cost: number }[];
  debt: number;
}

/** A task whose turn has come, and whose it is. */
export interface Served<Task> {
  readonly trainer: string;
  readonly task: Task;
}

/**
 * Tasks of many trainers. Each has a line of its own, and the lines are served in turn, one task at a
 * time: however long one is, every other trainer's first task is served within one round.
 */
export class FairQueue<Task> {
  readonly #shares: Shares;
  /** In the order of their turns. */
  readonly #lines: Map<string, Line<Task>> = new Map();
  #size = 0;

  /** `limits`: of the costs of the tasks that wait. */
  constructor(limits: ShareLimits) {
    this.#shares = new Shares(limits);
  }

  /** Tasks that wait. */
  get size(): number {
    return this.#size;
  }

  /** Puts a task at the end of its trainer's line; false if too much waits already. */
  push(trainer: string, task: Task, cost = 1): boolean {
    if (!this.#shares.take(trainer, cost)) return false;
    const line = this.#lines.get(trainer);
    if (line === undefined) this.#lines.set(trainer, { tasks: [{ task, cost }], debt: 0 });
    else line.tasks.push({ task, cost });
    this.#size++;
    return true;
  }

  /**
   * Takes out the task whose turn it is; undefined if none may be served. `mayServe`: a trainer that
   * may not keeps its turn.
   */
  next(mayServe: (trainer: string) => boolean = () => true): Served<Task> | undefined {
    for (const [trainer, line] of this.#lines) {
      if (!mayServe(trainer)) continue;
      this.#lines.delete(trainer);
      if (line.debt > 0) {
        line.debt -= QUANTUM;
        this.#lines.set(trainer, line);
        continue;
      }
      const first = line.tasks.shift();
      if (first === undefined) continue;
      if (line.tasks.length > 0) this.#lines.set(trainer, line);
      this.#shares.giveBack(trainer, first.cost);
      this.#size--;
      return { trainer, task: first.task };
    }
    return undefined;
  }

  /** What a served task took, in bytes: others have as much before the trainer's next one. */
  charge(trainer: string, bytes: number): void {
    const line = this.#lines.get(trainer);
    if (line !== undefined) line.debt += Math.max(0, bytes - QUANTUM);
  }
}
