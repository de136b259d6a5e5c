import { setTimeout as delay } from "node:timers/promises";
import { AckPolicy, DeliverPolicy, type JetStreamManager, ReplayPolicy } from "@nats-io/jetstream";
import {
  createInbox,
  type Msg,
  type NatsConnection,
  nanos,
  nuid,
  type Subscription,
} from "@nats-io/transport-node";
import { visible } from "../../protocol/errors.ts";
import { type ErrorCode, PserverError } from "../../protocol/index.ts";
import { fromBrokerError } from "../../transport/broker-error.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
import { storedRecord } from "./journal.ts";
import { placeConsumer, type ReplicaDamage } from "./replicas.ts";

/** Errors about a journal or its ownership that a retry cannot change. */
const FINAL: readonly ErrorCode[] = [
  "JOURNAL_LOST",
  "JOURNAL_DAMAGED",
  "SNAPSHOT_DAMAGED",
  "JOB_DAMAGED",
  "NOT_OWNER",
  "UNKNOWN_RULES",
  "TOO_LARGE",
  "CLOSED",
  "DENIED",
];

/** Errors of unknown cause: defects of this program, or malformed answers of the broker. */
const UNEXPLAINED: readonly ErrorCode[] = ["INTERNAL", "BAD_MESSAGE"];

/** Unexplained failures in a row before giving up. */
const UNEXPLAINED_MAX = 10;

/** Whether no retry can help against an error of taking over or reading a journal. */
export function isFinal(error: PserverError): boolean {
  return FINAL.includes(error.code);
}

/**
 * Decides whether an operation on a journal is retried: without limit after a transient error, not at
 * all after a final one, and at most ten times in a row after an unexplained one.
 */
export class RetryLimit {
  #unexplained = 0;

  /** Counts a failed attempt. Returns whether it was the last one. */
  isReachedBy(error: PserverError): boolean {
    this.#unexplained = UNEXPLAINED.includes(error.code) ? this.#unexplained + 1 : 0;
    return isFinal(error) || this.#unexplained >= UNEXPLAINED_MAX;
  }

  /** Notes that an attempt has succeeded. */
  clear(): void {
    this.#unexplained = 0;
  }
}

/** Lifetime of a request for records. Then the broker ends it, and a new one is sent. */
const REQUEST_MS = 30_000;

/** Interval of the broker's heartbeats for a request that waits for records. */
const HEARTBEAT_MS = 1_000;

/** How often silence is looked for. */
const LOOK_MS = 500;

/**
 * The shortest and longest silence that counts as the end of a consumer. It grows while new consumers are silent,
 * too: brokers that are busy or far from each other must have time to deliver.
 */
const SILENCE_MS_MIN = 2_500;
const SILENCE_MS_MAX = 10_000;

/** Time after which the broker removes a consumer of which nothing was asked. */
const INACTIVE_MS = 12_000;

/** First and longest pause before a new consumer after a failure. */
const RETRY_MS_MIN = 50;
const RETRY_MS_MAX = 500;

/**
 * Matches subjects under which no record can be published: the broker's protocol takes no such characters and, by
 * default, no longer subject. A record with such a subject cannot be delivered: its line ends the connection.
 */
const UNSENDABLE = /[ \t\r\n]|^.{4096}/su;

/** Limit of the characters of a subject that an error shows. */
const SHOWN_MAX = 100;

/** Prefix of the reply subjects of records; statuses have none. */
const DELIVERY_PREFIX = "$JS.ACK.";

/** Dependencies of {@link JournalReader}. */
export interface JournalReaderDeps {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly inboxPrefix: string;
  readonly credit: Credit;
  /** Whether several brokers keep the stream, whose copies may differ. */
  readonly isReplicated: boolean;
}

/** A record as the broker delivers it. */
export interface DeliveredRecord extends JournalRecord {
  /** The broker whose copy of the stream it is from; undefined if there is only one. */
  readonly broker: string | undefined;
  /** When the broker stored it, in milliseconds since 1970, with fractions. */
  readonly timeMs: number;
}

/** Callbacks of a {@link JournalReader}. */
export interface JournalReaderEvents {
  /** Checks the journal before each consumer is created, and returns where to read on. */
  readonly locate: () => Promise<{ stream: string; startSeq: number }>;
  /**
   * Called for each record, in the order of the stream. {@link JournalReader.taken} must be called for each one
   * afterwards.
   */
  readonly onRecord: (record: DeliveredRecord) => void;
  /** Called when one copy of a replicated stream lacks records, or cannot deliver them, which another one has. */
  readonly onReplicaDamaged?: (damage: ReplicaDamage) => void;
  /** Called once if reading cannot go on; the reader has stopped. */
  readonly onFailure: (error: PserverError) => void;
}

/**
 * Delivers a journal stream in order and without end, through an unfiltered pull consumer without acknowledgements.
 * Records lost with a connection are requested again; if some are still missing, it delivers the records after the
 * gap, and the fold detects the gap. A record whose subject has changed so that its delivery ends the connection is
 * JOURNAL_DAMAGED.
 *
 * A consumer reads the copy of one broker. If several have copies, what one lacks or cannot deliver is looked for in
 * the others first.
 */
export class JournalReader {
  readonly #deps: JournalReaderDeps;
  readonly #limit: RetryLimit = new RetryLimit();
  #events: JournalReaderEvents = NOT_STARTED;
  #watchdog: NodeJS.Timeout | undefined;
  #subscription: Subscription | undefined;
  #requestSubject = "";
  #inbox = "";
  #next = 0;
  /** Sequence at which the last consumer began. */
  #startedAt = 0;
  #gapAt = 0;
  /** Damage found at {@link #gapAt}, by the brokers whose copies have it. */
  readonly #gaps: Map<string, ReplicaDamage> = new Map();
  /** The broker whose copy is read; undefined unless several have one. */
  #broker: string | undefined;
  readonly #avoided: Set<string> = new Set();
  /** The last record of the stream, as the last delivery has told. */
  #endSeq = 0;
  #outstanding = 0;
  /** How many delivered records the fold has not taken yet; they use up credit, too. */
  #waiting = 0;
  #heardAt = 0;
  #silenceMs = SILENCE_MS_MIN;
  #isLooking = false;
  #retryMs = RETRY_MS_MIN;
  #stopped = false;
  #resetting: Promise<void> | undefined;
  #resetAgain = false;
  #attempt = 0;
  #interrupt: (reason: PserverError) => void = () => undefined;

  constructor(deps: JournalReaderDeps) {
    this.#deps = deps;
  }

  /** Starts to read. May be called once. */
  start(events: JournalReaderEvents): Promise<void> {
    this.#events = events;
    this.#watchdog = setInterval(() => void this.#lookForSilence(), LOOK_MS);
    this.#watchdog.unref();
    return this.reset();
  }

  /** Starts a new consumer where `locate` says. */
  reset(): Promise<void> {
    // A reset under way may have begun before the reason for this one, so it is repeated.
    if (this.#resetting !== undefined) this.#resetAgain = true;
    this.#resetting ??= this.#recreate().finally(() => {
      this.#resetting = undefined;
    });
    return this.#resetting;
  }

  /** Starts a new consumer after the connection was lost: earlier requests are never answered. */
  reconnected(): Promise<void> {
    this.#interrupt(new PserverError("NO_BROKER", "the broker was lost meanwhile"));
    return this.reset();
  }

  /** Notes that delivered records are folded or forgotten, so that as many more may be requested. */
  taken(records: number): void {
    this.#waiting = Math.max(0, this.#waiting - records);
    this.#request();
  }

  /** Reads the copies of other brokers from the next {@link reset} on, as long as one of them can be read. */
  avoid(broker: string): void {
    this.#avoided.add(broker);
  }

  /** Ends what {@link avoid} began. */
  allow(broker: string): void {
    this.#avoided.delete(broker);
  }

  /** The last record that the stream is known to hold. */
  get endSeq(): number {
    return this.#endSeq;
  }

  /** Stops the delivery for good. */
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
    const { connection, manager, inboxPrefix, isReplicated } = this.#deps;
    const { stream, startSeq } = await this.#events.locate();
    if (attempt !== this.#attempt) return;
    const avoided = new Set(this.#avoided);
    // The record at this place may itself have ended the last consumer.
    if (startSeq === this.#startedAt) {
      await this.#checkSubject(stream, startSeq, avoided);
      if (this.#broker !== undefined) avoided.add(this.#broker);
    }
    this.#startedAt = startSeq;
    this.#next = startSeq;
    this.#endSeq = startSeq - 1;
    const made = await placeConsumer(
      manager,
      stream,
      () => ({
        name: `owner-${nuid.next()}`,
        ack_policy: AckPolicy.None,
        replay_policy: ReplayPolicy.Instant,
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: startSeq,
        inactive_threshold: nanos(INACTIVE_MS),
      }),
      avoided,
    );
    const { name } = made.info;
    if (this.#stopped || attempt !== this.#attempt) return;
    this.#broker = isReplicated ? made.broker : undefined;
    this.#requestSubject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`;
    this.#inbox = createInbox(inboxPrefix);
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
    const window = this.#deps.credit.records;
    const used = this.#outstanding + this.#waiting;
    if (this.#subscription === undefined || used > window / 2) return;
    const batch = window - used;
    const request = {
      batch,
      expires: nanos(REQUEST_MS),
      idle_heartbeat: nanos(HEARTBEAT_MS),
    };
    this.#deps.connection.publish(this.#requestSubject, JSON.stringify(request), {
      reply: this.#inbox,
    });
    this.#outstanding += batch;
  }

  #receive(message: Msg): void {
    this.#heardAt = performance.now();
    // Read once, because each access decodes it.
    const { reply } = message;
    // The reply subject tells records from statuses: the headers of a record are up to its sender.
    if (!reply?.startsWith(DELIVERY_PREFIX)) {
      this.#receiveStatus(message.headers?.code ?? 0, message);
      return;
    }
    this.#delivers();
    this.#outstanding = Math.max(0, this.#outstanding - 1);
    const { seq, timeMs, pending } = parseDelivery(reply);
    this.#endSeq = seq + pending;
    if (seq === this.#next || (seq > this.#next && this.#isGapConfirmed)) {
      if (this.#gaps.size > 0) this.#endGap(seq);
      this.#deps.credit.noteSize(message.data.length);
      this.#next = seq + 1;
      this.#waiting += 1;
      const { subject, data: payload } = message;
      this.#events.onRecord({ seq, subject, payload, timeMs, broker: this.#broker });
    } else if (seq > this.#next) {
      // A new consumer, which starts at the missing record, shows whether the stream lacks it.
      this.#noteGap(seq);
      void this.reset();
    }
  }

  /** Whether a consumer that began at the missing record has skipped it, too: in a replicated stream, in each copy. */
  get #isGapConfirmed(): boolean {
    if (this.#gapAt !== this.#next) return false;
    return this.#broker === undefined || this.#gaps.has(this.#broker);
  }

  /** Notes that this copy lacks the records before `seq`, and has the next consumer read another one. */
  #noteGap(seq: number): void {
    if (this.#gapAt !== this.#next) this.#forgetGap();
    this.#gapAt = this.#next;
    if (this.#broker === undefined) return;
    const [broker, from, to] = [this.#broker, this.#next, seq - 1];
    this.#gaps.set(broker, { broker, from, to, isOther: false });
    this.#avoided.add(this.#broker);
  }

  /** Tells which copies lack records that another one has delivered now, and forgets a gap that all copies have. */
  #endGap(seq: number): void {
    if (seq !== this.#gapAt) {
      this.#forgetGap();
      return;
    }
    for (const damage of this.#gaps.values()) this.#events.onReplicaDamaged?.(damage);
    this.#gaps.clear();
  }

  #forgetGap(): void {
    for (const broker of this.#gaps.keys()) this.#avoided.delete(broker);
    this.#gaps.clear();
  }

  /**
   * Passes unless a record's subject keeps the broker from delivering it. If only the leader's copy is known to be
   * like that, adds the leader to those to be avoided.
   * @throws JOURNAL_DAMAGED {seq}; the errors of `storedRecord`.
   */
  async #checkSubject(stream: string, seq: number, avoided: Set<string>): Promise<void> {
    const { manager, isReplicated } = this.#deps;
    const record = await storedRecord(manager, stream, seq);
    if (record === undefined || !UNSENDABLE.test(record.subject)) return;
    const leader = (await manager.streams.info(stream)).cluster?.leader;
    if (isReplicated && leader !== undefined) {
      avoided.add(leader);
      this.#avoided.add(leader);
      this.#events.onReplicaDamaged?.({ broker: leader, from: seq, to: seq, isOther: false });
      return;
    }
    const shown = visible(record.subject.slice(0, SHOWN_MAX));
    const text = `journal ${stream}: record ${seq} is another than the one that was stored: its subject is ${shown}`;
    throw new PserverError("JOURNAL_DAMAGED", text, { stream, seq });
  }

  #receiveStatus(code: number, message: Msg): void {
    if (code === 100 || code === 408) this.#delivers();
    if (code === 100) return;
    if (code === 408) {
      const pending = Number(message.headers?.get("Nats-Pending-Messages") ?? 0);
      this.#outstanding = Math.max(0, this.#outstanding - pending);
      this.#request();
      return;
    }
    // A new consumer may have no leader yet, and neither would its successor without a pause.
    this.#unsubscribe();
    setTimeout(() => void this.reset(), this.#nextPauseMs()).unref();
  }

  /** Returns the pause before the next attempt; it grows until an attempt succeeds. */
  #nextPauseMs(): number {
    const pauseMs = this.#retryMs;
    this.#retryMs = Math.min(2 * pauseMs, RETRY_MS_MAX);
    return pauseMs;
  }

  /** Notes that the consumer is alive. */
  #delivers(): void {
    this.#retryMs = RETRY_MS_MIN;
    this.#silenceMs = SILENCE_MS_MIN;
  }

  /**
   * Starts a new consumer if this one is silent: its broker has ended or hangs, or cannot be reached. First the broker
   * of this connection must answer a PING, and so have delivered all that it had before.
   */
  async #lookForSilence(): Promise<void> {
    const [subscription, heardAt] = [this.#subscription, this.#heardAt];
    const isSilent = performance.now() - heardAt > this.#silenceMs;
    if (subscription === undefined || this.#outstanding === 0 || !isSilent || this.#isLooking)
      return;
    this.#isLooking = true;
    // A connection that is lost has another consumer started once it is back.
    const hasAnswered = await this.#deps.connection.flush().then(
      () => true,
      () => false,
    );
    this.#isLooking = false;
    if (!hasAnswered || this.#subscription !== subscription || this.#heardAt !== heardAt) return;
    this.#silenceMs = Math.min(2 * this.#silenceMs, SILENCE_MS_MAX);
    await this.reset();
  }

  #fail(error: PserverError): void {
    if (this.#stopped) return;
    this.stop();
    this.#events.onFailure(error);
  }
}

const NOT_STARTED: JournalReaderEvents = {
  locate: () => Promise.reject(new PserverError("INTERNAL", "the reader has not been started")),
  onRecord: () => undefined,
  onFailure: () => undefined,
};

/** Reads stream sequence, time and the number of later records from the reply subject of a delivered record. */
function parseDelivery(reply: string): { seq: number; timeMs: number; pending: number } {
  // `$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<nanoseconds>.<pending>`, with
  // two more tokens before the stream when the broker names domain and account.
  const tokens = reply.split(".");
  const at = tokens.length >= 11 ? 7 : 5;
  const seq = Number(tokens[at]);
  const pending = Number(tokens[at + 3]);
  if (Number.isSafeInteger(seq) && seq > 0 && Number.isSafeInteger(pending)) {
    return { seq, timeMs: Number(tokens[at + 2]) / 1e6, pending };
  }
  throw new PserverError("INTERNAL", `no delivery of a stream: reply subject ${visible(reply)}`);
}

/** Limits of the records that a shard requests ahead of the fold. */
const RECORDS_MIN = 2;
const RECORDS_MAX = 512;

/** Factor of the estimate at each smaller record, so that large records are forgotten slowly. */
const DECAY = 0.95;

/**
 * Computes how many records a reader may request so that they stay within a number of bytes. Sizes are not known in
 * advance, so the largest recent record is the estimate for the next ones.
 */
export class Credit {
  readonly #bytes: number;
  #recordBytes: number;

  /** `bytes` limits the requested records. The first estimate is the largest possible record. */
  constructor(bytes: number, recordBytesMax: number) {
    this.#bytes = bytes;
    this.#recordBytes = recordBytesMax;
  }

  /** Updates the estimate with the size of a record. */
  noteSize(bytes: number): void {
    this.#recordBytes = Math.max(bytes, this.#recordBytes * DECAY);
  }

  /** How many records may be requested and not yet folded. */
  get records(): number {
    const fitting = Math.floor(this.#bytes / Math.max(this.#recordBytes, 1));
    return Math.min(Math.max(fitting, RECORDS_MIN), RECORDS_MAX);
  }
}
