import { decodeMessage, type Message } from "../../protocol/codec.ts";
import { ensureError, healsWithTime, PserverError, retryAfterMs } from "../../protocol/errors.ts";

import { throwIfError } from "../../protocol/messages/outcomes.ts";
import { Backoff, type Deadline } from "../calls/deadline.ts";

import { disconnected, type InboxMessage, type Wire } from "./wire.ts";

/** Returned by {@link Ask.read}: further messages of the answer follow. */
export const MORE: unique symbol = Symbol("more");
/** Returned by {@link Ask.read}: messages of the answer are missing, so the request is sent again. */
export const ASK_AGAIN: unique symbol = Symbol("ask again");

/** A request to hosts. */
export interface Ask<Answer> {
  readonly subject: string;
  /** The message, made anew each time it is sent; `reply` is the subject of its answer. */
  readonly body: (reply: string) => Uint8Array;
  /**
   * Reads a message of the answer, usually the only one, while `data` is valid: copy what is to be kept.
   * Returns the answer once it is complete.
   */
  readonly read: (message: Message) => Answer | typeof MORE | typeof ASK_AGAIN;
  readonly deadline: Deadline;
  /** The error when nobody listens to the subject. */
  readonly nobody: () => PserverError;
  /**
   * How long errors that a retry can heal are retried; until the deadline by default. Without any answer
   * the request always waits until its deadline.
   */
  readonly retryMs?: number;
  /** The same while nobody listens to the subject; as `retryMs` by default. */
  readonly nobodyRetryMs?: number;
  /** Whether to ask again while no answer comes, true by default; needs an idempotent request. */
  readonly repeat?: boolean;
}

const REPEAT_MS = 1_000;
/** Repeats slow down, so that a slow link is not filled with repeated replies. */
const REPEAT_MS_MAX = 4_000;
/** How often pending requests are checked: one timer for all costs less than one for each. */
const TICK_MS = 100;

/**
 * Requests under way, each with a token: the first answer counts, to whichever repeat it is. The
 * `request` of nats.js repeats nothing and does not survive reconnects.
 */
export class Requests {
  readonly #wire: Wire;
  readonly #pending = new Map<string, PendingAsk<unknown>>();
  #tokens = 0;
  #timer: NodeJS.Timeout | undefined;

  private constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** Receives answers on the wire from now on. */
  static open(wire: Wire): Requests {
    const requests = new Requests(wire);
    const all = requests.#pending;
    wire.receive("reply.*", (message) => all.get(message.token)?.receive(message));
    wire.listen({
      reconnected: () => {
        for (const pending of [...all.values()]) pending.send();
      },
      denied: (subject, error) => {
        for (const pending of [...all.values()]) {
          if (pending.subject === subject) pending.fail(error);
        }
      },
    });
    return requests;
  }

  /**
   * Returns the answer to a request. Repeats it each second, and with growing delays while nobody
   * listens or the host's error says that a retry can help.
   * @throws the error in the answer, what `read` throws, or at the deadline the last error seen.
   */
  ask<Answer>(ask: Ask<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const token = (++this.#tokens).toString(36);
      const hooks = { done: () => this.#pending.delete(token), resolve, reject };
      const pending = new PendingAsk<Answer>(this.#wire, token, ask, hooks);
      this.#pending.set(token, pending as PendingAsk<unknown>);
      pending.start();
      this.#arm();
    });
  }

  /** Sends a message without waiting for an answer; does nothing once the connection is closed. */
  tell(subject: string, body: Uint8Array): void {
    try {
      const token = (++this.#tokens).toString(36);
      this.#wire.publish(subject, body, `${this.#wire.inbox}.reply.${token}`);
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
    // The deadlines of the requests keep the process alive.
    this.#timer.unref();
  }
}

interface AskHooks<Answer> {
  readonly done: () => void;
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
    this.#scheduleRepeat();
    this.#repeatMs = Math.min(this.#repeatMs * 2, REPEAT_MS_MAX);
  }

  #scheduleRepeat(): void {
    if (this.#ask.repeat !== false) this.#repeatAtMs = performance.now() + this.#repeatMs;
  }

  /** Sends the request again if its repeat is due. */
  repeatIfDue(nowMs: number): void {
    if (nowMs >= this.#repeatAtMs) this.send();
  }

  receive(received: InboxMessage): void {
    if (received.noResponders) {
      const { nobody, nobodyRetryMs, retryMs } = this.#ask;
      this.#retry(nobody(), nobodyRetryMs ?? retryMs);
      return;
    }
    try {
      const message = decodeMessage(received.data);
      throwIfError(message.fields);
      const answer = this.#ask.read(message);
      if (answer === MORE) {
        this.#scheduleRepeat();
        return;
      }
      if (answer === ASK_AGAIN) {
        this.send();
        return;
      }
      this.#stop();
      this.#hooks.resolve(answer);
    } catch (caught) {
      const error = ensureError(caught);
      if (healsWithTime(error.code)) this.#retry(error, this.#ask.retryMs);
      else this.fail(error);
    }
  }

  fail(error: PserverError): void {
    this.#stop();
    this.#hooks.reject(error);
  }

  #retry(error: PserverError, retryMs: number | undefined): void {
    this.#last = error;
    if (retryMs !== undefined && performance.now() - this.#startedAtMs >= retryMs) {
      this.fail(error);
      return;
    }
    this.#backoff ??= new Backoff();
    this.#repeatAtMs = Number.POSITIVE_INFINITY;
    clearTimeout(this.#retryTimer);
    const pauseMs = Math.max(this.#backoff.nextMs(), retryAfterMs(error));
    this.#retryTimer = setTimeout(() => this.send(), pauseMs);
  }

  /** At its timeout a request fails with the last obstacle. */
  #atEnd(end: PserverError): PserverError {
    const last = this.#wire.connected ? this.#last : disconnected();
    if (end.code !== "TIMEOUT" || last === undefined) return end;
    const { code, message, details } = last;
    return new PserverError(code, `${end.message}; last: ${message}`, details, { cause: end });
  }

  #stop(): void {
    clearTimeout(this.#retryTimer);
    this.#stopListening();
    this.#hooks.done();
  }
}
