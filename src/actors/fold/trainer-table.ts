import type { Message } from "../../protocol/codec.ts";
import { type ErrorCode, PserverError } from "../../protocol/errors.ts";
import {
  TRAINERS_MAX,
  WORK_DATA_BYTES,
  WORK_ENTRIES,
  WORK_HEADER_BYTES,
} from "../../protocol/limits.ts";
import type { EndRecord, SessionsRecord } from "../../protocol/messages/host-records.ts";
import type { TrainerSession } from "../../protocol/messages/lifecycle-messages.ts";
import type { Outcome } from "../../protocol/messages/outcomes.ts";
import type { RecordHeader } from "../../protocol/messages/records.ts";
import { quoteName } from "../../protocol/names.ts";
import type { Rules } from "./rules.ts";

/** A trainer and a number of its records. */
export type CountRow = readonly [trainer: string, records: number];

/** Limit of the text of a rejection, because a shard remembers thousands of outcomes. */
const MESSAGE_LENGTH_MAX = 400;

/**
 * Returns the outcome of a rejected record. The text is made well-formed, so that a snapshot restores the same
 * characters.
 */
export function rejection(n: number, seq: number, code: ErrorCode, message: string): Outcome {
  const text = message.slice(0, MESSAGE_LENGTH_MAX).toWellFormed();
  return { n, seq, version: 0, code, message: text };
}

/** Returns the outcome of a record before the first `rules`. */
export function noRules(n: number, seq: number): Outcome {
  return rejection(n, seq, "UNKNOWN_RULES", "the journal has no rules yet: no host has begun it");
}

/** State of one trainer in a shard. */
export interface TrainerEntry {
  readonly session: number;
  /** The trainer never again sends a number up to this one; the outcomes up to it are forgotten. */
  readonly done: number;
  /** Outcomes of numbers above `done`, in the order of the journal. */
  readonly outcomes: ReadonlyMap<number, Outcome>;
  /** Work on the session's rejected records less that on its applied ones, see {@link workOf}; never below 0. */
  readonly rejected: number;
}

/** Read access to the trainers that a shard remembers. */
export interface RememberedSessions {
  /** Highest session that hosts have reported as given out; 0 before the first report. */
  readonly floor: number;
  /**
   * Returns the first `count` trainers after this id, with their sessions, in order of the UTF-16 code units of the
   * ids.
   */
  after(id: string, count: number): TrainerSession[];
}

interface Entry extends TrainerEntry {
  done: number;
  readonly outcomes: Map<number, Outcome>;
  rejected: number;
}

/** Rejections that count against no trainer: they follow from the progress of the others. */
const EXPECTED_REJECTIONS: readonly Outcome["code"][] = ["LATE", "EARLY", "NOT_MEMBER"];

/**
 * Remembers the outcomes of each trainer's records, so that a repeated record gets the first answer.
 *
 * A record is admitted at most once. The outcome of an admitted record, applied or rejected, is noted and answered to
 * every repeat. A record that is not admitted does not change this table.
 */
export class TrainerTable implements RememberedSessions {
  readonly #entries: Map<string, Entry> = new Map();
  #floor = 0;
  /** Sessions up to the floor that have not ended. */
  #live: Set<number> = new Set();
  /** By trainer, in the order of the journal: the session up to which its sessions were ended by themselves. */
  readonly #ended: Map<string, number> = new Map();

  /** The highest session reported as given out; sessions up to it have ended, except for the live ones. */
  get floor(): number {
    return this.#floor;
  }

  /** The sessions up to the floor that have not ended, ascending. */
  get live(): number[] {
    return [...this.#live].sort((a, b) => a - b);
  }

  /** Sessions that were ended by themselves, and with them all lower ones of their trainers, in the order of this. */
  get ended(): CountRow[] {
    return [...this.#ended];
  }

  /** Whether the trainer is remembered with this session. */
  holds(trainer: string, session: number): boolean {
    return this.#entries.get(trainer)?.session === session;
  }

  /** Whether the trainer is remembered, with whatever session. */
  has(trainer: string): boolean {
    return this.#entries.has(trainer);
  }

  /** Number of trainers. */
  get count(): number {
    return this.#entries.size;
  }

  /** Lists the trainers with more work on rejected records than on applied ones, in the order of {@link sorted}. */
  rejectedCounts(): [trainer: string, rejected: number][] {
    const counts: [string, number][] = [];
    for (const [id, { rejected }] of this.#entries) if (rejected > 0) counts.push([id, rejected]);
    return counts.sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** Lists all entries by trainer, in order of the UTF-16 code units of the ids. */
  sorted(): [trainer: string, entry: TrainerEntry][] {
    return [...this.#entries].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  after(id: string, count: number): TrainerSession[] {
    const later = this.sorted().filter(([trainer]) => trainer > id);
    return later.slice(0, count).map(([trainer, { session }]) => [trainer, session]);
  }

  /**
   * Returns the answer to a record that is not admitted; undefined for one that is. The answer is the first outcome
   * of a repeat, or SETTLED, SUPERSEDED, REJOIN, QUOTA, WINDOW or TOO_MANY_TRAINERS. Only a first outcome and SETTLED
   * say anything about an earlier copy of the record.
   */
  answerUnlessAdmitted(
    trainer: string,
    header: RecordHeader,
    seq: number,
    rules: Rules,
  ): Outcome | undefined {
    const { session, n } = header;
    const settled = this.#settled(trainer, session, n, seq);
    if (settled !== undefined) return settled;
    const entry = this.#entries.get(trainer);
    const spent = rejectAboveQuota(entry, header, seq, rules);
    if (spent !== undefined) return spent;
    // The record's own `done` counts, too: a sender whose earlier records were lost keeps to its window, and must not
    // be rejected.
    const done = Math.max(header.done, entry?.session === session ? entry.done : 0);
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

  /** Notes the outcome of an admitted record of this much work, and forgets those up to its `done`. */
  note(trainer: string, header: RecordHeader, outcome: Outcome, work: number): void {
    let entry = this.#entries.get(trainer);
    if (entry?.session !== header.session) {
      entry = { session: header.session, done: 0, outcomes: new Map(), rejected: 0 };
      this.#entries.set(trainer, entry);
    }
    entry.outcomes.set(header.n, outcome);
    count(entry, outcome, work);
    if (header.done > entry.done) forget(entry, header.done);
  }

  /** Returns the outcome of one record, as of record `seq`; see `Shard.outcomes`. */
  outcome(trainer: string, session: number, n: number, seq: number, rules: Rules): Outcome {
    const settled = this.#settled(trainer, session, n, seq);
    if (settled !== undefined) return settled;
    const entry = this.#entries.get(trainer);
    const spent = rejectAboveQuota(entry, { session, n }, seq, rules);
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
   * Ends every session up to `upTo` that is not live, and forgets its trainer. An ended session never becomes live
   * again, not even by a delayed record that still lists it.
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
    for (const [trainer, session] of this.#ended) {
      if (this.#hasEnded(session)) this.#ended.delete(trainer);
    }
  }

  /** Ends the sessions of a trainer up to this one, and forgets it. Of very many trainers only the last are noted. */
  endTrainer({ trainer, session }: Pick<EndRecord, "trainer" | "session">): void {
    const entry = this.#entries.get(trainer);
    if (entry !== undefined && entry.session <= session) this.#entries.delete(trainer);
    const before = this.#ended.get(trainer) ?? 0;
    if (session <= before || this.#hasEnded(session)) return;
    this.#ended.delete(trainer);
    const [oldest] = this.#ended.keys();
    if (oldest !== undefined && this.#ended.size >= TRAINERS_MAX) this.#ended.delete(oldest);
    this.#ended.set(trainer, session);
  }

  /**
   * Forgets each of these trainers if it still has the session named with it. Unlike an ended session, that session
   * may send again.
   */
  forget(trainers: readonly TrainerSession[]): void {
    for (const [trainer, session] of trainers) {
      if (this.#entries.get(trainer)?.session === session) this.#entries.delete(trainer);
    }
  }

  /** Restores {@link floor}, {@link live} and {@link ended}; must precede {@link restore}. */
  restoreSessions(floor: number, live: readonly number[], ended: readonly CountRow[]): void {
    this.#floor = floor;
    this.#live = new Set(live);
    for (const [trainer, session] of ended) this.#ended.set(trainer, session);
  }

  /** Moves all outcomes to record 0: the sequences of the journal start again at 1. */
  restartJournal(): void {
    for (const { outcomes } of this.#entries.values()) {
      for (const [n, outcome] of outcomes) outcomes.set(n, { ...outcome, seq: 0 });
    }
  }

  /**
   * Restores a saved entry.
   * @throws SNAPSHOT_DAMAGED if no sequence of records leads to it.
   */
  restore(trainer: string, entry: TrainerEntry, rules: Rules): void {
    const { session, done, outcomes, rejected } = entry;
    const numbers = [...outcomes.keys()];
    const fits =
      !this.#entries.has(trainer) &&
      this.#entries.size < rules.trainersMax &&
      !this.#hasEnded(session) &&
      session > (this.#ended.get(trainer) ?? 0) &&
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
    this.#entries.set(trainer, { session, done, outcomes: new Map(outcomes), rejected });
  }

  #hasEnded(session: number): boolean {
    return session <= this.#floor && !this.#live.has(session);
  }

  /** Returns the answer to a settled number or an ended session; undefined for all others. */
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
    const ended = this.#ended.get(trainer) ?? 0;
    if (session <= ended) {
      const text = `session: it was too far ahead of the shard; expected one above ${ended}; received ${session}`;
      return rejection(n, seq, "REJOIN", text);
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

/**
 * Raises `done` and forgets the outcomes up to it; iterates over the smaller set, the numbers passed or those
 * remembered.
 */
function forget(entry: Entry, done: number): void {
  const passed = done - entry.done;
  if (passed <= entry.outcomes.size) {
    for (let n = entry.done + 1; n <= done; n++) entry.outcomes.delete(n);
  } else {
    for (const n of entry.outcomes.keys()) if (n <= done) entry.outcomes.delete(n);
  }
  entry.done = done;
}

/**
 * Returns the work that a record can make for a shard, in units of the least record: by the bytes of its header and the
 * entries of a batch, which are read one by one, and by the bytes of its tensor, which are only looked through.
 */
export function workOf({
  headerBytes,
  entries,
  message,
}: {
  readonly headerBytes: number;
  /** Entries of a batch; 0 for any other record. */
  readonly entries: number;
  readonly message: Pick<Message, "data">;
}): number {
  const dataWork = Math.floor(message.data.length / WORK_DATA_BYTES);
  const entryWork = Math.floor(entries / WORK_ENTRIES);
  return 1 + Math.floor(headerBytes / WORK_HEADER_BYTES) + entryWork + dataWork;
}

function count(entry: Entry, { code }: Outcome, work: number): void {
  if (code === undefined) entry.rejected = Math.max(0, entry.rejected - work);
  else if (!EXPECTED_REJECTIONS.includes(code)) entry.rejected += work;
}

/** Returns the QUOTA answer to a session with too much work on rejected records; undefined for all others. */
function rejectAboveQuota(
  entry: Entry | undefined,
  { session, n }: Pick<RecordHeader, "session" | "n">,
  seq: number,
  { rejectedMax }: Rules,
): Outcome | undefined {
  if (entry === undefined || entry.session !== session) return undefined;
  if (entry.rejected < rejectedMax) return undefined;
  const message =
    `session ${session}: rejected records have made ${entry.rejected} units of work more than applied ones, ` +
    "and the shard takes no further one; join again once the cause is found";
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

/** Counts of senders to a shard and of their rejected and unreadable records. */
export interface Senders {
  /** Number of remembered trainers. */
  readonly trainers: number;
  /** Number of parameters that hosts have declared. */
  readonly declared: number;
  /** Number of records without a readable sender: damaged, malformed, or of another shard. */
  readonly unreadable: number;
  /** The trainers whose rejected records made more work than their applied ones, with the difference. */
  readonly rejectedOf: readonly CountRow[];
  /** Numbers of unreadable records, by the trainer in their subjects. */
  readonly unreadableOf: readonly CountRow[];
}

/** Counts of unreadable records: in total, and for a limited number of trainers. */
export class UnreadableCounts {
  readonly #byTrainer: Map<string, number> = new Map();
  #total = 0;

  /** Count over all senders. */
  get total(): number {
    return this.#total;
  }

  /** Lists the counts by trainer, in order of the UTF-16 code units of the ids. */
  sorted(): CountRow[] {
    return [...this.#byTrainer].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /**
   * Counts one record, in total and for its trainer if known. Trainers beyond `trainersMax` have no
   * count of their own.
   */
  count(trainer: string | undefined, trainersMax: number): void {
    this.#total += 1;
    if (trainer === undefined) return;
    const known = this.#byTrainer.get(trainer);
    if (known === undefined && this.#byTrainer.size >= trainersMax) return;
    this.#byTrainer.set(trainer, (known ?? 0) + 1);
  }

  /** Restores saved counts. */
  restore(total: number, byTrainer: readonly CountRow[]): void {
    this.#total = total;
    for (const [trainer, records] of byTrainer) this.#byTrainer.set(trainer, records);
  }
}
