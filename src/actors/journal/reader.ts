import { setTimeout as delay } from "node:timers/promises";
import { AckPolicy, DeliverPolicy, type JetStreamManager, ReplayPolicy } from "@nats-io/jetstream";
import {
  createInbox,
  type Msg,
  type NatsConnection,
  nanos,
  type Subscription,
} from "@nats-io/transport-node";
import { PserverError } from "../../protocol/index.ts";
import { visible } from "../../protocol/visible.ts";
import { fromBrokerError } from "../../transport/broker-error.ts";
import type { JournalRecord } from "../fold/shard.ts";
import type { Credit } from "./credit.ts";
import { RetryLimit } from "./retry-limit.ts";

/** How long one request for records stands; then the broker ends it and it is made again. */
const REQUEST_MS = 30_000;

/** The broker shows a sign of life this often on a request that waits. */
const HEARTBEAT_MS = 3_000;

/** First and longest pause before a consumer that failed is made again. */
const RETRY_MS_MIN = 50;
const RETRY_MS_MAX = 2_000;

/** What the reply subject of a delivered record begins with; that of a status does not. */
const DELIVERY_PREFIX = "$JS.ACK.";

/** What a {@link JournalReader} needs. */
export interface JournalReaderOptions {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly inboxPrefix: string;
  readonly credit: Credit;
  /** Checks the journal before each consumer is made and says where to read on. */
  readonly locate: () => Promise<{ stream: string; startSeq: number }>;
  /** Called for each record, in the order of the stream; {@link JournalReader.taken} follows. */
  readonly onRecord: (record: JournalRecord) => void;
  /** Called once if reading cannot go on; the reader has then stopped. */
  readonly onFailure: (error: PserverError) => void;
}

/**
 * Delivers a journal stream in order and without an end, through an unfiltered pull consumer that
 * needs no acknowledgements. Records lost with a connection are asked for again; a record that is
 * still missing then is delivered as the gap it is, for the fold to find.
 */
export class JournalReader {
  readonly #options: JournalReaderOptions;
  readonly #watchdog: NodeJS.Timeout;
  readonly #limit: RetryLimit = new RetryLimit();
  #subscription: Subscription | undefined;
  #requestSubject = "";
  #inbox = "";
  #next = 0;
  #gapAt = 0;
  #outstanding = 0;
  /** Records delivered that the fold has not taken yet: they use up the credit, too. */
  #waiting = 0;
  #heardAt = 0;
  #retryMs = RETRY_MS_MIN;
  #stopped = false;
  #resetting: Promise<void> | undefined;
  #resetAgain = false;
  #attempt = 0;
  #interrupt: (reason: PserverError) => void = () => undefined;

  constructor(options: JournalReaderOptions) {
    this.#options = options;
    this.#watchdog = setInterval(() => this.#checkHeartbeat(), HEARTBEAT_MS);
    this.#watchdog.unref();
  }

  /** Reads anew from where `locate` says, at the start and after a reconnect. */
  reset(): Promise<void> {
    // One under way may have been overtaken by what this one is for: it begins anew at its end.
    if (this.#resetting !== undefined) this.#resetAgain = true;
    this.#resetting ??= this.#recreate().finally(() => {
      this.#resetting = undefined;
    });
    return this.#resetting;
  }

  /** Reads anew after the connection was lost: what it asked for before is never answered. */
  reconnected(): Promise<void> {
    this.#interrupt(new PserverError("NO_BROKER", "the broker was lost meanwhile"));
    return this.reset();
  }

  /** So many delivered records are folded or forgotten: as many more may come. */
  taken(records: number): void {
    this.#waiting = Math.max(0, this.#waiting - records);
    this.#request();
  }

  /** Stops; nothing is delivered any more. */
  stop(): void {
    this.#stopped = true;
    clearInterval(this.#watchdog);
    this.#unsubscribe();
  }

  async #recreate(): Promise<void> {
    while (!this.#stopped) {
      this.#unsubscribe();
      try {
        this.#resetAgain = false;
        const interrupted = new Promise<never>((_resolve, reject) => {
          this.#interrupt = reject;
        });
        this.#attempt += 1;
        await Promise.race([this.#create(this.#attempt), interrupted]);
        this.#limit.clear();
        if (!this.#resetAgain) return;
      } catch (error) {
        const found = fromBrokerError(error, "reading the journal");
        if (this.#limit.isReachedBy(found)) {
          this.#fail(found);
          return;
        }
        await delay(this.#nextPauseMs());
      }
    }
  }

  async #create(attempt: number): Promise<void> {
    const { connection, manager, inboxPrefix, locate } = this.#options;
    const { stream, startSeq } = await locate();
    if (attempt !== this.#attempt) return;
    this.#next = startSeq;
    this.#inbox = createInbox(inboxPrefix);
    const consumer = `owner-${this.#inbox.split(".").at(-1)}`;
    this.#requestSubject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    await manager.consumers.add(stream, {
      name: consumer,
      ack_policy: AckPolicy.None,
      replay_policy: ReplayPolicy.Instant,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: startSeq,
      inactive_threshold: nanos(4 * HEARTBEAT_MS),
      mem_storage: true,
      num_replicas: 1,
    });
    if (this.#stopped || attempt !== this.#attempt) return;
    this.#subscription = connection.subscribe(this.#inbox, {
      callback: (error, message) => {
        if (error === null) this.#receive(message);
      },
    });
    this.#outstanding = 0;
    this.#waiting = 0;
    this.#heardAt = performance.now();
    this.#request();
  }

  #unsubscribe(): void {
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
  }

  #request(): void {
    const window = this.#options.credit.records;
    const used = this.#outstanding + this.#waiting;
    if (this.#subscription === undefined || used > window / 2) return;
    const batch = window - used;
    const request = {
      batch,
      expires: nanos(REQUEST_MS),
      idle_heartbeat: nanos(HEARTBEAT_MS),
    };
    this.#options.connection.publish(this.#requestSubject, JSON.stringify(request), {
      reply: this.#inbox,
    });
    this.#outstanding += batch;
  }

  #receive(message: Msg): void {
    this.#heardAt = performance.now();
    // Decoded anew each time it is asked for.
    const { reply } = message;
    // Told by the reply subject, not by the headers: those of a record are its sender's choice.
    if (!reply?.startsWith(DELIVERY_PREFIX)) {
      this.#receiveStatus(message.headers?.code ?? 0, message);
      return;
    }
    this.#retryMs = RETRY_MS_MIN;
    this.#outstanding = Math.max(0, this.#outstanding - 1);
    const seq = streamSequence(reply);
    if (seq === this.#next || (seq > this.#next && this.#gapAt === this.#next)) {
      this.#options.credit.saw(message.data.length);
      this.#next = seq + 1;
      this.#waiting += 1;
      this.#options.onRecord({ seq, subject: message.subject, payload: message.data });
    } else if (seq > this.#next) {
      // Lost on the way, or lost in the stream? A new consumer tells: it starts at the record.
      this.#gapAt = this.#next;
      void this.reset();
    }
  }

  #receiveStatus(code: number, message: Msg): void {
    if (code === 100 || code === 408) this.#retryMs = RETRY_MS_MIN;
    if (code === 100) return;
    if (code === 408) {
      const pending = Number(message.headers?.get("Nats-Pending-Messages") ?? 0);
      this.#outstanding = Math.max(0, this.#outstanding - pending);
      this.#request();
      return;
    }
    // A consumer that was just made may have no leader: another at once would have none either.
    this.#unsubscribe();
    setTimeout(() => void this.reset(), this.#nextPauseMs()).unref();
  }

  /** The pause before the next attempt, which grows until something comes of one. */
  #nextPauseMs(): number {
    const pauseMs = this.#retryMs;
    this.#retryMs = Math.min(2 * pauseMs, RETRY_MS_MAX);
    return pauseMs;
  }

  #checkHeartbeat(): void {
    if (this.#subscription === undefined || this.#outstanding === 0) return;
    if (performance.now() - this.#heardAt > 3 * HEARTBEAT_MS) void this.reset();
  }

  #fail(error: PserverError): void {
    if (this.#stopped) return;
    this.stop();
    this.#options.onFailure(error);
  }
}

/** The stream sequence in the reply subject of a delivered record. */
function streamSequence(reply: string): number {
  // `$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.…`, with two more tokens before the
  // stream when the broker names domain and account.
  const tokens = reply.split(".");
  const seq = Number(tokens.length >= 11 ? tokens[7] : tokens[5]);
  if (Number.isSafeInteger(seq) && seq > 0) return seq;
  throw new PserverError("INTERNAL", `no delivery of a stream: reply subject ${visible(reply)}`);
}
