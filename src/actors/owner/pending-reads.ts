import {
  busy,
  type Fallback,
  type Fields,
  fallbacksSince,
  membersNeeded,
  type Position,
  PserverError,
  quoteName,
  WAITING_FOR_MAX,
} from "../../protocol/index.ts";
import { type Clock, systemClock } from "../concurrent.ts";
import type { Shard } from "../fold/shard.ts";
import type { StepProgress } from "../fold/step-table.ts";
import { FairShares } from "./fair-server.ts";
import type { OwnerCounters } from "./owner-counters.ts";
import type { Asker } from "./responder.ts";

/** Limits of the pending requests of one kind in one shard; beyond them, askers get BUSY. */
const PENDING = { each: 2_048, all: 8_192 } as const;

/** What to do with a request now. */
export type Evaluation =
  | { readonly kind: "wait" }
  | { readonly kind: "answer" }
  | { readonly kind: "refuse"; readonly error: PserverError };

const WAIT: Evaluation = { kind: "wait" };
const ANSWER: Evaluation = { kind: "answer" };

/** A request that may have to wait until the fold has progressed. */
interface PendingRead<Wanted> {
  /** Key of the trainer or host that asks. */
  readonly from: string;
  readonly wanted: Wanted;
  readonly waitMs: number;
  /** Called once, now or later, unless {@link refuse} is called. */
  readonly run: () => void;
  readonly refuse: (error: PserverError) => void;
}

/** Pending requests of one shard, re-evaluated after each fold. */
class PendingReads<Wanted> {
  readonly #shard: number;
  readonly #evaluate: (wanted: Wanted) => Evaluation;
  readonly #timeout: (wanted: Wanted, waitMs: number) => PserverError;
  readonly #clock: Clock;
  readonly #shares: FairShares = new FairShares(PENDING);
  /** The pending requests, with functions that cancel their timeouts. */
  readonly #reads: Map<PendingRead<Wanted>, () => void> = new Map();

  constructor(options: {
    readonly shard: number;
    readonly evaluate: (wanted: Wanted) => Evaluation;
    /** Makes the error for a request that has waited for its time. */
    readonly timeout: (wanted: Wanted, waitMs: number) => PserverError;
    readonly clock?: Clock | undefined;
  }) {
    this.#shard = options.shard;
    this.#evaluate = options.evaluate;
    this.#timeout = options.timeout;
    this.#clock = options.clock ?? systemClock;
  }

  /** Answers or refuses a request now, at a later {@link evaluateAll}, or after its time. */
  add(read: PendingRead<Wanted>): void {
    const { from, wanted, waitMs } = read;
    if (this.#settle(read)) return;
    if (!this.#shares.take(from, 1)) {
      const expected = PENDING.each;
      const text = `shard ${this.#shard}: expected at most ${expected} pending requests of one trainer and ${PENDING.all} in all`;
      read.refuse(busy(text, { shard: this.#shard, expected }));
      return;
    }
    const cancel = this.#clock.after(waitMs, () => {
      this.#remove(read);
      read.refuse(this.#timeout(wanted, waitMs));
    });
    this.#reads.set(read, cancel);
  }

  /** Number of pending requests. */
  get size(): number {
    return this.#reads.size;
  }

  /** Yields what each pending request waits for. */
  *wanted(): Iterable<Wanted> {
    for (const { wanted } of this.#reads.keys()) yield wanted;
  }

  /** Answers or refuses all pending requests that need not wait any longer. */
  evaluateAll(): void {
    for (const read of this.#reads.keys()) this.#settle(read);
  }

  /** Refuses all pending requests. */
  refuseAll(error: PserverError): void {
    for (const read of this.#reads.keys()) {
      this.#remove(read);
      read.refuse(error);
    }
  }

  /** Answers or refuses a request unless it has to wait; false if it has to. */
  #settle(read: PendingRead<Wanted>): boolean {
    const evaluation = this.#evaluate(read.wanted);
    if (evaluation.kind === "wait") return false;
    this.#remove(read);
    if (evaluation.kind === "answer") read.run();
    else read.refuse(evaluation.error);
    return true;
  }

  #remove(read: PendingRead<Wanted>): void {
    this.#reads.get(read)?.();
    if (this.#reads.delete(read)) this.#shares.giveBack(read.from, 1);
  }
}

/** A served shard as the parts that answer its requests see it. */
export interface AnsweredShard {
  readonly number: number;
  readonly shard: Shard;
  readonly positions: PositionQueue;
  readonly steps: StepQueue;
  readonly fragments: FragmentQueue;
  /** Position of the fold. */
  readonly position: Position;
  /** Records that the shard has lost with journals that were replaced. */
  readonly fallbacks: readonly Fallback[];
  /** Makes a snapshot of this position or later unless there is one. */
  snapshot(at: Position): Promise<Fields>;
  /** Makes the reply to `status`. */
  status(): Fields;
  /** Returns the free memory of the host. */
  memory(): Fields;
}

/** A position that a request needs, and how long the request may wait for it. */
export type Waiting = Position & { readonly waitMs: number };

/** Lets requests wait until the fold of a shard has reached what they need. */
export class ReadConditions {
  readonly #served: AnsweredShard;
  readonly #counters: Pick<OwnerCounters, "observe">;

  constructor(served: AnsweredShard, counters: Pick<OwnerCounters, "observe">) {
    this.#served = served;
    this.#counters = counters;
  }

  /** Calls `run` once the fold has reached a position; calls `refuse` if it does not in time or cannot. */
  afterPosition(
    { from }: Asker,
    { generation, seq, waitMs }: Waiting,
    run: () => void,
    refuse: (error: PserverError) => void,
  ): void {
    const read = { from, wanted: { generation, seq, asker: from }, waitMs, run, refuse };
    this.#served.positions.at(this.#served.position, read);
  }

  /** Calls `run` once the fold has reached a position and then a step, both within `waitMs`. */
  afterStep(
    asker: Asker,
    request: Waiting,
    wanted: WantedStep,
    run: () => void,
    refuse: (error: PserverError) => void,
  ): void {
    const { shard, steps } = this.#served;
    const deadline = performance.now() + request.waitMs;
    const arrived = (): void => {
      const arrivedMs = performance.now();
      const waitMs = Math.max(0, Math.ceil(deadline - arrivedMs));
      const closed = (): void => {
        this.#counters.observe("stepWaitSeconds", (performance.now() - arrivedMs) / 1_000);
        run();
      };
      steps.at(shard.steps, { from: asker.from, wanted, waitMs, run: closed, refuse });
    };
    this.afterPosition(asker, request, arrived, refuse);
  }

  /** Calls `run` once the fold has reached a position and then a version of a fragment, both within `waitMs`. */
  afterRound(
    { from }: Asker,
    request: Waiting,
    wanted: WantedRound,
    run: () => void,
    refuse: (error: PserverError) => void,
  ): void {
    const { shard, fragments } = this.#served;
    const deadline = performance.now() + request.waitMs;
    const arrived = (): void => {
      const waitMs = Math.max(0, Math.ceil(deadline - performance.now()));
      fragments.at(shard, { from, wanted, waitMs, run, refuse });
    };
    this.afterPosition({ from, reply: "" }, request, arrived, refuse);
  }

  /** Calls `run` once the fold has reached the position and the step that a read of values names. */
  afterBoth(
    asker: Asker,
    request: Waiting & { readonly step?: number },
    run: () => void,
    refuse: (error: PserverError) => void,
  ): void {
    const { step } = request;
    // Step 0 counts as closed, also in a job without steps.
    if (step === undefined || step === 0) this.afterPosition(asker, request, run, refuse);
    else {
      const wanted = { revision: 0, step, trainer: asker.from, isRead: true };
      this.afterStep(asker, request, wanted, run, refuse);
    }
  }
}

/** Time before the first query for a request, and between two queries. */
const QUERY_AFTER_MS = 200;

/** End of a journal, as the broker has said. */
interface KnownEnd {
  readonly generation: number;
  readonly lastSeq: number;
  /** Number of the query that it answers. */
  readonly query: number;
}

/**
 * Asks the broker for the last sequence of a generation, which shows whether a wanted position is lost. `tell` gets
 * undefined if the broker does not say.
 */
type QueryLastSeq = (wanted: Position, tell: (lastSeq: number | undefined) => void) => void;

/** Dependencies of {@link EndQueries}. */
interface EndQueriesDeps {
  readonly lastSeq: QueryLastSeq;
  /** Returns the highest position of the present journal that a request waits for. */
  readonly awaited: () => Position | undefined;
  /** Called when {@link EndQueries.known} has changed. */
  readonly onKnown: () => void;
  readonly clock?: Clock | undefined;
}

/**
 * Asks the broker for the end of a shard's journal while requests wait for a position above the fold. One query at a
 * time serves all requests, and none is made for the first moments: the fold is rarely far behind.
 */
class EndQueries {
  readonly #deps: EndQueriesDeps;
  readonly #clock: Clock;
  #queries = 0;
  #known: KnownEnd | undefined;
  #isDue = false;

  constructor(deps: EndQueriesDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
  }

  /** Number of queries begun. A request is evaluated by a later query than those begun before it. */
  get queries(): number {
    return this.#queries;
  }

  /** Result of the last successful query. */
  get known(): KnownEnd | undefined {
    return this.#known;
  }

  /** Starts to query, soon and then repeatedly, while requests wait. To be called for each new request. */
  watch(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#clock.after(QUERY_AFTER_MS, () => this.#query());
  }

  #query(): void {
    const wanted = this.#deps.awaited();
    if (wanted === undefined || this.#reaches(wanted)) {
      this.#finish();
      return;
    }
    this.#queries += 1;
    const query = this.#queries;
    const { generation } = wanted;
    this.#deps.lastSeq(wanted, (lastSeq) => {
      // Without an answer, requests go on waiting until they get TIMEOUT.
      if (lastSeq !== undefined) {
        this.#known = { generation, lastSeq, query };
        this.#deps.onKnown();
      }
      this.#finish();
    });
  }

  #finish(): void {
    this.#isDue = false;
    if (this.#deps.awaited() !== undefined) this.watch();
  }

  /** Whether the journal is known to contain a position. */
  #reaches({ generation, seq }: Position): boolean {
    return this.#known?.generation === generation && seq <= this.#known.lastSeq;
  }
}

/** A position that a request needs, and the asker. */
export interface WantedPosition extends Position {
  /** Id of the trainer or host. */
  readonly asker: string;
}

/** Dependencies of {@link PositionQueue}. */
interface PositionQueueDeps {
  readonly shard: number;
  /** Returns the records that the shard has lost with journals that were replaced. */
  readonly fallbacks: () => readonly Fallback[];
  readonly lastSeq: QueryLastSeq;
  /** Called when an asker gets JOURNAL_LOST because the journal ends before its position. */
  readonly onLost: (error: PserverError, wanted: WantedPosition) => void;
  readonly clock?: Clock;
}

/** Position of a request, with the number of queries of the journal's end that were begun before the request came. */
type Awaited = WantedPosition & { readonly queries: number };

/** Requests that are answered once the fold of a shard has reached a position. Does no I/O. */
export class PositionQueue {
  readonly #deps: PositionQueueDeps;
  readonly #reads: PendingReads<Awaited>;
  readonly #end: EndQueries;
  #folded: Position = { generation: 0, seq: 0 };

  constructor(deps: PositionQueueDeps) {
    const { shard, lastSeq, clock } = deps;
    this.#deps = deps;
    this.#reads = new PendingReads({
      shard,
      evaluate: (wanted) => this.#evaluate(wanted),
      timeout: (wanted, waitMs) => this.#timeout(wanted, waitMs),
      clock,
    });
    this.#end = new EndQueries({
      lastSeq,
      awaited: () => this.#highest(),
      onKnown: () => this.#reads.evaluateAll(),
      clock,
    });
  }

  /**
   * Runs `run` once the fold, now at `folded`, has reached the wanted position. Calls `refuse` with
   * TIMEOUT after `waitMs`, JOURNAL_REPLACED for a position in an old journal, JOURNAL_LOST when the
   * journal is known to end before the position, or BUSY if too many requests are pending.
   */
  at(folded: Position, { wanted, ...read }: PendingRead<WantedPosition>): void {
    this.#folded = folded;
    this.#reads.add({ ...read, wanted: { ...wanted, queries: this.#end.queries } });
    if (this.#reads.size > 0) this.#end.watch();
  }

  /** Answers requests for positions up to `folded`, and refuses those for an old journal. */
  advance(folded: Position): void {
    this.#folded = folded;
    this.#reads.evaluateAll();
  }

  /** Refuses all pending requests. */
  refuseAll(error: PserverError): void {
    this.#reads.refuseAll(error);
  }

  #evaluate(wanted: Awaited): Evaluation {
    const folded = this.#folded;
    if (wanted.seq === 0) return ANSWER;
    if (wanted.generation < folded.generation) return this.#refuseReplaced(wanted);
    if (wanted.generation > folded.generation) return WAIT;
    if (wanted.seq <= folded.seq) return ANSWER;
    const known = this.#end.known;
    // A query that began before the request may have missed a record stored in between.
    const isLost =
      known?.generation === wanted.generation &&
      known.query > wanted.queries &&
      known.lastSeq < wanted.seq;
    return isLost ? this.#refuseLost(wanted, known.lastSeq) : WAIT;
  }

  /** Returns the highest position of the present journal that a request waits for. */
  #highest(): Position | undefined {
    let highest: Position | undefined;
    for (const wanted of this.#reads.wanted()) {
      if (wanted.generation !== this.#folded.generation) continue;
      if (highest === undefined || wanted.seq > highest.seq) highest = wanted;
    }
    return highest;
  }

  #refuseLost(wanted: Awaited, lastSeq: number): Evaluation {
    const { shard, onLost } = this.#deps;
    const { generation, seq, asker } = wanted;
    const error = new PserverError(
      "JOURNAL_LOST",
      `shard ${shard}: the journal ends at record ${lastSeq}; record ${seq}, which the asker ` +
        "has seen, is lost",
      { shard, expected: { generation, seq: lastSeq }, received: { generation, seq } },
    );
    onLost(error, { generation, seq, asker });
    return { kind: "refuse", error };
  }

  #refuseReplaced({ generation, seq }: Position): Evaluation {
    const { shard, fallbacks } = this.#deps;
    const folded = this.#folded;
    const error = new PserverError(
      "JOURNAL_REPLACED",
      `shard ${shard}: position ${seq} is of journal generation ${generation}; ` +
        `generation ${folded.generation} has replaced it`,
      {
        shard,
        expected: folded,
        received: { generation, seq },
        fallbacks: fallbacksSince(fallbacks(), generation),
      },
    );
    return { kind: "refuse", error };
  }

  #timeout({ generation, seq }: Position, waitMs: number): PserverError {
    const { shard } = this.#deps;
    return new PserverError(
      "TIMEOUT",
      `shard ${shard}: position ${seq} was not folded within ${waitMs} ms`,
      { shard, expected: { generation, seq }, received: this.#folded },
    );
  }
}

/** State of a shard's steps that a request needs. */
export interface WantedStep {
  /** Revision of the members that must be known. */
  readonly revision: number;
  /** Step that must have closed. */
  readonly step: number;
  readonly trainer: string;
  /** Whether it asks for values; a trainer that is no member may wait for these, too. */
  readonly isRead: boolean;
}

/** Requests that are answered once a step of a shard has closed. Does no I/O. */
export class StepQueue {
  readonly #shard: number;
  readonly #reads: PendingReads<WantedStep & { readonly progress: StepProgress }>;

  constructor(shard: number, clock?: Clock) {
    this.#shard = shard;
    this.#reads = new PendingReads({
      shard,
      evaluate: (wanted) => evaluateStep(wanted, wanted.progress),
      timeout: (wanted, waitMs) => this.#timeout(wanted, waitMs),
      clock,
    });
  }

  /**
   * Runs `run` once the steps have progressed as wanted. Calls `refuse` with TIMEOUT after `waitMs`, naming the
   * trainers waited for; with the error of {@link evaluateStep}; or with BUSY if too many requests are pending.
   * `progress` is a live view.
   */
  at(progress: StepProgress, { wanted, ...read }: PendingRead<WantedStep>): void {
    this.#reads.add({ ...read, wanted: { ...wanted, progress } });
  }

  /** Answers or refuses requests after records have been folded. */
  advance(): void {
    this.#reads.evaluateAll();
  }

  /** Refuses all pending requests. */
  refuseAll(error: PserverError): void {
    this.#reads.refuseAll(error);
  }

  #timeout(wanted: WantedStep & { readonly progress: StepProgress }, waitMs: number): PserverError {
    const { revision, step, progress } = wanted;
    const waitingFor = progress.waitingFor(WAITING_FOR_MAX);
    return new PserverError(
      "TIMEOUT",
      `shard ${this.#shard}: ${reason(wanted, progress, waitingFor)}; waited ${waitMs} ms`,
      {
        shard: this.#shard,
        expected: { revision, step },
        received: { revision: progress.revision, step: progress.closed },
        waitingFor,
      },
    );
  }
}

/** The version of a fragment that a request needs. */
export interface WantedRound {
  readonly fragment: string;
  /** How many of its rounds must have closed. */
  readonly version: number;
  /** Who must be a member; undefined for nobody. */
  readonly member: string | undefined;
}

/** What a shard knows of its fragments, as far as requests wait for it; a live view. */
type Rounds = Pick<Shard, "fragmentVersion" | "steps">;

/** Requests that are answered once a round of a fragment has closed, or somebody is a member. Does no I/O. */
export class FragmentQueue {
  readonly #shard: number;
  readonly #reads: PendingReads<WantedRound & { readonly rounds: Rounds }>;

  constructor(shard: number, clock?: Clock) {
    this.#shard = shard;
    this.#reads = new PendingReads({
      shard,
      evaluate: (wanted) => this.#evaluate(wanted),
      timeout: (wanted, waitMs) => this.#timeout(wanted, waitMs),
      clock,
    });
  }

  /**
   * Runs `run` once the fragment has had as many rounds closed as wanted. Calls `refuse` with UNKNOWN_PARAMETER for a
   * fragment without parameters in the shard, TIMEOUT after `waitMs`, or BUSY if too many requests are pending.
   */
  at(rounds: Rounds, { wanted, ...read }: PendingRead<WantedRound>): void {
    this.#reads.add({ ...read, wanted: { ...wanted, rounds } });
  }

  /** Answers or refuses requests after records have been folded. */
  advance(): void {
    this.#reads.evaluateAll();
  }

  /** Refuses all pending requests. */
  refuseAll(error: PserverError): void {
    this.#reads.refuseAll(error);
  }

  #evaluate(wanted: WantedRound & { readonly rounds: Rounds }): Evaluation {
    const { fragment, version, member, rounds } = wanted;
    const present = rounds.fragmentVersion(fragment);
    const isMember = member === undefined || rounds.steps.clockOf(member) !== undefined;
    if (present !== undefined) return present >= version && isMember ? ANSWER : WAIT;
    const text = `shard ${this.#shard}: no parameter here belongs to fragment ${quoteName(fragment)}`;
    const details = { shard: this.#shard, fragment };
    return { kind: "refuse", error: new PserverError("UNKNOWN_PARAMETER", text, details) };
  }

  #timeout(
    { fragment, version, member, rounds }: WantedRound & { readonly rounds: Rounds },
    waitMs: number,
  ): PserverError {
    const received = rounds.fragmentVersion(fragment);
    const lacks =
      member === undefined || rounds.steps.clockOf(member) !== undefined
        ? `fragment ${quoteName(fragment)} has version ${received}, not ${version} yet`
        : `trainer ${quoteName(member)} is not a member yet`;
    return new PserverError("TIMEOUT", `shard ${this.#shard}: ${lacks}; waited ${waitMs} ms`, {
      shard: this.#shard,
      fragment,
      expected: version,
      received,
    });
  }
}

/**
 * Decides whether a request is answered, waits, or is refused: with UNSUPPORTED in an `async` job, or with NOT_MEMBER
 * if the step might never close because of the asker. A trainer waits only for steps that it has ended. If it is no
 * member, nobody waits for it. If the shard's clock of it is lower, it was removed and has entered again without
 * knowing, by a request that came late: then all others wait for it.
 */
export function evaluateStep(wanted: WantedStep, progress: StepProgress): Evaluation {
  const { revision, step, trainer, isRead } = wanted;
  const { mode } = progress.synchronization;
  if (mode === "async" || mode === "diloco") {
    const text = `the trainers of this job do not keep step: it is ${mode}`;
    const details = { expected: "sync or ssp", received: mode };
    return { kind: "refuse", error: new PserverError("UNSUPPORTED", text, details) };
  }
  if (progress.revision < revision) return WAIT;
  if (progress.closed >= step) return ANSWER;
  const clock = progress.clockOf(trainer);
  if (clock === undefined ? isRead : clock >= step) return WAIT;
  const what =
    clock === undefined
      ? "is not a member of the job's steps"
      : `has become a member of the job's steps anew, in which it has ended step ${clock}`;
  const error = new PserverError(
    "NOT_MEMBER",
    `trainer ${quoteName(trainer)} ${what}: it has to enter before it waits for step ${step}`,
    { trainer, expected: step, received: clock ?? progress.closed },
  );
  return { kind: "refuse", error };
}

function reason(
  { revision, step }: WantedStep,
  progress: StepProgress,
  waitingFor: readonly string[],
): string {
  const { synchronization, closed, memberCount } = progress;
  if (progress.revision < revision) {
    return `members of revision ${revision} are not known yet, only those of ${progress.revision}`;
  }
  const what = `step ${step} has not closed, the last one is ${closed}`;
  if (!progress.started) {
    return `${what}: ${memberCount} of ${membersNeeded(synchronization)} trainers have entered`;
  }
  if (memberCount === 0) return `${what}: no trainer is a member any more`;
  const names = waitingFor.map(quoteName).join(", ");
  const more = waitingFor.length < WAITING_FOR_MAX ? "" : ", perhaps others";
  return `${what}: step ${closed + 1} waits for ${names}${more}`;
}
