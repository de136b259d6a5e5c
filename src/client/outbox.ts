import { ensureError, type PserverError, reactionToRejection } from "../protocol/errors.ts";
import { IN_FLIGHT_BYTES_MAX } from "../protocol/limits.ts";
import type { Outcome } from "../protocol/outcomes.ts";
import type { JobSubjects } from "../protocol/subjects.ts";
import { BufferPool } from "../transport/buffer-pool.ts";
import { Batch, type Piece } from "./batch.ts";
import type { Deadline } from "./deadline.ts";
import { InFlight } from "./in-flight.ts";
import { parseJournalAck } from "./journal-ack.ts";
import { Lane, type Waiting } from "./lane.ts";
import { isStoredNowhere, newRecord, type OpenRecord } from "./open-record.ts";
import { OutcomeDesk } from "./outcome-desk.ts";
import type { Positions } from "./positions.ts";
import { disconnected, type InboxMessage, type Wire } from "./wire.ts";

/** How long a PubAck may take before the record is sent again. */
const ACK_TIMEOUT_MS = 2_000;
const RETRY_MAX_MS = 1_000;
/** How often records without an answer are looked through. */
const TICK_MS = 100;
/**
 * Buffers kept for messages, of the bytes in flight: PubAcks come in bursts, and all that was in
 * flight may be free at one time. The rest is what buffers are larger than their messages.
 */
const POOL_SHARE = 1.25;

/** What the outbox belongs to. */
export interface OutboxOptions {
  readonly wire: Wire;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly positions: Positions;
  readonly inFlightBytesMax?: number;
  /** A host says that the session is over. */
  readonly onSessionEnd: (error: PserverError) => void;
}

/**
 * Publishes journal records and learns what became of them.
 *
 * At most 16 MiB are in flight without a PubAck, and at most 1,024 numbers a shard without an
 * outcome. A piece becomes a message only when both windows admit it, so what waits costs no
 * memory but the caller's own array. A record is repeated until its PubAck and no longer: after a
 * reconnect, because nats.js drops what is published while disconnected; after 2 s of silence;
 * and, with growing delays, when the journal is full or nobody has made it yet. Repeats are
 * harmless: the shard applies each number once.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #lanes = new Map<number, Lane>();
  /** The lanes, in the order of their turns. */
  readonly #turns: Lane[] = [];
  /** Pieces that wait, in all lanes. */
  #waiting = 0;
  readonly #inFlight: InFlight;
  readonly #desk: OutcomeDesk;
  readonly #pool: BufferPool;
  #turn = 0;
  #session = 0;
  #sendings = 0;
  #lastAckAtMs = 0;
  #paused = true;
  #connected = true;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: OutboxOptions) {
    this.#options = options;
    const { inFlightBytesMax = IN_FLIGHT_BYTES_MAX } = options;
    this.#inFlight = new InFlight(inFlightBytesMax);
    this.#pool = new BufferPool(POOL_SHARE * inFlightBytesMax);
    this.#desk = new OutcomeDesk(options, {
      session: () => this.#session,
      lane: (shard) => this.#lanes.get(shard),
      settle: (record, outcome) => this.#settle(record, outcome),
      unknown: (record, error) => this.#giveUp(record, error),
    });
    const { wire } = options;
    wire.receive("ack.*", (message) => this.#onAck(message));
    wire.receive("applied", (message) => this.#desk.onAnswers(message));
    wire.receive("outcome.*", (message) => this.#desk.onReply(message));
    wire.listen({
      disconnected: () => this.#onDisconnected(),
      reconnected: () => this.#onReconnected(),
      denied: (subject, error) => this.#onDenied(subject, error),
    });
  }

  /** Bytes without a PubAck. */
  get inFlightBytes(): number {
    return this.#inFlight.bytes;
  }

  /**
   * Sends the pieces of one call; resolves when all of them were applied, or stored if that is
   * enough. The arrays behind the pieces must not change until then. Gives how many came too late
   * for their step, if `countsLate` says that this is no error. With `countsPresent` a block that is
   * initialized already counts as applied.
   * @throws the first rejection; OUTCOME_UNKNOWN, naming the pieces, if the call ends before; what
   * ended the call or kept the pieces from being stored if none of them can have been applied.
   */
  send(
    pieces: readonly Piece[],
    options: {
      deadline: Deadline;
      stored?: boolean;
      countsLate?: boolean;
      countsPresent?: boolean;
    },
  ): Promise<{ late: number }> {
    const { deadline, stored = false, countsLate = false, countsPresent = false } = options;
    const { trainer } = this.#options;
    if (pieces.length === 0) return Promise.resolve({ late: 0 });
    const batch = new Batch({ trainer, stored, countsLate, countsPresent, pieces: pieces.length });
    for (const piece of pieces) this.#lane(piece.shard).add({ piece, batch });
    this.#waiting += pieces.length;
    batch.onOver(deadline.onEnd((error) => this.#giveUpBatch(batch, error)));
    this.#pump();
    return batch.done;
  }

  /** Sends under this session from now on; numbers start over. */
  start(session: number): void {
    this.#session = session;
    this.#inFlight.clear();
    for (const lane of this.#lanes.values()) this.#restartLane(lane);
    this.#paused = false;
    this.#pump();
  }

  /** Sends nothing new until {@link start}. */
  pause(): void {
    this.#paused = true;
  }

  /** Stops the timer; nothing is repeated any more. */
  close(): void {
    this.#paused = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #lane(shard: number): Lane {
    let lane = this.#lanes.get(shard);
    if (lane === undefined) {
      lane = new Lane(shard);
      this.#lanes.set(shard, lane);
      this.#turns.push(lane);
    }
    return lane;
  }

  /** Sends what the windows admit, one piece of each shard in turn. */
  #pump(): void {
    const lanes = this.#turns;
    let idle = 0;
    while (this.#waiting > 0 && !this.#paused && this.#connected && idle < lanes.length) {
      const lane = lanes[this.#turn % lanes.length];
      const first = lane?.probeStorage ? lane.first : undefined;
      if (lane === undefined || first === undefined) {
        this.#turn += 1;
        idle += 1;
        continue;
      }
      if (first.batch.failed) {
        this.#take(lane);
        first.batch.unsent();
        continue;
      }
      // The turn is kept, so that a large piece is not overtaken for ever by small ones.
      if (!this.#inFlight.fits(first.piece.dataBytes)) break;
      this.#take(lane);
      this.#turn += 1;
      idle = 0;
      this.#open(lane, first);
    }
    this.#arm();
  }

  /** Takes the lane's first piece, whose turn it is. */
  #take(lane: Lane): void {
    lane.shift();
    this.#waiting -= 1;
  }

  #open(lane: Lane, { piece, batch }: Waiting): void {
    const n = lane.next;
    const reply = `${this.#options.wire.inbox}.applied`;
    const token = this.#inFlight.nextToken(this.#sendings + 1);
    let record: OpenRecord;
    try {
      const head = { session: this.#session, n, done: lane.done, reply };
      const bytes = piece.draft(head, (size) => this.#pool.take(size));
      record = newRecord(piece, batch, n, token, bytes);
      this.#publish(record, bytes);
    } catch (error) {
      // Nothing was handed to the connection, so the number stays free.
      batch.refused({ piece }, ensureError(error));
      return;
    }
    lane.opened(record);
    this.#inFlight.add(record);
  }

  #publish(record: OpenRecord, bytes: Uint8Array): void {
    const { wire } = this.#options;
    wire.publish(record.piece.subject, bytes, `${wire.inbox}.ack.${record.token}`);
    this.#sendings += 1;
    record.sendNumber = this.#sendings;
    record.sends += 1;
    record.sentAtMs = performance.now();
    record.retryAtMs = undefined;
  }

  #onAck(message: InboxMessage): void {
    const record = this.#inFlight.get(message.token);
    if (record === undefined) return;
    const now = performance.now();
    this.#lastAckAtMs = now;
    try {
      const ack = parseJournalAck(message, this.#options.subjects);
      // One that was given up is never sent again, whatever the broker says.
      if (record.bytes === undefined) this.#inFlight.landed(record);
      if (ack.kind === "stored") {
        this.#options.positions.note(ack.shard, ack.position);
        this.#stored(record, ack.position, now);
      } else if (ack.kind === "later") {
        record.refusals += 1;
        record.retryAtMs = now + record.retryDelayMs;
        record.retryDelayMs = Math.min(record.retryDelayMs * 2, RETRY_MAX_MS);
        record.obstacle = ack.error;
      } else {
        record.refusals += 1;
        this.#refuse(record, ack.error);
      }
    } catch (error) {
      this.#refuse(record, ensureError(error));
    }
    this.#pump();
  }

  #stored(record: OpenRecord, position: NonNullable<OpenRecord["stored"]>, now: number): void {
    const lane = this.#lane(record.piece.shard);
    lane.ackedSendNumber = Math.max(lane.ackedSendNumber, record.sendNumber);
    this.#reuseBytes(record);
    this.#inFlight.landed(record);
    record.stored = position;
    record.askAtMs = now + this.#desk.askAfterMs;
    if (record.batch?.stored) {
      record.batch.applied(record);
      record.batch = undefined;
    }
  }

  /** Of a record that the broker has whole; only of a repeated one a copy may still be on its way. */
  #reuseBytes(record: OpenRecord): void {
    if (record.bytes !== undefined && record.sends === 1) this.#pool.giveBack(record.bytes);
  }

  #settle(record: OpenRecord, outcome: Outcome): void {
    // The outcome may be faster than the PubAck.
    this.#reuseBytes(record);
    this.#close(record);
    const { code } = outcome;
    const isToBeUnseen = code !== undefined && reactionToRejection(code) === "resend-unseen";
    if (isToBeUnseen && this.#sendUnseen(record)) return;
    if (code === undefined) record.batch?.applied(record);
    else record.batch?.rejected(record, code, outcome.message ?? "");
    record.batch = undefined;
    this.#pump();
  }

  /**
   * Sends a gradient again that was rejected, without the version it was made from: a shard that has
   * fallen back does not know the version any more. False if it named none.
   */
  #sendUnseen({ piece, batch }: OpenRecord): boolean {
    if (batch === undefined || piece.forgetSeen?.() !== true) return false;
    this.#lane(piece.shard).putBack([{ piece, batch }]);
    this.#waiting += 1;
    this.#pump();
    return true;
  }

  #refuse(record: OpenRecord, error: PserverError): void {
    this.#close(record);
    record.batch?.refused(record, error);
    record.batch = undefined;
  }

  #close(record: OpenRecord): void {
    this.#inFlight.landed(record);
    this.#lane(record.piece.shard).close(record.n);
  }

  /** Stops waiting for a record; it will not be sent again. */
  #giveUp(record: OpenRecord, reason: PserverError): void {
    const { batch } = record;
    this.#lane(record.piece.shard).close(record.n);
    record.bytes = undefined;
    record.batch = undefined;
    if (batch === undefined) return;
    batch.ended(reason);
    if (isStoredNowhere(record)) batch.unsent(record.obstacle);
    else batch.unknown(record);
  }

  #giveUpBatch(batch: Batch, reason: PserverError): void {
    batch.ended(reason);
    const obstacle = this.#connected ? undefined : disconnected();
    for (const lane of this.#lanes.values()) {
      const removed = lane.removeWaiting(batch);
      this.#waiting -= removed;
      for (let i = 0; i < removed; i++) batch.unsent(obstacle);
      for (const record of lane.open.values()) {
        if (record.batch === batch) this.#giveUp(record, reason);
      }
    }
    this.#pump();
  }

  /** What the ended session leaves: known to be stored nowhere, it is sent again; else unknown. */
  #restartLane(lane: Lane): void {
    const again: Waiting[] = [];
    for (const record of lane.open.values()) {
      const { batch, piece } = record;
      if (batch !== undefined && (isStoredNowhere(record) || this.#desk.isRejoined(record))) {
        again.push({ piece, batch });
      } else {
        batch?.unknown(record);
      }
    }
    lane.restart();
    lane.putBack(again);
    this.#waiting += again.length;
  }

  #onDisconnected(): void {
    this.#connected = false;
    // What was given up and not acknowledged by now never will be.
    for (const record of this.#inFlight.list()) {
      if (record.bytes === undefined) this.#inFlight.landed(record);
    }
  }

  #onReconnected(): void {
    this.#connected = true;
    this.#lastAckAtMs = performance.now();
    for (const record of this.#inFlight.list()) this.#repeat(record);
    for (const lane of this.#lanes.values()) {
      for (const record of lane.open.values()) record.askAtMs = 0;
      lane.askedAtMs = Number.NEGATIVE_INFINITY;
    }
    this.#pump();
  }

  #onDenied(subject: string, error: PserverError): void {
    for (const record of this.#inFlight.list()) {
      if (record.piece.subject === subject) this.#refuse(record, error);
    }
    this.#pump();
  }

  #repeat(record: OpenRecord): void {
    if (record.bytes === undefined) return;
    try {
      this.#publish(record, record.bytes);
    } catch (error) {
      this.#giveUp(record, ensureError(error));
    }
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#paused) return;
    if (this.#inFlight.size === 0 && !this.#turns.some((lane) => lane.open.size > 0)) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#tick(performance.now());
      this.#pump();
    }, TICK_MS);
    this.#timer.unref();
  }

  #tick(now: number): void {
    if (!this.#connected || this.#paused) return;
    for (const record of this.#inFlight.list()) {
      const lane = this.#lane(record.piece.shard);
      if (record.bytes === undefined) {
        if (now - record.sentAtMs > 2 * ACK_TIMEOUT_MS) this.#inFlight.landed(record);
      } else if (record.retryAtMs !== undefined) {
        if (now >= record.retryAtMs) this.#repeat(record);
      } else if (this.#isLost(record, lane, now)) {
        this.#repeat(record);
      }
    }
    for (const lane of this.#lanes.values()) this.#desk.ask(lane, now);
  }

  /**
   * Whether a PubAck is overdue. The broker answers a shard's records in order, so a record is lost
   * when a later one has its PubAck, or when for 2 s none came at all; a slow link alone, on which
   * PubAcks still arrive, must not be filled with repeats.
   */
  #isLost(record: OpenRecord, lane: Lane, now: number): boolean {
    if (now - record.sentAtMs < ACK_TIMEOUT_MS * Math.min(record.sends, 4)) return false;
    return lane.ackedSendNumber > record.sendNumber || now - this.#lastAckAtMs >= ACK_TIMEOUT_MS;
  }
}
