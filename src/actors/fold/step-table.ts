import type { Synchronization } from "../../protocol/config/index.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { MembersRecord } from "../../protocol/messages/host-records.ts";
import { quoteName } from "../../protocol/names.ts";

/** The step table of a shard in the state of a snapshot. */
export interface SavedSteps {
  /** Revision of the members; 0 before the first `members` record. */
  readonly revision: number;
  readonly started: boolean;
  /** Last closed step. */
  readonly closed: number;
  /** The members and the last step that each has ended, ascending by id. */
  readonly members: readonly (readonly [trainer: string, clock: number])[];
  /** Senders of gradients of the open step, ascending. */
  readonly participants: readonly string[];
}

/** A step that the last record has closed. */
export interface ClosedStep {
  /** Divisor of the sums of its gradients. */
  readonly divisor: number;
}

/** Progress of the steps of a shard. */
export interface StepProgress {
  readonly synchronization: Synchronization;
  readonly revision: number;
  readonly started: boolean;
  readonly closed: number;
  /** Ids of the members, ascending. */
  readonly members: readonly string[];
  /** Number of members. */
  readonly memberCount: number;
  /** Returns the last step that a member has ended; undefined for anybody else. */
  clockOf(trainer: string): number | undefined;
  /** Returns the first `limit` members, ascending, that have not ended the step after {@link closed}. */
  waitingFor(limit: number): string[];
}

/**
 * Holds the members of a shard's steps, the last step that each has ended, and the last closed step. It is part of
 * the fold, so it is a pure function of the records.
 *
 * A step closes when enough members have ended it: all of them, or all but the backups. A new member starts at the
 * last closed step; a removed one is no longer waited for.
 */
export class StepTable implements StepProgress {
  #synchronization: Synchronization = { mode: "async" };
  #revision = 0;
  #started = false;
  #closed = 0;
  #clocks: Map<string, number> = new Map();
  readonly #participants: Set<string> = new Set();
  /** How many members have ended the open step. */
  #ended = 0;

  /** Synchronization of the job; must be set before any other call. */
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

  get members(): string[] {
    return [...this.#clocks.keys()].sort();
  }

  get memberCount(): number {
    return this.#clocks.size;
  }

  clockOf(trainer: string): number | undefined {
    return this.#clocks.get(trainer);
  }

  waitingFor(limit: number): string[] {
    const behind: string[] = [];
    for (const [trainer, clock] of this.#clocks) {
      if (behind.length === limit) break;
      if (clock <= this.#closed) behind.push(trainer);
    }
    return behind;
  }

  /** Replaces the members if the revision is higher than the present one; else does nothing. */
  takeMembers({ revision, started, trainers }: MembersRecord): void {
    if (revision <= this.#revision || this.#synchronization.mode === "async") return;
    this.#revision = revision;
    this.#started ||= started;
    const before = this.#clocks;
    // Sorted, because equal states must have equal bytes, whatever the order in the record.
    const sorted = [...new Set(trainers)].sort(byCodeUnits);
    this.#clocks = new Map(sorted.map((id) => [id, before.get(id) ?? this.#closed]));
    this.#countEnded();
  }

  /**
   * Notes that a trainer has ended all steps up to this one; a lower step changes nothing. `leadSteps` is how far the
   * step may be ahead of the last closed step or of the trainer's own clock.
   * @throws NOT_MEMBER, BAD_VALUE for a step too far ahead, or UNSUPPORTED in a job whose trainers do not keep step.
   */
  takeClock(trainer: string, step: number, leadSteps: number): void {
    const { mode } = this.#synchronization;
    if (mode === "async" || mode === "diloco") throw noSteps(mode);
    const clock = this.#clocks.get(trainer);
    if (clock === undefined) throw notMember(trainer);
    if (step <= clock) return;
    const limit = Math.max(clock, this.#closed) + leadSteps;
    if (step > limit) {
      throw new PserverError("BAD_VALUE", `step: expected at most ${limit}; received ${step}`);
    }
    this.#clocks.set(trainer, step);
    if (clock <= this.#closed && step > this.#closed) this.#ended += 1;
  }

  /**
   * Passes if a trainer may send a gradient of this step now.
   * @throws BAD_VALUE if it names a step outside `sync`, or none in `sync`; in `sync` also NOT_MEMBER,
   * LATE if its step has closed, EARLY if the one before has not.
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

  /** Notes the sender of a gradient that was added to the open step. */
  noteGradient(trainer: string): void {
    this.#participants.add(trainer);
  }

  /**
   * Closes the open step if enough members have ended it, and also all further steps that enough have ended: no
   * gradient of those can have been taken. Undefined if no step closes.
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

  /** Returns the state to save; equal tables give equal states. */
  save(): SavedSteps {
    return {
      revision: this.#revision,
      started: this.#started,
      closed: this.#closed,
      members: [...this.#clocks],
      participants: [...this.#participants].sort(byCodeUnits),
    };
  }

  /**
   * Restores what {@link save} returned.
   * @throws SNAPSHOT_DAMAGED if no sequence of records leads to this state.
   */
  restore(state: SavedSteps): void {
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

  /** Counts the members that must have ended a step for it to close; at least 1. */
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

function noSteps(mode: "async" | "diloco"): PserverError {
  return new PserverError(
    "UNSUPPORTED",
    `the trainers of this job do not keep step: it is ${mode}`,
  );
}

function isAscending(ids: readonly string[]): boolean {
  return ids.every((id, i) => i === 0 || (ids[i - 1] as string) < id);
}

function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : 1;
}
