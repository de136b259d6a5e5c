import { retryAfterMs } from "../../protocol/busy.ts";
import { decodeMessage, type Message } from "../../protocol/codec.ts";
import { ensureError, healsWithTime, PserverError } from "../../protocol/errors.ts";
import { throwIfError } from "../../protocol/outcomes.ts";
import { Backoff } from "../timing/backoff.ts";
import type { Deadline } from "../timing/deadline.ts";
import { disconnected, type InboxMessage, type Wire } from "./wire.ts";

/** A question to hosts. */
export interface Ask<Answer> {
  readonly subject: string;
  /** The message, made anew for each sending; `reply` is where this client hears of its answer. */
  readonly body: (reply: string) => Uint8Array;
  /** What the answer says. Called once, while its `data` is valid: copy what is to be kept. */
  readonly read: (message: Message) => Answer;
  /** Whether a message is none yet, but tells how far the answer is; more follow. */
  readonly isProgress?: (message: Message) => boolean;
  readonly deadline: Deadline;
  /** The error when nobody listens to the subject. */
  readonly nobody: () => PserverError;
  /**
   * How long an error that a retry can help is retried; until the deadline by default. Silence is
   * always waited out: an answer may be on its way.
   */
  readonly patienceMs?: number;
  /** Whether to ask again while no answer comes; what the host does is then idempotent. */
  readonly repeat?: boolean;
}

const REPEAT_MS = 1_000;
/** Repeats slow down, or a slow link would be filled with the repeats of large replies. */
const REPEAT_MS_MAX = 4_000;
/** How often questions without an answer are looked through: a timer for each would cost as much. */
const TICK_MS = 100;

/**
 * Questions under way, one token each: the first answer counts, whichever repeat it answers.
 * nats.js's own `request` knows neither repeats nor reconnects.
 */
export class Requests {
  readonly #wire: Wire;
  readonly #pending = new Map<string, PendingAsk<unknown>>();
  readonly #done = (token: string): boolean => this.#pending.delete(token);
  #tokens = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(wire: Wire) {
    this.#wire = wire;
    wire.receive("reply.*", (message) => this.#pending.get(message.token)?.receive(message));
    wire.listen({
      reconnected: () => {
        for (const pending of [...this.#pending.values()]) pending.send();
      },
      denied: (subject, error) => {
        for (const pending of [...this.#pending.values()]) {
          if (pending.subject === subject) pending.fail(error);
        }
      },
    });
  }

  /**
   * The answer to a question. Asked again each second, and with growing delays while nobody
   * listens or the host says that a retry can help.
   * @throws the error in the answer, what `read` throws, or at the deadline the last error seen.
   */
  ask<Answer>(ask: Ask<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const token = (++this.#tokens).toString(36);
      const pending = new PendingAsk<Answer>(this.#wire, token, ask, {
        done: this.#done,
        resolve,
        reject,
      });
      this.#pending.set(token, pending as PendingAsk<unknown>);
      pending.start();
      this.#arm();
    });
  }

  /** Sends what needs no answer; nothing happens once the connection is closed. */
  tell(subject: string, body: Uint8Array): void {
    try {
      this.#wire.publish(
        subject,
        body,
        `${this.#wire.inbox}.reply.${(++this.#tokens).toString(36)}`,
      );
    } catch (error) {
      if (ensureError(error).code !== "CLOSED") throw error;
    }
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#pending.size === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const now = performance.now();
      for (const pending of [...this.#pending.values()]) pending.repeatIfDue(now);
      this.#arm();
    }, TICK_MS);
    // The deadlines of the questions keep the process.
    this.#timer.unref();
  }
}

interface AskHooks<Answer> {
  readonly done: (token: string) => void;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: PserverError) => void;
}

class PendingAsk<Answer> {
  readonly #wire: Wire;
  readonly #token: string;
  readonly #ask: Ask<Answer>;
  readonly #hooks: AskHooks<Answer>;
  readonly #startedAtMs = performance.now();
  #backoff: Backoff | undefined;
  #repeatMs = REPEAT_MS;
  #repeatAtMs = Number.POSITIVE_INFINITY;
  #retryTimer: NodeJS.Timeout | undefined;
  #stopListening: () => void = () => {};
  #last: PserverError | undefined;

  constructor(wire: Wire, token: string, ask: Ask<Answer>, hooks: AskHooks<Answer>) {
    this.#wire = wire;
    this.#token = token;
    this.#ask = ask;
    this.#hooks = hooks;
  }

  get subject(): string {
    return this.#ask.subject;
  }

  start(): void {
    this.#stopListening = this.#ask.deadline.onEnd((end) => this.fail(this.#atEnd(end)));
    if (this.#ask.deadline.ended === undefined) this.send();
  }

  send(): void {
    clearTimeout(this.#retryTimer);
    const wire = this.#wire;
    try {
      const reply = `${wire.inbox}.reply.${this.#token}`;
      wire.publish(this.#ask.subject, this.#ask.body(reply), reply);
    } catch (error) {
      this.fail(ensureError(error));
      return;
    }
    if (this.#ask.repeat === false) return;
    this.#repeatAtMs = performance.now() + this.#repeatMs;
    this.#repeatMs = Math.min(this.#repeatMs * 2, REPEAT_MS_MAX);
  }

  /** Sends the question again if no answer has come for so long. */
  repeatIfDue(nowMs: number): void {
    if (nowMs >= this.#repeatAtMs) this.send();
  }

  receive(received: InboxMessage): void {
    if (received.noResponders) {
      this.#retry(this.#ask.nobody());
      return;
    }
    try {
      const message = decodeMessage(received.data);
      throwIfError(message.fields);
      if (this.#ask.isProgress?.(message) === true) return;
      const answer = this.#ask.read(message);
      this.#stop();
      this.#hooks.resolve(answer);
    } catch (caught) {
      const error = ensureError(caught);
      if (healsWithTime(error.code)) this.#retry(error);
      else this.fail(error);
    }
  }

  fail(error: PserverError): void {
    this.#stop();
    this.#hooks.reject(error);
  }

  #retry(error: PserverError): void {
    this.#last = error;
    const { patienceMs } = this.#ask;
    if (patienceMs !== undefined && performance.now() - this.#startedAtMs >= patienceMs) {
      this.fail(error);
      return;
    }
    this.#backoff ??= new Backoff();
    this.#repeatAtMs = Number.POSITIVE_INFINITY;
    clearTimeout(this.#retryTimer);
    const pauseMs = Math.max(this.#backoff.nextMs(), retryAfterMs(error));
    this.#retryTimer = setTimeout(() => this.send(), pauseMs);
  }

  /** At the end of its time a question fails as what kept it from being answered. */
  #atEnd(end: PserverError): PserverError {
    const last = this.#wire.connected ? this.#last : disconnected();
    if (end.code !== "TIMEOUT" || last === undefined) return end;
    const { code, message, details } = last;
    return new PserverError(code, `${end.message}; last: ${message}`, details, { cause: end });
  }

  #stop(): void {
    clearTimeout(this.#retryTimer);
    this.#stopListening();
    this.#hooks.done(this.#token);
  }
}
