import { reactionToRejection } from "../../protocol/errors.ts";
import type { Answers, Outcome } from "../../protocol/messages/outcomes.ts";
import type { Position } from "../../protocol/messages/position.ts";
import { LinkWindow } from "./link-window.ts";
import {
  ASK_AFTER_MS,
  type OutcomeCommands,
  OutcomeTracker,
  type RecordSettler,
} from "./outcome-tracker.ts";
import { InFlight, type Positions, ShardWindow } from "./shard-window.ts";
import {
  applied,
  type BlockUpdate,
  ended,
  type Failure,
  isOver,
  isStoredNowhere,
  rejected,
  resetUpdate,
  settled,
  type UpdateCall,
  unknown,
  unsent,
} from "./update-call.ts";

/**
 * Commands of the outbox to its I/O layer. They are called while the outbox takes an event, and return
 * nothing. None may raise an event before it returns, except that `publish` and `repeat` report their failure
 * by `publishFailed`.
 */
export interface OutboxCommands extends OutcomeCommands {
  /**
   * Makes the message of an update under its number `update.n` in this session, and publishes it with the
   * token of `update.slot` and `update.serial`. `done` stands in the message: the number up to which the
   * trainer needs no outcomes any more. The I/O layer keeps the message until `release`.
   */
  publish(update: BlockUpdate, session: number, done: number): void;
  /** Publishes the kept message of an update again, unchanged, with the same token. */
  repeat(update: BlockUpdate): void;
  /** Releases the kept message; its memory can be used again at once if `isReusable`. */
  release(update: BlockUpdate, isReusable: boolean): void;
  /**
   * Sends a PING; raises `read` with this number when it is answered. Called only while no PING is without an answer on
   * the present connection.
   */
  ping(sendNumber: number): void;
  /** Raises `tick` at this time. Called only while no tick is set. */
  setTimer(atMs: number): void;
}

/**
 * What the outbox tells the rest of the core, at the end of an event, when the outbox's state is consistent.
 */
export interface OutboxListener {
  /** Called when every update of the call has its fate. */
  callOver(call: UpdateCall, nowMs: number): void;
  /** Called when a host says that the session is over: SUPERSEDED or REJOIN. */
  sessionOver(failure: Failure, nowMs: number): void;
}

/** How long a PubAck may take, once the broker has read the record, before the record is published again. */
const ACK_TIMEOUT_MS = 2_000;
/** So many bytes in flight are repeated without growing delays: no link is so slow that they fill it. */
const LITTLE_BYTES = 256 * 1024;
const RETRY_MAX_MS = 1_000;
/** Time between two checks of the records without an answer. */
const TICK_MS = 100;

/** Dependencies of Outbox. */
interface OutboxDeps {
  readonly commands: OutboxCommands;
  readonly listener: OutboxListener;
  readonly positions: Positions;
  /** Bytes of elements that may be without a PubAck, however fast the link is. */
  readonly inFlightBytesMax: number;
  /** Numbers of one shard that may be open. */
  readonly windowRecords: number;
}

/**
 * Publishes journal records and learns what became of them. It reads no clock: events that need the time
 * carry it as `nowMs`.
 *
 * A waiting update becomes a message only when both windows admit it: that of bytes in flight, which follows the speed
 * of the link, and that of numbers of its shard. A record is repeated until its PubAck and no longer: after a
 * reconnect, because what is published while disconnected is lost; when the broker has read it and its PubAck has not
 * been sent for 2 s; and, with growing delays, while the journal is full or does not exist yet. Repeats are harmless: a
 * shard applies each number once.
 *
 * The broker handles the messages of a connection in order. So the answer to a PING shows that it has read what was
 * published before, and that all that it had sent by then has come. While a record, or its PubAck, is on a slow link,
 * no time runs.
 *
 * An update waits, or has an open number, or has its fate. A record without a PubAck is in flight, even if it
 * was given up, until the broker has answered or can no longer receive it.
 */
export class Outbox implements RecordSettler {
  readonly #deps: OutboxDeps;
  readonly #windows: (ShardWindow | undefined)[] = [];
  /** The windows in the order of their turns. */
  readonly #turns: ShardWindow[] = [];
  readonly #inFlight: InFlight;
  readonly #tracker: OutcomeTracker;
  readonly #over: UpdateCall[] = [];
  /** An end of the session that was seen during this event; reported when the event is over. */
  #sessionEnd: Failure | undefined;
  #turn = 0;
  #waiting = 0;
  #open = 0;
  #clipped = 0;
  #setAside = 0;
  #guarded = 0;
  #session = 0;
  #sendNumber = 0;
  /** Publications before this one are known to have been read by the broker. */
  #readSendNumber = 0;
  /** The last publication before the PING without an answer, and when that was sent; Infinity if there is none. */
  #pingSendNumber = 0;
  #pingAtMs = Number.POSITIVE_INFINITY;
  /** What the broker had sent up to this time has come. */
  #heardUntilMs = Number.NEGATIVE_INFINITY;
  readonly #link: LinkWindow;
  /** Bytes with a PubAck. */
  #storedBytes = 0;
  #isPaused = true;
  #isConnected = true;
  #hasTimer = false;

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
    this.#inFlight = new InFlight();
    this.#link = new LinkWindow(deps.inFlightBytesMax);
    this.#tracker = new OutcomeTracker({ ...deps, settler: this });
  }

  /** Bytes without a PubAck. */
  get inFlightBytes(): number {
    return this.#inFlight.bytes;
  }

  /**
   * Takes a call with updates to send. `callOver` is called when each update has its fate: at once if the
   * call has no updates, or if its `end` is already known.
   */
  send(call: UpdateCall, nowMs: number): void {
    for (const update of call.updates) {
      if (call.end === undefined) this.#window(update.shard).waiting.append(update);
      else unsent(update, this.#isConnected ? undefined : DISCONNECTED);
    }
    if (call.end === undefined) this.#waiting += call.updates.length;
    this.#noteOver(call);
    this.#finish(nowMs);
  }

  /** Ends a call, at its deadline for instance: its pending updates are given up. */
  endCall(call: UpdateCall, reason: Failure, nowMs: number): void {
    if (isOver(call)) return;
    ended(call, reason);
    const obstacle = this.#isConnected ? undefined : DISCONNECTED;
    for (const update of call.updates) {
      if (update.fate !== "pending") continue;
      if (update.isOpen) this.giveUp(update, reason);
      else this.#dropWaiting(update, obstacle);
    }
    this.#finish(nowMs);
  }

  /** Begins a session: numbers begin at 1 again, and nothing is in flight. */
  start(session: number, nowMs: number): void {
    this.#session = session;
    for (let first = this.#inFlight.first; first !== undefined; first = this.#inFlight.first) {
      this.#leaveFlight(first, false);
    }
    for (const window of this.#turns) this.#restartWindow(window);
    this.#isPaused = false;
    this.#finish(nowMs);
  }

  /** Ends the session: nothing is published until `start`. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Notes that the broker has stored a record. */
  stored(slot: number, serial: number, shard: number, at: Position, nowMs: number): void {
    const update = this.#inFlight.get(slot, serial);
    if (update === undefined) return;
    this.#noteAck(update, nowMs);
    this.#measure(update, nowMs);
    if (shard !== update.shard) {
      this.#reject(update, otherShard(shard, update.shard));
      this.#finish(nowMs);
      return;
    }
    this.#deps.positions.note(shard, at);
    const window = this.#window(update.shard);
    this.#leaveFlight(update, update.sends === 1);
    if (update.isOpen) {
      update.storedGeneration = at.generation;
      update.storedSeq = at.seq;
      update.askAtMs = nowMs + ASK_AFTER_MS;
      window.stored.append(update);
      if (update.call.mode.isDoneWhenStored) {
        applied(update);
        this.#noteOver(update.call);
      }
    }
    this.#finish(nowMs);
  }

  /** Notes that the broker has refused a record; the same record can be stored later if `isRetryable`. */
  refused(
    slot: number,
    serial: number,
    failure: Failure,
    isRetryable: boolean,
    nowMs: number,
  ): void {
    const update = this.#inFlight.get(slot, serial);
    if (update === undefined) return;
    this.#noteAck(update, nowMs);
    update.refusals += 1;
    if (!update.isOpen) {
      this.#leaveFlight(update, false);
    } else if (isRetryable) {
      update.retryAtMs = nowMs + update.retryDelayMs;
      update.retryDelayMs = Math.min(update.retryDelayMs * 2, RETRY_MAX_MS);
      update.obstacle = failure;
    } else {
      this.#reject(update, failure);
    }
    this.#finish(nowMs);
  }

  /** Notes that the broker has answered the PING of this number. */
  read(sendNumber: number, nowMs: number): void {
    if (this.#pingAtMs === Number.POSITIVE_INFINITY || sendNumber !== this.#pingSendNumber) return;
    this.#readSendNumber = Math.max(this.#readSendNumber, sendNumber + 1);
    this.#heardUntilMs = this.#pingAtMs;
    this.#pingAtMs = Number.POSITIVE_INFINITY;
    this.#finish(nowMs);
  }

  /** Notes that the `publish` or `repeat` of an update has failed; raised before that command returns. */
  publishFailed(update: BlockUpdate, failure: Failure): void {
    update.sends -= 1;
    if (update.sends > 0) {
      this.giveUp(update, failure);
      return;
    }
    // Nothing was handed to the connection, so the number stays free.
    this.#window(update.shard).takeBack(update);
    this.#open -= 1;
    this.#inFlight.remove(update);
    update.hasMessage = false;
    rejected(update, failure);
    this.#noteOver(update.call);
  }

  /**
   * Takes outcomes from an owner; `isReply` if they were asked for. Outcomes of another session are ignored.
   */
  answered(answers: Answers, isReply: boolean, nowMs: number): void {
    if (answers.session !== this.#session) return;
    this.#tracker.take(this.#windows[answers.shard], answers, isReply);
    this.#finish(nowMs);
  }

  /** Takes an error in answer to a request for outcomes; `retryAfterMs` is how long it says to wait. */
  askFailed(shard: number, failure: Failure, retryAfterMs: number, nowMs: number): void {
    const window = this.#windows[shard];
    if (window === undefined) return;
    this.#tracker.askFailed(window, failure, retryAfterMs);
    this.#finish(nowMs);
  }

  /**
   * Notes that the broker's permissions forbid what was published for an update; ignored if the update is no
   * longer in flight.
   */
  denied(update: BlockUpdate, failure: Failure, nowMs: number): void {
    if (update.slot < 0) return;
    this.#reject(update, failure);
    this.#finish(nowMs);
  }

  /** Notes that the connection is lost: what is published from now on does not arrive. */
  disconnected(): void {
    this.#isConnected = false;
    this.#pingAtMs = Number.POSITIVE_INFINITY;
    this.#link.reset();
    // A record that was given up and has no PubAck yet will never get one.
    let next = this.#inFlight.first;
    while (next !== undefined) {
      const update = next;
      next = update.next;
      if (!update.isOpen) this.#leaveFlight(update, false);
    }
  }

  /** Notes that the connection is back. */
  reconnected(nowMs: number): void {
    this.#isConnected = true;
    const last = this.#sendNumber;
    let next = this.#inFlight.first;
    while (next !== undefined && next.sendNumber <= last) {
      const update = next;
      next = update.next;
      if (update.isOpen) this.#repeat(update, nowMs);
    }
    for (const window of this.#turns) {
      for (let one = window.stored.first; one !== undefined; one = one.next) one.askAtMs = 0;
      window.askedAtMs = Number.NEGATIVE_INFINITY;
    }
    this.#finish(nowMs);
  }

  /** Raised at the time of `setTimer`. */
  tick(nowMs: number): void {
    this.#hasTimer = false;
    if (this.#isConnected && !this.#isPaused) {
      const last = this.#sendNumber;
      let next = this.#inFlight.first;
      while (next !== undefined && next.sendNumber <= last) {
        const update = next;
        next = update.next;
        this.#check(update, nowMs);
      }
      for (const window of this.#turns) this.#tracker.ask(window, this.#session, nowMs);
      if (this.#inFlight.count > 0 && this.#pingAtMs === Number.POSITIVE_INFINITY) {
        this.#pingAtMs = nowMs;
        this.#pingSendNumber = this.#sendNumber;
        this.#deps.commands.ping(this.#sendNumber);
      }
    }
    this.#finish(nowMs);
  }

  /** Notes that a request for outcomes could not be published: the records asked for are given up. */
  askNotPublished(shard: number, numbers: readonly number[], failure: Failure): void {
    for (const n of numbers) {
      const update = this.#windows[shard]?.get(n);
      if (update !== undefined) this.giveUp(update, failure);
    }
  }

  settle(update: BlockUpdate, outcome: Outcome): void {
    // The outcome may be faster than the PubAck.
    this.#closeNumber(update, update.sends === 1);
    const { code, guard } = outcome;
    if (guard?.action === "clip") this.#clipped += 1;
    else if (guard?.action === "set-aside") this.#setAside += 1;
    if (guard !== undefined || code === "GUARDED") this.#guarded += 1;
    if (update.fate !== "pending") return;
    const isResentUnseen = code !== undefined && reactionToRejection(code) === "resend-unseen";
    if (isResentUnseen && update.namesVersion) {
      // A shard that has fallen back no longer knows the version.
      update.namesVersion = false;
      this.#putBack(update);
      return;
    }
    settled(update, outcome);
    this.#noteOver(update.call);
  }

  /** How many records guards have clipped and set aside. */
  get changedByGuards(): { readonly clipped: number; readonly setAside: number } {
    return { clipped: this.#clipped, setAside: this.#setAside };
  }

  /** How many records guards have decided about, those that they have rejected included. */
  get guarded(): number {
    return this.#guarded;
  }

  giveUp(update: BlockUpdate, reason: Failure): void {
    const window = this.#window(update.shard);
    if (update.storedGeneration > 0) window.stored.remove(update);
    window.close(update);
    this.#open -= 1;
    // It stays in flight, where its bytes count: they may still be in the buffers of the connection.
    if (update.hasMessage) this.#release(update, false);
    if (update.fate !== "pending") return;
    ended(update.call, reason);
    if (isStoredNowhere(update)) unsent(update, update.obstacle);
    else unknown(update);
    this.#noteOver(update.call);
  }

  endSession(failure: Failure): void {
    this.#sessionEnd ??= failure;
  }

  #window(shard: number): ShardWindow {
    let window = this.#windows[shard];
    if (window === undefined) {
      window = new ShardWindow(shard, this.#deps.windowRecords);
      this.#windows[shard] = window;
      this.#turns.push(window);
    }
    return window;
  }

  /** Ends an event: publishes what the windows admit, and tells the listener what is over. */
  #finish(nowMs: number): void {
    const sessionEnd = this.#sessionEnd;
    this.#sessionEnd = undefined;
    if (sessionEnd !== undefined) this.#deps.listener.sessionOver(sessionEnd, nowMs);
    this.#pump(nowMs);
    if (!this.#hasTimer && !this.#isPaused && this.#inFlight.count + this.#open > 0) {
      this.#hasTimer = true;
      this.#deps.commands.setTimer(nowMs + TICK_MS);
    }
    for (let call = this.#over.shift(); call !== undefined; call = this.#over.shift()) {
      this.#deps.listener.callOver(call, nowMs);
    }
  }

  #noteOver(call: UpdateCall): void {
    if (isOver(call)) this.#over.push(call);
  }

  /** Publishes what the windows admit, one update of each shard in turn. */
  #pump(nowMs: number): void {
    const turns = this.#turns;
    let idle = 0;
    while (this.#waiting > 0 && !this.#isPaused && this.#isConnected && idle < turns.length) {
      const window = turns[this.#turn % turns.length];
      const first = window?.hasRoom ? window.waiting.first : undefined;
      if (window === undefined || first === undefined) {
        this.#turn += 1;
        idle += 1;
      } else if (first.call.rejection !== undefined) {
        this.#dropWaiting(first, undefined);
      } else {
        // The shard keeps its turn, so that a large update is not overtaken for ever by small ones.
        if (!this.#inFlight.fits(first.dataBytes, this.#link.bytes)) break;
        this.#turn += 1;
        idle = 0;
        this.#publishFirst(window, first, nowMs);
      }
    }
  }

  #publishFirst(window: ShardWindow, update: BlockUpdate, nowMs: number): void {
    window.waiting.remove(update);
    this.#waiting -= 1;
    window.open(update);
    this.#open += 1;
    this.#inFlight.add(update);
    this.#notePublished(update, nowMs);
    update.hasMessage = true;
    this.#deps.commands.publish(update, this.#session, window.done);
  }

  #repeat(update: BlockUpdate, nowMs: number): void {
    this.#inFlight.moveToEnd(update);
    this.#notePublished(update, nowMs);
    this.#deps.commands.repeat(update);
  }

  #notePublished(update: BlockUpdate, nowMs: number): void {
    this.#sendNumber += 1;
    update.sendNumber = this.#sendNumber;
    update.sends += 1;
    update.sentAtMs = nowMs;
    update.storedBytesBefore = this.#storedBytes;
    update.readAtMs = Number.POSITIVE_INFINITY;
    update.retryAtMs = Number.POSITIVE_INFINITY;
  }

  /** Repeats a record in flight if its repeat is due. */
  #check(update: BlockUpdate, nowMs: number): void {
    const isLost = this.#isLost(update, nowMs);
    if (!update.isOpen) {
      if (isLost) this.#leaveFlight(update, false);
    } else if (Number.isFinite(update.retryAtMs)) {
      if (nowMs >= update.retryAtMs) this.#repeat(update, nowMs);
    } else if (isLost) {
      this.#repeat(update, nowMs);
    }
  }

  /** Notes that the broker has answered to a record. */
  #noteAck({ shard, sends, sendNumber }: BlockUpdate, nowMs: number): void {
    const window = this.#window(shard);
    window.ackedAtMs = nowMs;
    // Of a record that was repeated, nobody knows which copy was answered.
    if (sends !== 1) return;
    window.ackedSendNumber = Math.max(window.ackedSendNumber, sendNumber);
    this.#readSendNumber = Math.max(this.#readSendNumber, sendNumber);
  }

  /** Notes how much was stored since a record was published, which itself is stored now. */
  #measure({ sends, dataBytes, sentAtMs, storedBytesBefore }: BlockUpdate, nowMs: number): void {
    this.#storedBytes += dataBytes;
    if (sends !== 1) return;
    this.#link.note(this.#storedBytes - storedBytesBefore, nowMs - sentAtMs, nowMs);
  }

  /**
   * Returns whether a record counts as lost: the broker has read it, and has not sent its PubAck within 2 s after that,
   * as its journal may have no leader. A journal answers in order, so the time begins anew with each answer of the
   * journal to an earlier record; and unless little is in flight it grows with each copy, so that a slow broker is not
   * given more than it can store.
   */
  #isLost(update: BlockUpdate, nowMs: number): boolean {
    const { shard, sendNumber, sends } = update;
    if (sendNumber < this.#readSendNumber) update.readAtMs = Math.min(update.readAtMs, nowMs);
    const { ackedSendNumber, ackedAtMs } = this.#window(shard);
    const isOvertaken = sendNumber < ackedSendNumber;
    const isShort = isOvertaken || this.#inFlight.bytes <= LITTLE_BYTES;
    const sinceMs = isOvertaken ? update.readAtMs : Math.max(update.readAtMs, ackedAtMs);
    const waits = isShort ? 1 : Math.min(sends, 4);
    return this.#heardUntilMs - sinceMs >= ACK_TIMEOUT_MS * waits;
  }

  /** Gives an update the fate `rejected` for a reason found before the fold: it will never be applied. */
  #reject(update: BlockUpdate, failure: Failure): void {
    if (update.isOpen) this.#closeNumber(update, false);
    else this.#leaveFlight(update, false);
    if (update.fate !== "pending") return;
    rejected(update, failure);
    this.#noteOver(update.call);
  }

  #closeNumber(update: BlockUpdate, isReusable: boolean): void {
    const window = this.#window(update.shard);
    if (update.storedGeneration > 0) window.stored.remove(update);
    window.close(update);
    this.#open -= 1;
    this.#leaveFlight(update, isReusable);
  }

  #leaveFlight(update: BlockUpdate, isReusable: boolean): void {
    if (update.hasMessage) this.#release(update, isReusable);
    if (update.slot >= 0) this.#inFlight.remove(update);
  }

  #release(update: BlockUpdate, isReusable: boolean): void {
    update.hasMessage = false;
    this.#deps.commands.release(update, isReusable);
  }

  #dropWaiting(update: BlockUpdate, obstacle: Failure | undefined): void {
    this.#window(update.shard).waiting.remove(update);
    this.#waiting -= 1;
    unsent(update, obstacle);
    this.#noteOver(update.call);
  }

  /** Puts an update back in front of all waiting ones: it has had its turn already. */
  #putBack(update: BlockUpdate): void {
    resetUpdate(update);
    this.#window(update.shard).waiting.prepend(update);
    this.#waiting += 1;
  }

  /**
   * Settles the open records of the ended session: one that is known not to have been applied is sent again;
   * of any other the outcome is unknown.
   */
  #restartWindow(window: ShardWindow): void {
    for (let n = window.last; n > window.done; n--) {
      const update = window.get(n);
      if (update === undefined) continue;
      const isSentAgain = isStoredNowhere(update) || update.isRejoined;
      this.#closeNumber(update, false);
      if (update.fate !== "pending") continue;
      if (isSentAgain) {
        this.#putBack(update);
      } else {
        unknown(update);
        this.#noteOver(update.call);
      }
    }
    window.restart();
  }
}

/** The obstacle of updates while there is no connection. */
const DISCONNECTED: Failure = {
  code: "NO_BROKER",
  message:
    "the connection to the broker is lost, or no host has answered since it is back; the client goes on trying to reconnect",
  details: {},
};

function otherShard(received: number, expected: number): Failure {
  const message = `stored in the journal of shard ${received}; expected that of shard ${expected}`;
  return { code: "BAD_MESSAGE", message, details: { expected, received } };
}
