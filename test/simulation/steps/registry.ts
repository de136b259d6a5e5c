import type { MembersRecord } from "../../../src/protocol/host-records.ts";

/** Who keeps step, as the hosts' record has it: changed by compare-and-swap, so one after the other. */
export class Registry {
  readonly #members: Map<string, number> = new Map();
  readonly #needed: number;
  #revision = 0;
  #started = false;

  constructor(needed: number) {
    this.#needed = needed;
  }

  get record(): MembersRecord {
    const trainers = [...this.#members.keys()].sort();
    return { verb: "members", revision: this.#revision, started: this.#started, trainers };
  }

  get members(): readonly (readonly [trainer: string, session: number])[] {
    return [...this.#members];
  }

  /** Whether that changed anything. */
  enter(trainer: string, session: number): boolean {
    if (this.#members.get(trainer) === session) return false;
    this.#members.set(trainer, session);
    this.#started ||= this.#members.size >= this.#needed;
    this.#revision += 1;
    return true;
  }

  /** Removes a trainer that has entered in this session or an earlier one. */
  remove(trainer: string, session: number): boolean {
    const entered = this.#members.get(trainer);
    if (entered === undefined || entered > session) return false;
    this.#members.delete(trainer);
    this.#revision += 1;
    return true;
  }
}
