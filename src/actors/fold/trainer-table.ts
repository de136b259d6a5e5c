import { PserverError } from "../../protocol/errors.ts";
import type { SessionsRecord } from "../../protocol/host-records.ts";
import { quoteName } from "../../protocol/names.ts";
import type { Outcome } from "../../protocol/outcomes.ts";
import type { RecordHead } from "../../protocol/records.ts";
import type { TrainerSession } from "../../protocol/remembered-trainers.ts";
import { rejection } from "./rejection.ts";
import type { Rules } from "./rules.ts";

/** What a shard remembers of one trainer. */
export interface TrainerEntry {
  readonly session: number;
  /** No number up to it will be sent again; the outcomes up to it are forgotten. */
  readonly done: number;
  /** First outcomes of numbers above `done`, in the order in which they were settled. */
  readonly outcomes: ReadonlyMap<number, Outcome>;
  /** Records of the session that were refused, less those that were applied; never below 0. */
  readonly refused: number;
}

/** What a shard tells of the trainers that it remembers. */
export interface RememberedSessions {
  /** The highest session that hosts have told to have been given; 0 if they have told none. */
  readonly floor: number;
  /**
   * The first `count` trainers after the one of this id, with their sessions, in order of the UTF-16 code
   * units of the ids.
   */
  after(id: string, count: number): TrainerSession[];
}

interface Entry extends TrainerEntry {
  done: number;
  readonly outcomes: Map<number, Outcome>;
  refused: number;
}

/** Refusals that a sound trainer has to expect, however many: where its steps are is not its fault. */
const EXPECTED_REFUSALS: readonly Outcome["code"][] = ["LATE", "EARLY", "NOT_MEMBER"];

/**
 * Which records of which trainers have been settled: what makes a repeat harmless.
 *
 * A record is admitted at most once. Whatever became of an admitted record, applied or rejected, is
 * noted and answered to every repeat. A record that is not admitted changes nothing here.
 */
export class TrainerTable implements RememberedSessions {
  readonly #entries: Map<string, Entry> = new Map();
  #floor = 0;
  /** Sessions up to the floor that have not ended. */
  #live: Set<number> = new Set();

  /** Every session up to this one has ended, but for the live ones. */
  get floor(): number {
    return this.#floor;
  }

  /** The sessions up to the floor that have not ended, ascending. */
  get live(): number[] {
    return [...this.#live].sort((a, b) => a - b);
  }

  /** How many trainers are remembered. */
  get count(): number {
    return this.#entries.size;
  }

  /** Trainers whose session has more refused records than applied ones, as {@link sorted}. */
  wasteful(): [trainer: string, refused: number][] {
    const counts: [string, number][] = [];
    for (const [id, { refused }] of this.#entries) if (refused > 0) counts.push([id, refused]);
    return counts.sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** All entries by trainer, in order of the UTF-16 code units of the ids. */
  sorted(): [trainer: string, entry: TrainerEntry][] {
    return [...this.#entries].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  after(id: string, count: number): TrainerSession[] {
    const later = this.sorted().filter(([trainer]) => trainer > id);
    return later.slice(0, count).map(([trainer, { session }]) => [trainer, session]);
  }

  /**
   * Undefined if the record is to be applied, else its answer: the first outcome of a repeat, or
   * SETTLED, SUPERSEDED, REJOIN, QUOTA, WINDOW or TOO_MANY_TRAINERS. Only the first two tell what
   * became of an earlier copy of the record.
   */
  refuse(trainer: string, head: RecordHead, seq: number, rules: Rules): Outcome | undefined {
    const { session, n } = head;
    const settled = this.#settled(trainer, session, n, seq);
    if (settled !== undefined) return settled;
    const entry = this.#entries.get(trainer);
    const spent = refuseSpent(entry, head, seq, rules);
    if (spent !== undefined) return spent;
    // The record's own `done` counts too, or a sender whose earlier records were lost would be
    // refused although it keeps to its window.
    const done = Math.max(head.done, entry?.session === session ? entry.done : 0);
    if (n > done + rules.windowRecords) {
      return rejection(
        n,
        seq,
        "WINDOW",
        `record: expected a number of at most ${done + rules.windowRecords}; received ${n}`,
      );
    }
    if (entry === undefined && this.#entries.size >= rules.trainersMax) {
      return tooMany(n, seq, this.#entries.size);
    }
    return undefined;
  }

  /** Remembers the outcome of a record that was admitted and forgets those up to its `done`. */
  note(trainer: string, head: RecordHead, outcome: Outcome, rules: Rules): void {
    let entry = this.#entries.get(trainer);
    if (entry?.session !== head.session) {
      entry = { session: head.session, done: 0, outcomes: new Map(), refused: 0 };
      this.#entries.set(trainer, entry);
    }
    entry.outcomes.set(head.n, outcome);
    if (rules.bounds !== undefined) count(entry, outcome);
    if (head.done > entry.done) forget(entry, head.done);
  }

  /** What became of one record, seen from record `seq` on; see `Shard.outcomes`. */
  outcome(trainer: string, session: number, n: number, seq: number, rules: Rules): Outcome {
    const settled = this.#settled(trainer, session, n, seq);
    if (settled !== undefined) return settled;
    const entry = this.#entries.get(trainer);
    const spent = refuseSpent(entry, { session, n }, seq, rules);
    if (spent !== undefined) return spent;
    if (entry === undefined && this.#entries.size >= rules.trainersMax) {
      return tooMany(n, seq, this.#entries.size);
    }
    return rejection(
      n,
      seq,
      "BAD_CHECKSUM",
      `no readable record ${n} of session ${session} of trainer ${quoteName(trainer)} up to ${seq}`,
    );
  }

  /** Ends every session up to `session`. The floor never falls. */
  raiseFloor(session: number): void {
    this.endSessions({ upTo: session, live: [] });
  }

  /**
   * Ends every session up to `upTo` that is not live, and forgets its trainer. One that has ended does
   * not come back, whatever a record says that was written before and came later.
   */
  endSessions({ upTo, live }: Pick<SessionsRecord, "upTo" | "live">): void {
    const named = new Set(live);
    const before = this.#live;
    const floor = this.#floor;
    const wasLive = (session: number): boolean => session > floor || before.has(session);
    const stays = [...before].filter((session) => session > upTo);
    this.#live = new Set([...stays, ...live.filter(wasLive)]);
    this.#floor = Math.max(floor, upTo);
    for (const [trainer, { session }] of this.#entries) {
      if (session <= upTo && !named.has(session)) this.#entries.delete(trainer);
    }
  }

  /**
   * Forgets these trainers, each only while its session is the one that is named. Unlike one that has
   * ended, such a session may come again.
   */
  forget(trainers: readonly TrainerSession[]): void {
    for (const [trainer, session] of trainers) {
      if (this.#entries.get(trainer)?.session === session) this.#entries.delete(trainer);
    }
  }

  /** Takes the place of {@link floor} and {@link live}, before any entry is restored. */
  restoreSessions(floor: number, live: readonly number[]): void {
    this.#floor = floor;
    this.#live = new Set(live);
  }

  /** Sequences begin anew: what was settled was settled before the first. */
  restartJournal(): void {
    for (const { outcomes } of this.#entries.values()) {
      for (const [n, outcome] of outcomes) outcomes.set(n, { ...outcome, seq: 0 });
    }
  }

  /**
   * Puts an entry of a snapshot back.
   * @throws SNAPSHOT_DAMAGED if no fold can have left it.
   */
  restore(trainer: string, entry: TrainerEntry, rules: Rules): void {
    const { session, done, outcomes, refused } = entry;
    const numbers = [...outcomes.keys()];
    const fits =
      !this.#entries.has(trainer) &&
      this.#entries.size < rules.trainersMax &&
      !this.#hasEnded(session) &&
      numbers.every((n) => n > done && n <= done + rules.windowRecords);
    if (!fits) {
      throw new PserverError(
        "SNAPSHOT_DAMAGED",
        `trainer ${quoteName(trainer)}: expected one entry of at most ${rules.trainersMax}, with a ` +
          `session that is live or above ${this.#floor} and numbers from ${done + 1} to ${done + rules.windowRecords}; ` +
          `received session ${session} and numbers ${numbers.slice(0, 20).join(" ")}`,
        { trainer, session, done },
      );
    }
    this.#entries.set(trainer, { session, done, outcomes: new Map(outcomes), refused });
  }

  #hasEnded(session: number): boolean {
    return session <= this.#floor && !this.#live.has(session);
  }

  /** The answer to a number that was settled or to a session that has ended. */
  #settled(trainer: string, session: number, n: number, seq: number): Outcome | undefined {
    const entry = this.#entries.get(trainer);
    if (this.#hasEnded(session)) {
      return rejection(
        n,
        seq,
        "REJOIN",
        `session: expected one above ${this.#floor}; received ${session}`,
      );
    }
    if (entry === undefined || session > entry.session) return undefined;
    if (session < entry.session) {
      return rejection(
        n,
        seq,
        "SUPERSEDED",
        `session: expected ${entry.session}; received ${session}`,
      );
    }
    if (n > entry.done) return entry.outcomes.get(n);
    return rejection(
      n,
      seq,
      "SETTLED",
      `record: expected a number above ${entry.done}; received ${n}`,
    );
  }
}

/** Raises `done`, stepping through whichever is fewer: the numbers passed or those known. */
function forget(entry: Entry, done: number): void {
  const passed = done - entry.done;
  if (passed <= entry.outcomes.size) {
    for (let n = entry.done + 1; n <= done; n++) entry.outcomes.delete(n);
  } else {
    for (const n of entry.outcomes.keys()) if (n <= done) entry.outcomes.delete(n);
  }
  entry.done = done;
}

function count(entry: Entry, { code }: Outcome): void {
  if (code === undefined) entry.refused = Math.max(0, entry.refused - 1);
  else if (!EXPECTED_REFUSALS.includes(code)) entry.refused += 1;
}

/** The answer to a session that has had as many records refused as one may have. */
function refuseSpent(
  entry: Entry | undefined,
  { session, n }: Pick<RecordHead, "session" | "n">,
  seq: number,
  { bounds }: Rules,
): Outcome | undefined {
  if (entry === undefined || bounds === undefined || entry.session !== session) return undefined;
  if (entry.refused < bounds.refusedMax) return undefined;
  const message =
    `session ${session}: the shard has refused ${entry.refused} records more than it has applied, ` +
    "and takes no further one; join again once the cause is found";
  return rejection(n, seq, "QUOTA", message);
}

function tooMany(n: number, seq: number, trainers: number): Outcome {
  return rejection(
    n,
    seq,
    "TOO_MANY_TRAINERS",
    `the shard remembers ${trainers} trainers and takes no other`,
  );
}
