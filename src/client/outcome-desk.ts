import { retryAfterMs } from "../protocol/busy.ts";
import { decodeMessage } from "../protocol/codec.ts";
import {
  type ErrorCode,
  endsSession,
  ensureError,
  healsWithTime,
  PserverError,
  reactionTo,
  reactionToRejection,
} from "../protocol/errors.ts";
import {
  type Answers,
  encodeOutcomeRequest,
  laterPosition,
  type Outcome,
  type Position,
  parseAnswers,
} from "../protocol/outcomes.ts";
import type { JobSubjects } from "../protocol/subjects.ts";
import { detailsOf } from "./batch.ts";
import type { Lane } from "./lane.ts";
import type { OpenRecord } from "./open-record.ts";
import { expectedPosition, noteReplaced, type Positions } from "./positions.ts";
import type { InboxMessage, Wire } from "./wire.ts";

/** How long an answer may take before it is asked for, and how often it is. */
const ASK_AFTER_MS = 1_000;
const ASK_AGAIN_MS = 1_000;
const ASK_SOON_MS = 200;

interface DeskOptions {
  readonly wire: Wire;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly positions: Positions;
  readonly onSessionEnd: (error: PserverError) => void;
}

interface DeskHooks {
  readonly session: () => number;
  readonly lane: (shard: number) => Lane | undefined;
  readonly settle: (record: OpenRecord, outcome: Outcome) => void;
  readonly unknown: (record: OpenRecord, error: PserverError) => void;
}

/**
 * Takes the answers of shard owners, and asks for those that do not come: an owner that has just
 * taken a shard over folds without answering, and what is sent while disconnected is lost.
 */
export class OutcomeDesk {
  readonly askAfterMs: number = ASK_AFTER_MS;
  readonly #options: DeskOptions;
  readonly #hooks: DeskHooks;

  constructor(options: DeskOptions, hooks: DeskHooks) {
    this.#options = options;
    this.#hooks = hooks;
  }

  /** Answers that came by themselves: each is to the first copy of its record, or a repeat. */
  onAnswers(message: InboxMessage): void {
    if (message.noResponders) return;
    const answers = readAnswers(message);
    // A damaged message is as good as a lost one: the outcome is asked for.
    if (answers instanceof PserverError) return;
    this.#take(answers, false);
  }

  /** The reply to an {@link ask}; its subject ends in the shard. */
  onReply(message: InboxMessage): void {
    const lane = this.#hooks.lane(Number(message.token));
    if (lane === undefined) return;
    if (message.noResponders) {
      lane.askedAtMs -= ASK_AGAIN_MS - ASK_SOON_MS;
      return;
    }
    const answers = readAnswers(message);
    if (!(answers instanceof PserverError)) this.#take(answers, true);
    else this.#onError(lane, answers);
  }

  /** Asks for the outcomes that are due in a shard, all in one message. */
  ask(lane: Lane, now: number): void {
    if (now - lane.askedAtMs < ASK_AGAIN_MS) return;
    const stored = [...lane.open.values()].filter((record) => record.stored !== undefined);
    if (!stored.some((record) => record.askAtMs <= now)) return;
    // Those that are nearly due go along: their own question would follow at once.
    const due = stored.filter((record) => record.askAtMs <= now + ASK_SOON_MS);
    const generation = Math.min(...due.map((record) => record.stored?.generation ?? 1));
    const asked = due.filter((record) => record.stored?.generation === generation);
    if (asked.length === 0) return;
    lane.askedAtMs = now;
    const { wire, subjects, trainer } = this.#options;
    const request = encodeOutcomeRequest({
      session: this.#hooks.session(),
      numbers: asked.map((record) => record.n),
      generation,
      seq: Math.max(...asked.map((record) => record.stored?.seq ?? 0)),
    });
    try {
      wire.publish(
        subjects.outcome(lane.shard, trainer),
        request,
        `${wire.inbox}.outcome.${lane.shard}`,
      );
    } catch (error) {
      for (const record of asked) this.#hooks.unknown(record, ensureError(error));
    }
  }

  /** Whether a host refused the record for its session's end, so that it was never applied. */
  isRejoined(record: OpenRecord): boolean {
    return record.rejoin;
  }

  #take(answers: Answers, asked: boolean): void {
    const { shard, generation, session, outcomes } = answers;
    if (session !== this.#hooks.session()) return;
    const lane = this.#hooks.lane(shard);
    for (const outcome of outcomes) {
      this.#options.positions.note(shard, { generation, seq: outcome.seq });
      const record = lane?.open.get(outcome.n);
      if (record !== undefined) this.#settle(record, outcome, asked);
    }
  }

  #settle(record: OpenRecord, outcome: Outcome, asked: boolean): void {
    const { code } = outcome;
    if (code === undefined || !isOfTheSession(code)) {
      this.#hooks.settle(record, outcome);
      return;
    }
    // A session's end says nothing of an earlier copy of the record; only a record that was sent
    // once, and is answered itself, is known not to have been applied.
    const firstCopy = !asked && record.sends === 1;
    const error = sessionError(record, outcome, this.#hooks.session());
    const reaction = reactionTo(code);
    if (reaction === "rejoin" && firstCopy) record.rejoin = true;
    else if (reaction === "end" && firstCopy) this.#hooks.settle(record, outcome);
    else if (reaction !== "rejoin") this.#hooks.unknown(record, error);
    if (endsSession(code)) this.#options.onSessionEnd(error);
  }

  #onError(lane: Lane, error: PserverError): void {
    if (healsWithTime(error.code)) {
      lane.askedAtMs -= ASK_AGAIN_MS - Math.max(ASK_SOON_MS, retryAfterMs(error));
    } else if (endsSession(error.code)) {
      this.#options.onSessionEnd(error);
    } else if (reactionTo(error.code) === "replaced") {
      const newest = this.#newest(lane, error);
      for (const record of [...lane.open.values()]) {
        if (record.stored !== undefined && record.stored.generation < newest.generation) {
          this.#hooks.unknown(record, error);
        }
      }
    } else if (reactionTo(error.code) === "lost") {
      // Of a journal that ends too early, and is folded on, only what lay behind its end is lost.
      const end = { generation: 1, seq: 0, ...expectedPosition(error) };
      for (const record of [...lane.open.values()]) {
        const { stored } = record;
        const isLost = stored !== undefined && laterPosition(end, stored) === stored;
        if (isLost) this.#hooks.unknown(record, error);
      }
    }
    // Any other error is repeated with the question, until the call's deadline.
  }

  #newest(lane: Lane, error: PserverError): Position {
    noteReplaced(this.#options.positions, lane.shard, error);
    return this.#options.positions.get(lane.shard);
  }
}

/** Whether an outcome says something of the session, not of the record. */
function isOfTheSession(code: ErrorCode): boolean {
  return endsSession(code) || reactionToRejection(code) === "forgotten";
}

function sessionError(record: OpenRecord, outcome: Outcome, session: number): PserverError {
  return new PserverError(outcome.code ?? "INTERNAL", outcome.message ?? "the session is over", {
    ...detailsOf(record),
    received: session,
  });
}

function readAnswers(message: InboxMessage): Answers | PserverError {
  try {
    return parseAnswers(decodeMessage(message.data));
  } catch (error) {
    return ensureError(error);
  }
}
