import { decodeMessage, type Message } from "../protocol/codec.ts";
import { type ErrorCode, ensureError, PserverError } from "../protocol/errors.ts";
import { throwIfError } from "../protocol/outcomes.ts";
import { Backoff } from "./backoff.ts";
import type { Deadline } from "./deadline.ts";
import { disconnected, type InboxMessage, type Wire } from "./wire.ts";

/** A question to hosts. */
export interface Ask<Answer> {
  readonly subject: string;
  /** The message, made anew for each sending. */
  readonly body: () => Uint8Array;
  /** What the answer says. Called once, while its `data` is valid: copy what is to be kept. */
  readonly read: (message: Message) => Answer;
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
const RETRIED: readonly ErrorCode[] = [
  ...(["NO_OWNER", "NOT_OWNER", "BUSY", "NO_HOST", "TIMEOUT"] as const),
  // Of a host whose leases are in etcd: another one, or the same one later, may reach it.
  "NO_ETCD",
];

/**
 * Questions under way, one token each: the first answer counts, whichever repeat it answers.
 * nats.js's own `request` knows neither repeats nor reconnects.
 */
export class Requests {
  readonly #wire: Wire;
  readonly #pending = new Map<string, PendingAsk<unknown>>();
  #tokens = 0;

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
      const pending = new PendingAsk<Answer>(ask, {
        publish: (bytes) =>
          this.#wire.publish(ask.subject, bytes, `${this.#wire.inbox}.reply.${token}`),
        connected: () => this.#wire.connected,
        done: () => this.#pending.delete(token),
        resolve,
        reject,
      });
      this.#pending.set(token, pending as PendingAsk<unknown>);
      pending.start();
    });
  }
}

interface AskHooks<Answer> {
  readonly publish: (bytes: Uint8Array) => void;
  readonly connected: () => boolean;
  readonly done: () => void;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: PserverError) => void;
}

class PendingAsk<Answer> {
  readonly #ask: Ask<Answer>;
  readonly #hooks: AskHooks<Answer>;
  readonly #backoff = new Backoff();
  readonly #startedAt = performance.now();
  #repeatMs = REPEAT_MS;
  #timer: NodeJS.Timeout | undefined;
  #stopListening: () => void = () => {};
  #last: PserverError | undefined;

  constructor(ask: Ask<Answer>, hooks: AskHooks<Answer>) {
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
    clearTimeout(this.#timer);
    try {
      this.#hooks.publish(this.#ask.body());
    } catch (error) {
      this.fail(ensureError(error));
      return;
    }
    if (this.#ask.repeat === false) return;
    this.#timer = setTimeout(() => this.send(), this.#repeatMs);
    this.#repeatMs = Math.min(this.#repeatMs * 2, REPEAT_MS_MAX);
  }

  receive(received: InboxMessage): void {
    if (received.noResponders) {
      this.#retry(this.#ask.nobody());
      return;
    }
    try {
      const message = decodeMessage(received.data);
      throwIfError(message.fields);
      const answer = this.#ask.read(message);
      this.#stop();
      this.#hooks.resolve(answer);
    } catch (caught) {
      const error = ensureError(caught);
      if (RETRIED.includes(error.code)) this.#retry(error);
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
    if (patienceMs !== undefined && performance.now() - this.#startedAt >= patienceMs) {
      this.fail(error);
      return;
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.send(), this.#backoff.nextMs());
  }

  /** At the end of its time a question fails as what kept it from being answered. */
  #atEnd(end: PserverError): PserverError {
    const last = this.#hooks.connected() ? this.#last : disconnected();
    if (end.code !== "TIMEOUT" || last === undefined) return end;
    const { code, message, details } = last;
    return new PserverError(code, `${end.message}; last: ${message}`, details, { cause: end });
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#stopListening();
    this.#hooks.done();
  }
}
