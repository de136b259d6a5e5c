import { type Allocate, decodeMessage } from "../../protocol/codec.ts";
import { ensureError, PserverError, retryAfterMs } from "../../protocol/errors.ts";
import { IN_FLIGHT_BYTES_MAX, WINDOW_RECORDS } from "../../protocol/limits.ts";
import {
  type Answers,
  encodeOutcomeRequest,
  parseAnswers,
} from "../../protocol/messages/outcomes.ts";
import type { Position } from "../../protocol/messages/position.ts";
import type { RecordHeader } from "../../protocol/messages/records.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import { BufferPool } from "../../transport/buffers.ts";
import type { Deadline } from "../calls/calls.ts";
import type { ClientStats } from "../client-stats.ts";
import { Outbox, type OutboxCommands, type OutboxListener } from "../core/outbox.ts";
import type { Positions } from "../core/shard-window.ts";
import {
  type BlockUpdate,
  ended,
  type Failure,
  type Fate,
  hasFailed,
  hasUnstored,
  newUpdateCall,
  type UpdateCall,
  type UpdateSize,
} from "../core/update-call.ts";
import {
  ByteProgress,
  type InboxMessage,
  type JournalAck,
  parseJournalAck,
  type Wire,
} from "../wire/wire.ts";

/** How the rejection of a batch begins that is about one of its entries. */
const ENTRY = /^entry (\d+), /;

/** Updates listed in an error; a large tensor has thousands. */
const NAMES_MAX = 64;

/** A call that is over, with what its error is made from. */
interface FinishedCall {
  readonly call: UpdateCall;
  readonly sources: readonly UpdateSource[];
  readonly trainer: string;
}

/**
 * Makes the error of a call that is over; undefined if it has succeeded. The error is the first rejection;
 * else OUTCOME_UNKNOWN, naming the updates that are applied once or not at all; else what ended the call or
 * kept updates from being stored.
 */
function callError(finished: FinishedCall): PserverError | undefined {
  const { call } = finished;
  if (!hasFailed(call)) return undefined;
  if (call.rejected !== undefined && call.rejection !== undefined) {
    return rejectionError(finished, call.rejected, call.rejection);
  }
  return call.unknown > 0 ? unknownError(finished) : unsentError(finished);
}

/** Returns a failure as an error. */
export function toError(failure: Failure): PserverError {
  if (failure instanceof PserverError) return failure;
  return new PserverError(failure.code, failure.message, failure.details);
}

function rejectionError(
  finished: FinishedCall,
  update: BlockUpdate,
  rejection: Failure,
): PserverError {
  const { call, trainer } = finished;
  const { applied, unknown, unsent } = call;
  const { code, message } = rejection;
  const block = blamedBlock(topicOf(finished, update), message);
  const first = new PserverError(
    code,
    `${block === undefined ? describe(finished, update) : describeBlock(block)}: ${message.replace(ENTRY, "")}`,
    { ...rejection.details, ...detailsOf(finished, update, block), trainer },
    { cause: toError(rejection) },
  );
  if (applied + unknown === 0) return first;
  return new PserverError(
    code,
    `${first.message} (other updates of the call: ${applied} applied, ${unknown} unknown, ${unsent} not sent)`,
    { ...first.details, ...rest(finished), ...listed(finished, "unknown", "unknown", unknown) },
    { cause: first },
  );
}

function unknownError(finished: FinishedCall): PserverError {
  const { call, trainer } = finished;
  const { end, unknown } = call;
  const code = end === undefined || end.code === "TIMEOUT" ? "OUTCOME_UNKNOWN" : end.code;
  const first = call.updates.find(({ fate }) => fate === "unknown");
  return new PserverError(
    code,
    `${end === undefined ? "the session ended" : end.message}: ${unknown} block updates, the first ${first && describe(finished, first)}, were sent and are applied once or not at all`,
    { ...listed(finished, "unknown", "unknown", unknown), ...rest(finished), trainer },
    { cause: end && toError(end) },
  );
}

function unsentError(finished: FinishedCall): PserverError {
  const { applied, unsent, obstacle, end: known } = finished.call;
  const end = toError(known ?? WITHOUT_REASON);
  const { code, message, details } = end.code === "TIMEOUT" ? (obstacle ?? end) : end;
  const tail = applied === 0 ? "nothing was applied" : `${applied} were applied`;
  return new PserverError(
    code,
    `${code === end.code ? message : `${end.message}; last: ${message}`}; ${unsent} block updates were not stored, ${tail}`,
    { ...details, ...rest(finished) },
    { cause: end },
  );
}

const WITHOUT_REASON: Failure = {
  code: "INTERNAL",
  message: "block updates were given up without a reason",
  details: {},
};

function rest(finished: FinishedCall): object {
  const { applied, unsent } = finished.call;
  return { ...listed(finished, "applied", "applied", applied), unsent };
}

/**
 * Lists the updates with this fate in the order of the call: their blocks, or the clock. The list stands
 * under `key` of an error's details.
 */
function listed(finished: FinishedCall, key: string, fate: Fate, count: number): object {
  const names: object[] = [];
  for (const update of finished.call.updates) {
    if (names.length === NAMES_MAX) break;
    if (update.fate !== fate) continue;
    const place = placeOf(update);
    for (const about of aboutOf(topicOf(finished, update)).slice(0, NAMES_MAX - names.length)) {
      names.push({ ...about, ...place });
    }
  }
  return count > NAMES_MAX ? { [key]: names, [`${key}Count`]: count } : { [key]: names };
}

/**
 * Returns the block that a rejection is about: the only one of its record, or that of the entry with which the text
 * begins.
 */
function blamedBlock(topic: Topic | undefined, message: string): BlockName | undefined {
  if (topic?.kind !== "blocks") return undefined;
  if (topic.blocks.length === 1) return topic.blocks[0];
  const [, entry] = ENTRY.exec(message) ?? [];
  return entry === undefined ? undefined : topic.blocks[Number(entry)];
}

function detailsOf(
  finished: FinishedCall,
  update: BlockUpdate,
  block: BlockName | undefined,
): object {
  if (block !== undefined) {
    return { parameter: block.parameter, block: block.index, ...placeOf(update) };
  }
  const topic = topicOf(finished, update);
  return { ...(topic?.kind === "clock" ? { step: topic.step } : {}), ...placeOf(update) };
}

function aboutOf(topic: Topic | undefined): readonly object[] {
  if (topic?.kind === "note") return [{ note: true }];
  if (topic?.kind !== "blocks") return [{ step: topic?.step }];
  return topic.blocks.map(({ parameter, index }) => ({ parameter, index }));
}

function placeOf({ shard, n }: BlockUpdate): object {
  return { shard, ...(n > 0 ? { n } : {}) };
}

function topicOf({ sources }: FinishedCall, { index }: BlockUpdate): Topic | undefined {
  return sources[index]?.topic;
}

function describe(finished: FinishedCall, update: BlockUpdate): string {
  const topic = topicOf(finished, update);
  if (topic?.kind === "note") return "note";
  if (topic?.kind !== "blocks") return `end of step ${topic?.step} in shard ${update.shard}`;
  const [first, ...others] = topic.blocks;
  const othersText = others.length === 0 ? "" : ` and ${others.length} others of its record`;
  return `${first === undefined ? "no block" : describeBlock(first)}${othersText}`;
}

function describeBlock({ parameter, index }: BlockName): string {
  return `${parameter} block ${index}`;
}

/**
 * Size of the pool of message buffers, as a multiple of the bytes in flight: PubAcks come in bursts, so all buffers may
 * be free at once, and each is larger than its message.
 */
const POOL_SHARE = 1.25;

/** Dependencies of UpdateSender. */
interface UpdateSenderDeps {
  readonly wire: Wire;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly positions: Positions;
  readonly inFlightBytesMax?: number;
  /** Called when a host says that the session is over. */
  readonly onSessionEnd: (error: PserverError) => void;
  /** Called when a guard has rejected, clipped or set aside what was sent. */
  readonly onGuarded: () => void;
}

/** Options of the updates of one call. */
export interface SendOptions {
  readonly deadline: Deadline;
  /** Whether the call is done when the journal holds every update. */
  readonly stored?: boolean;
  /** Whether updates that came too late for their step are counted instead of failing the call. */
  readonly countsLate?: boolean;
  /** Whether a block that is initialized already counts as applied. */
  readonly countsPresent?: boolean;
}

/** What became of the updates of a call. */
export interface SentUpdates {
  /** How many came too late for their step or round. */
  readonly late: number;
  /** The highest version that one of them has led to. */
  readonly version: number;
}

/** A call under way. */
interface SentCall {
  readonly call: UpdateCall;
  readonly deadline: Deadline;
  /** Blocks that had no fate when the call was last looked at, and whether an update was still to be stored. */
  pending: number;
  wasUnstored: boolean;
  readonly sources: readonly UpdateSource[];
  readonly resolve: (result: SentUpdates) => void;
  readonly reject: (error: PserverError) => void;
  stopListening: () => void;
}

/** Does the I/O of the outbox: it has the connection, the clock, the timer and the memory for messages. */
export class UpdateSender implements OutboxCommands, OutboxListener {
  readonly #deps: UpdateSenderDeps;
  readonly #outbox: Outbox;
  readonly #calls = new Map<number, SentCall>();
  /** By slot: the kept message of the record in flight there, and the last record there. */
  readonly #messages: (Uint8Array | undefined)[] = [];
  readonly #updates: BlockUpdate[] = [];
  readonly #pool: BufferPool;
  readonly #allocate = (bytes: number): Buffer => this.#pool.take(bytes);
  readonly #answersInbox: string;
  readonly #left = new ByteProgress();
  /** Whether the broker has answered since the calls were last looked at. */
  #hasAck = false;
  #callIds = 0;
  #records = 0;
  #resent = 0;
  #timer: NodeJS.Timeout | undefined;

  private constructor(deps: UpdateSenderDeps) {
    const { wire, positions, inFlightBytesMax = IN_FLIGHT_BYTES_MAX } = deps;
    this.#deps = deps;
    this.#pool = new BufferPool(POOL_SHARE * inFlightBytesMax);
    this.#answersInbox = `${wire.inbox}.applied`;
    this.#outbox = new Outbox({
      commands: this,
      listener: this,
      positions,
      inFlightBytesMax,
      windowRecords: WINDOW_RECORDS,
    });
  }

  /** Makes a sender that receives acknowledgements and outcomes, and sends nothing until {@link start}. */
  static open(deps: UpdateSenderDeps): UpdateSender {
    const sender = new UpdateSender(deps);
    const { wire } = deps;
    wire.receive("ack.*", (message) => sender.#onAck(message));
    wire.receive("applied", (message) => sender.#onAnswers(message));
    wire.receive("outcome.*", (message) => sender.#onReply(message));
    wire.listen({
      disconnected: () => sender.#outbox.disconnected(),
      denied: (subject, error) => sender.#onDenied(subject, error),
    });
    return sender;
  }

  /** Sends on after the connection was lost: it is back, and the broker holds the job that was joined. */
  reconnected(): void {
    this.#outbox.reconnected(performance.now());
  }

  /** Bytes of elements without a PubAck. */
  get inFlightBytes(): number {
    return this.#outbox.inFlightBytes;
  }

  /**
   * Sends the updates of one call; resolves when all of them were applied, or stored if that is
   * enough. The arrays behind the sources must not change until then. Returns how many came too late
   * for their step.
   * @throws the first rejection; OUTCOME_UNKNOWN, naming the updates, if the call ends before; what
   * ended the call or kept the updates from being stored if none of them can have been applied.
   */
  send(sources: readonly UpdateSource[], options: SendOptions): Promise<SentUpdates> {
    const { deadline, stored = false, countsLate = false, countsPresent = false } = options;
    const mode = { isDoneWhenStored: stored, countsLate, countsPresent };
    const call = newUpdateCall(++this.#callIds, mode, sources);
    return new Promise((resolve, reject) => {
      const { pending } = call;
      const stopListening = (): void => {};
      const state = { pending, wasUnstored: true, stopListening };
      const sent: SentCall = { call, deadline, sources, resolve, reject, ...state };
      this.#calls.set(call.id, sent);
      if (deadline.ended === undefined) {
        sent.stopListening = deadline.onEnd((error) =>
          this.#outbox.endCall(call, error, performance.now()),
        );
      } else {
        ended(call, deadline.ended);
      }
      this.#outbox.send(call, performance.now());
    });
  }

  /** Sends under this session from now on; numbers begin at 1 again. */
  start(session: number): void {
    this.#outbox.start(session, performance.now());
  }

  /** Sends nothing new until {@link start}. */
  pause(): void {
    this.#outbox.pause();
  }

  /** Stops the timer; nothing is repeated any more. */
  close(): void {
    this.#outbox.pause();
    clearTimeout(this.#timer);
  }

  /** How many records were sent, how often one was sent again, and how many guards have changed. */
  get counts(): Pick<ClientStats, "records" | "resent" | "clipped" | "setAside"> {
    return { records: this.#records, resent: this.#resent, ...this.#outbox.changedByGuards };
  }

  publish(update: BlockUpdate, session: number, done: number): void {
    this.#records += 1;
    const { n, slot, namesVersion } = update;
    const header = { session, n, done, reply: this.#answersInbox };
    try {
      const source = this.#source(update);
      const bytes = source.draft(header, namesVersion, this.#allocate);
      this.#deps.wire.publish(source.subject, bytes, this.#ackInbox(update));
      this.#messages[slot] = bytes;
      this.#updates[slot] = update;
    } catch (error) {
      this.#outbox.publishFailed(update, ensureError(error));
    }
  }

  repeat(update: BlockUpdate): void {
    this.#resent += 1;
    const bytes = this.#messages[update.slot];
    try {
      if (bytes === undefined) throw new PserverError("INTERNAL", "a repeated message is not kept");
      this.#deps.wire.publish(this.#source(update).subject, bytes, this.#ackInbox(update));
    } catch (error) {
      this.#outbox.publishFailed(update, ensureError(error));
    }
  }

  release({ slot }: BlockUpdate, isReusable: boolean): void {
    const bytes = this.#messages[slot];
    this.#messages[slot] = undefined;
    if (isReusable && bytes !== undefined) this.#pool.giveBack(bytes);
  }

  askOutcomes(shard: number, session: number, numbers: readonly number[], at: Position): void {
    const { wire, subjects, trainer } = this.#deps;
    try {
      wire.publish(
        subjects.outcome(shard, trainer),
        encodeOutcomeRequest({ session, numbers, ...at }),
        `${wire.inbox}.outcome.${shard}`,
      );
    } catch (error) {
      this.#outbox.askNotPublished(shard, numbers, ensureError(error));
    }
  }

  ping(sendNumber: number): void {
    this.#deps.wire.flush().then(
      () => this.#outbox.read(sendNumber, performance.now()),
      // The connection is lost, and everything is published again when it is back.
      () => undefined,
    );
  }

  setTimer(atMs: number): void {
    const tick = (): void => {
      this.#noteProgress();
      this.#outbox.tick(performance.now());
    };
    this.#timer = setTimeout(tick, atMs - performance.now());
    this.#timer.unref();
  }

  callOver(call: UpdateCall): void {
    const sent = this.#calls.get(call.id);
    if (sent === undefined) return;
    this.#calls.delete(call.id);
    sent.stopListening();
    const { trainer } = this.#deps;
    const error = callError({ call, sources: sent.sources, trainer });
    if (error === undefined) sent.resolve({ late: call.late, version: call.version });
    else sent.reject(error);
  }

  sessionOver(failure: Failure): void {
    this.#deps.onSessionEnd(toError(failure));
  }

  /** Tells calls that they have made progress: updates have their fate, or come nearer to the broker. */
  #noteProgress(): void {
    const hasSent = this.#left.take(this.#deps.wire.leftBytes) || this.#hasAck;
    this.#hasAck = false;
    for (const sent of this.#calls.values()) {
      const { call, deadline, pending, wasUnstored } = sent;
      if (call.pending !== pending || (hasSent && wasUnstored)) deadline.progressed();
      sent.pending = call.pending;
      if (hasSent) sent.wasUnstored &&= hasUnstored(call);
    }
  }

  #source({ call, index }: BlockUpdate): UpdateSource {
    const source = this.#calls.get(call.id)?.sources[index];
    if (source === undefined) throw new PserverError("INTERNAL", "an update has no call");
    return source;
  }

  #ackInbox({ slot, serial }: BlockUpdate): string {
    return `${this.#deps.wire.inbox}.ack.${slot}-${serial.toString(36)}`;
  }

  #onAck(message: InboxMessage): void {
    const slot = Number.parseInt(message.token, 10);
    const serial = Number.parseInt(message.token.slice(message.token.indexOf("-") + 1), 36);
    const nowMs = performance.now();
    const ack = readAck(message, this.#deps.subjects);
    if (ack.kind === "stored") {
      this.#hasAck = true;
      this.#outbox.stored(slot, serial, ack.shard, ack.position, nowMs);
    } else {
      this.#outbox.refused(slot, serial, ack.error, ack.kind === "later", nowMs);
    }
  }

  /** Takes answers that nobody asked for: each is to the first copy of its record, or to a repeat. */
  #onAnswers(message: InboxMessage): void {
    if (message.noResponders) return;
    const answers = readAnswers(message);
    // A damaged message counts as a lost one: the outcome will be asked for.
    if (answers instanceof PserverError) return;
    this.#take(answers, false, performance.now());
  }

  #take(answers: Answers, isReply: boolean, nowMs: number): void {
    const before = this.#outbox.guarded;
    this.#outbox.answered(answers, isReply, nowMs);
    if (this.#outbox.guarded > before) this.#deps.onGuarded();
  }

  /** Takes the reply to a request for outcomes; its subject ends in the shard. */
  #onReply(message: InboxMessage): void {
    const shard = Number(message.token);
    const answers = message.noResponders
      ? new PserverError("NO_OWNER", `no host serves shard ${shard}`)
      : readAnswers(message);
    const nowMs = performance.now();
    if (!(answers instanceof PserverError)) this.#take(answers, true, nowMs);
    else this.#outbox.askFailed(shard, answers, retryAfterMs(answers), nowMs);
  }

  #onDenied(subject: string, error: PserverError): void {
    for (const update of [...this.#updates]) {
      const source = this.#calls.get(update.call.id)?.sources[update.index];
      if (source?.subject === subject) this.#outbox.denied(update, error, performance.now());
    }
  }
}

function readAck(message: InboxMessage, subjects: JobSubjects): JournalAck {
  try {
    return parseJournalAck(message, subjects);
  } catch (error) {
    return { kind: "refused", error: ensureError(error) };
  }
}

function readAnswers(message: InboxMessage): Answers | PserverError {
  try {
    return parseAnswers(decodeMessage(message.data));
  } catch (error) {
    return ensureError(error);
  }
}

/** A block of a parameter. */
interface BlockName {
  readonly parameter: string;
  readonly index: number;
}

/** What a record is about: blocks; in a clock, all steps up to one; in a note, no part of the model. */
export type Topic =
  | { readonly kind: "blocks"; readonly blocks: readonly BlockName[] }
  | { readonly kind: "clock"; readonly step: number }
  | { readonly kind: "note" };

/** What a record is made from: where it goes, and how its message is made. */
export interface UpdateSource extends UpdateSize {
  readonly subject: string;
  readonly topic: Topic;
  /**
   * Makes the message with this header, in memory of `allocate`. If `namesVersion`, it names the version of
   * the block that a gradient was made from. Copies the tensor's bytes, once.
   */
  draft(header: RecordHeader, namesVersion: boolean, allocate?: Allocate): Uint8Array;
}
