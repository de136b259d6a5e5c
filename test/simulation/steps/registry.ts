import type { MembersRecord } from "../../../src/protocol/messages/host-records.ts";

/** Who keeps step, as the hosts' record has it: changed by compare-and-swap, so one after the other. */
export class Registry {
  readonly #members: Map<string, number> = new Map();
  /** How often sessions have exited. */
  readonly #exits: Map<number, number> = new Map();
  readonly #needed: number;
  /** Sessions that have been removed, whether or not they have entered again. */
  readonly removed: Set<number> = new Set();
  readonly #forgetsExits: boolean;
  #revision = 0;
  #started = false;

  /** `forgetsExits`: a deviation, for proving that the oracles find it. */
  constructor(needed: number, forgetsExits: boolean) {
    this.#needed = needed;
    this.#forgetsExits = forgetsExits;
  }

  get record(): MembersRecord {
    const trainers = [...this.#members.keys()].sort();
    return { verb: "members", revision: this.#revision, started: this.#started, trainers };
  }

  get members(): readonly (readonly [trainer: string, session: number])[] {
    return [...this.#members];
  }

  /**
   * Whether that changed anything. `exits`: how often the session had exited when it asked; a request that comes
   * after a later exit is refused.
   */
  enter(trainer: string, session: number, exits: number): boolean {
    if (!this.#forgetsExits && (this.#exits.get(session) ?? 0) > exits) return false;
    if (this.#members.get(trainer) === session) return false;
    this.#members.set(trainer, session);
    this.#started ||= this.#members.size >= this.#needed;
    this.#revision += 1;
    return true;
  }

  /** A session exits for the `exits`-th time. Whether it was a member. */
  exit(trainer: string, session: number, exits: number): boolean {
    this.#exits.set(session, Math.max(exits, this.#exits.get(session) ?? 0));
    return this.remove(trainer, session);
  }

  /** Removes a trainer that has entered in this session or an earlier one. */
  remove(trainer: string, session: number): boolean {
    const entered = this.#members.get(trainer);
    if (entered === undefined || entered > session) return false;
    this.#members.delete(trainer);
    this.removed.add(entered);
    this.#revision += 1;
    return true;
  }
}
