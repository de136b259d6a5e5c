import type { Synchronization } from "../../protocol/config/index.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { MembersRecord } from "../../protocol/host-records.ts";
import { quoteName } from "../../protocol/names.ts";
import type { StepState } from "./step-state.ts";

/** A step that has closed just now. */
export interface ClosedStep {
  /** What the sums of its gradients are divided by. */
  readonly divisor: number;
}

/** How far the steps of a shard are, for those who wait. */
export interface StepProgress {
  readonly synchronization: Synchronization;
  readonly revision: number;
  readonly started: boolean;
  readonly closed: number;
  /** How many members there are. */
  readonly memberCount: number;
  isMember(trainer: string): boolean;
  /** Members that have not ended the step after {@link closed}: the first of them, ascending. */
  waitingFor(limit: number): string[];
}

/**
 * Who keeps step in a shard, how far each member is and which step has closed: a part of the fold,
 * so a pure function of the records before.
 *
 * A step closes when enough members have ended it: all of them, or all but the backups. A member is
 * waited for from the record that makes it one until the record that makes it none, and begins at the
 * step that has closed then; so whoever goes away is waited for no longer, and whoever comes is not
 * asked for steps of the past.
 */
export class StepTable implements StepProgress {
  #synchronization: Synchronization = { mode: "async" };
  #revision = 0;
  #started = false;
  #closed = 0;
  #clocks: Map<string, number> = new Map();
  readonly #participants: Set<string> = new Set();
  /** Members that have ended the open step. */
  #ended = 0;

  /** The job's; to be set before anything else. */
  set synchronization(synchronization: Synchronization) {
    this.#synchronization = synchronization;
  }

  get synchronization(): Synchronization {
    return this.#synchronization;
  }

  get revision(): number {
    return this.#revision;
  }

  get started(): boolean {
    return this.#started;
  }

  get closed(): number {
    return this.#closed;
  }

  get memberCount(): number {
    return this.#clocks.size;
  }

  isMember(trainer: string): boolean {
    return this.#clocks.has(trainer);
  }

  waitingFor(limit: number): string[] {
    const behind: string[] = [];
    for (const [trainer, clock] of this.#clocks) {
      if (behind.length === limit) break;
      if (clock <= this.#closed) behind.push(trainer);
    }
    return behind;
  }

  /** Takes the members of a revision that is higher than the one known; any other says nothing. */
  takeMembers({ revision, started, trainers }: MembersRecord): void {
    if (revision <= this.#revision || this.#synchronization.mode === "async") return;
    this.#revision = revision;
    this.#started ||= started;
    const before = this.#clocks;
    // In the order of the ids, whatever order the record has them in: states are compared.
    const sorted = [...new Set(trainers)].sort(byCodeUnits);
    this.#clocks = new Map(sorted.map((id) => [id, before.get(id) ?? this.#closed]));
    this.#countEnded();
  }

  /**
   * A trainer has ended all steps up to this one. Going back changes nothing. `leadSteps`: how far it
   * may be ahead of the last closed step and of its own clock before; absent for any number.
   * @throws NOT_MEMBER, BAD_VALUE for a step too far ahead, or UNSUPPORTED in a job whose trainers do
   * not keep step.
   */
  takeClock(trainer: string, step: number, leadSteps = Number.POSITIVE_INFINITY): void {
    if (this.#synchronization.mode === "async") throw noSteps();
    const clock = this.#clocks.get(trainer);
    if (clock === undefined) throw notMember(trainer);
    if (step <= clock) return;
    const most = Math.max(clock, this.#closed) + leadSteps;
    if (step > most) {
      throw new PserverError("BAD_VALUE", `step: expected at most ${most}; received ${step}`);
    }
    this.#clocks.set(trainer, step);
    if (clock <= this.#closed && step > this.#closed) this.#ended += 1;
  }

  /**
   * Passes if a gradient may come now, with the step it names, from this trainer.
   * @throws BAD_VALUE if it names a step where none belongs, or none where one does; in `sync`
   * NOT_MEMBER, LATE if its step has closed, EARLY if the one before has not.
   */
  checkGradient(trainer: string, step: number | undefined): void {
    if (this.#synchronization.mode !== "sync") {
      if (step === undefined) return;
      const mode = this.#synchronization.mode;
      throw new PserverError("BAD_VALUE", `step: expected none in ${mode}; received ${step}`);
    }
    const open = this.#closed + 1;
    if (step === undefined) {
      throw new PserverError("BAD_VALUE", `step: expected the open one, ${open}; received none`);
    }
    if (!this.#clocks.has(trainer)) throw notMember(trainer);
    if (step === open) return;
    throw new PserverError(
      step < open ? "LATE" : "EARLY",
      `step: expected the open one, ${open}; received ${step}`,
    );
  }

  /** A gradient of the open step was added. */
  noteGradient(trainer: string): void {
    this.#participants.add(trainer);
  }

  /**
   * Closes the open step if enough members have ended it, and at once all further ones that they have
   * ended too: of those no gradient can have come. Undefined if nothing closes.
   */
  close(): ClosedStep | undefined {
    const enough = this.#enough();
    if (!this.#started || this.#ended < enough) return undefined;
    const clocks = [...this.#clocks.values()].sort((a, b) => b - a);
    const divisor = this.#divisor();
    this.#closed = clocks[enough - 1] as number;
    this.#participants.clear();
    this.#countEnded();
    return { divisor };
  }

  /** The state; equal tables give equal ones. */
  save(): StepState {
    return {
      revision: this.#revision,
      started: this.#started,
      closed: this.#closed,
      members: [...this.#clocks],
      participants: [...this.#participants].sort(byCodeUnits),
    };
  }

  /**
   * Takes the place where {@link save} was called.
   * @throws SNAPSHOT_DAMAGED if no fold can have left it.
   */
  restore(state: StepState): void {
    const { revision, started, closed, members, participants } = state;
    const ids = members.map(([id]) => id);
    const isOfNone = this.#synchronization.mode === "async" || revision === 0;
    const isSound =
      isAscending(ids) &&
      isAscending(participants) &&
      !(isOfNone && (started || closed > 0 || revision > 0 || ids.length > 0)) &&
      (started || closed === 0) &&
      (this.#synchronization.mode === "sync" || participants.length === 0);
    this.#revision = revision;
    this.#started = started;
    this.#closed = closed;
    this.#clocks = new Map(members);
    for (const id of participants) this.#participants.add(id);
    this.#countEnded();
    if (isSound && !(started && this.#ended >= this.#enough())) return;
    throw new PserverError(
      "SNAPSHOT_DAMAGED",
      `the fold's steps contradict themselves: revision ${revision}, ${ids.length} members, ` +
        `${participants.length} participants, step ${closed} closed`,
    );
  }

  /** How many members must have ended a step; more than one where there is none. */
  #enough(): number {
    const { mode } = this.#synchronization;
    const backups = mode === "sync" ? this.#synchronization.backups : 0;
    return Math.max(1, this.#clocks.size - backups);
  }

  #divisor(): number {
    const { mode } = this.#synchronization;
    if (mode !== "sync" || this.#synchronization.reduce === "sum") return 1;
    let trainers = this.#participants.size;
    for (const [id, clock] of this.#clocks) {
      if (clock > this.#closed && !this.#participants.has(id)) trainers += 1;
    }
    return trainers;
  }

  #countEnded(): void {
    this.#ended = 0;
    for (const clock of this.#clocks.values()) if (clock > this.#closed) this.#ended += 1;
  }
}

function notMember(trainer: string): PserverError {
  return new PserverError(
    "NOT_MEMBER",
    `trainer ${quoteName(trainer)} is not a member of the job's steps here: it has to enter`,
    { trainer },
  );
}

function noSteps(): PserverError {
  return new PserverError("UNSUPPORTED", "the trainers of this job do not keep step: it is async");
}

function isAscending(ids: readonly string[]): boolean {
  return ids.every((id, i) => i === 0 || (ids[i - 1] as string) < id);
}

function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : 1;
}
