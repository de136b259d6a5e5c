// The outbox as a machine of scripts, and a player that raises every event that an I/O layer can raise.

import {
  Outbox,
  type OutboxCommands,
  type OutboxListener,
} from "../../../src/client/core/outbox.ts";
import { Positions, type PositionsListener } from "../../../src/client/core/shard-window.ts";
import {
  type BlockUpdate,
  ended,
  type Failure,
  newUpdateCall,
  type UpdateCall,
} from "../../../src/client/core/update-call.ts";

import { type ErrorCode, isErrorCode } from "../../../src/protocol/errors.ts";
import type { Outcome } from "../../../src/protocol/messages/outcomes.ts";
import type { Position } from "../../../src/protocol/messages/position.ts";
import type { Random } from "../../simulation/random.ts";
import { type Machine, type Player, pickWord, type Recorder, toLine } from "./script.ts";

const FATES = {
  pending: "p",
  applied: "a",
  late: "l",
  rejected: "r",
  unknown: "k",
  unsent: "u",
} as const;

/** An error with what the core reads of it; 0 and -1 stand for what it does not say. */
export function failureOf(code: string, generation = 0, seq = -1, received = 0): Failure {
  if (!isErrorCode(code)) throw new Error(`${code} is no code`);
  const expected = {
    ...(generation > 0 ? { generation } : {}),
    ...(seq >= 0 ? { seq } : {}),
  };
  return { code, message: code, details: { expected, ...(received > 0 ? { received } : {}) } };
}

/** The outbox, given events as lines. Settings: `outbox <bytes in flight> <numbers of a shard>`. */
export class OutboxMachine implements Machine, OutboxCommands, OutboxListener, PositionsListener {
  readonly #recorder: Recorder;
  readonly #outbox: Outbox;
  readonly #calls = new Map<number, UpdateCall>();

  constructor(settings: string, recorder: Recorder) {
    const [, inFlightBytesMax = 0, windowRecords = 0] = settings.split(" ").map(Number);
    const positions = new Positions(this);
    this.#recorder = recorder;
    const limits = { inFlightBytesMax, windowRecords };
    this.#outbox = new Outbox({ commands: this, listener: this, positions, ...limits });
  }

  take(event: string): void {
    const [verb = "", ...words] = event.split(" ");
    const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = words.map(Number);
    const text = (at: number): string => words[at] ?? "";
    switch (verb) {
      case "send":
        this.#send(words);
        break;
      case "end":
        this.#outbox.endCall(this.#call(a), failureOf(text(1)), c);
        break;
      case "start":
        this.#outbox.start(a, b);
        break;
      case "pause":
        this.#outbox.pause();
        break;
      case "stored":
        this.#outbox.stored(a, b, c, { generation: d, seq: e }, f);
        break;
      case "refused":
        this.#outbox.refused(a, b, failureOf(text(2)), d === 1, e);
        break;
      case "answered": {
        const answers = { shard: a, generation: b, session: c, outcomes: outcomesOf(words) };
        this.#outbox.answered(answers, d === 1, e);
        break;
      }
      case "ask-failed":
        this.#outbox.askFailed(a, failureOf(text(1), d, e, Number(text(6))), c, f);
        break;
      case "denied":
        this.#outbox.denied(this.#update(a, b), failureOf("DENIED"), c);
        break;
      case "disconnected":
        this.#outbox.disconnected();
        break;
      case "reconnected":
        this.#outbox.reconnected(a);
        break;
      case "tick":
        this.#outbox.tick(a);
        break;
      case "read":
        this.#outbox.read(a, b);
        break;
      default:
        throw new Error(`no event: ${event}`);
    }
  }

  publish(update: BlockUpdate, session: number, done: number): void {
    const { n, slot, serial, namesVersion } = update;
    this.#do(update, "publish", session, n, done, slot, serial, namesVersion);
  }

  repeat(update: BlockUpdate): void {
    this.#do(update, "repeat");
  }

  release(update: BlockUpdate, isReusable: boolean): void {
    this.#do(update, "release", isReusable);
  }

  askOutcomes(shard: number, session: number, numbers: readonly number[], at: Position): void {
    const { generation, seq } = at;
    const count = numbers.length;
    const command = ["ask", shard, session, generation, seq, count, ...numbers];
    const failed = this.#recorder.command(...command);
    if (failed) this.#outbox.askNotPublished(shard, numbers, failureOf(failed[1] ?? ""));
  }

  ping(sendNumber: number): void {
    this.#recorder.command("ping", sendNumber);
  }

  setTimer(atMs: number): void {
    this.#recorder.command("timer", atMs);
  }

  callOver(call: UpdateCall): void {
    const { rejected, rejection, obstacle, end, applied, late, unknown, unsent } = call;
    const codes = [rejection, obstacle, end].map((failure) => failure?.code ?? "-");
    const fates = call.updates.map(({ fate }) => FATES[fate]).join("");
    const counts = [applied, late, unknown, unsent];
    this.#recorder.command(
      "over",
      call.id,
      rejected?.index ?? -1,
      ...codes,
      ...counts,
      `=${fates}`,
    );
  }

  sessionOver({ code, details }: Failure): void {
    this.#recorder.command("session-over", code, Number(details["received"] ?? 0));
    // As the session has the outbox do.
    if (code === "REJOIN") this.#outbox.pause();
  }

  journalReplaced(shard: number, { generation, seq }: Position): void {
    this.#recorder.command("replaced", shard, generation, seq);
  }

  #send(words: readonly string[]): void {
    const [id = 0, nowMs = 0, stored, late, present] = words.map(Number);
    const sizes = words.slice(6).map((word) => {
      const [shard = 0, dataBytes = 0, namesVersion, blocks = 1] = word.split(":").map(Number);
      return { shard, blocks, dataBytes, namesVersion: namesVersion === 1 };
    });
    const mode = {
      isDoneWhenStored: stored === 1,
      countsLate: late === 1,
      countsPresent: present === 1,
    };
    const call = newUpdateCall(id, mode, sizes);
    this.#calls.set(id, call);
    if (words[5] !== "-") ended(call, failureOf(words[5] ?? ""));
    this.#outbox.send(call, nowMs);
  }

  #do(update: BlockUpdate, verb: string, ...words: readonly (number | boolean)[]): void {
    const failed = this.#recorder.command(verb, update.call.id, update.index, ...words);
    if (failed) this.#outbox.publishFailed(update, failureOf(failed[1] ?? ""));
  }

  #call(id: number): UpdateCall {
    const call = this.#calls.get(id);
    if (call === undefined) throw new Error(`no call ${id}`);
    return call;
  }

  #update(call: number, index: number): BlockUpdate {
    const update = this.#call(call).updates[index];
    if (update === undefined) throw new Error(`no update ${call} ${index}`);
    return update;
  }
}

/** Outcomes of an `answered` event: from the seventh word on, `<n>:<seq>:<code or ->`. */
function outcomesOf(words: readonly string[]): Outcome[] {
  return words.slice(6).map((word) => {
    const [n, seq, code = "-"] = word.split(":");
    const header = { n: Number(n), seq: Number(seq), version: 1 };
    return isErrorCode(code) ? { ...header, code } : header;
  });
}

/** A record that was published and whose PubAck may still come. */
interface SentRecord {
  readonly call: number;
  readonly index: number;
  readonly shard: number;
  readonly session: number;
  readonly n: number;
  readonly slot: number;
  readonly serial: number;
  seq: number;
}

const SHARDS = 3;
const OUTCOMES: Readonly<Record<string, number>> = {
  "-": 60,
  LATE: 6,
  ALREADY_INITIALIZED: 4,
  BAD_VALUE: 8,
  STALE_EPOCH: 3,
  REJOIN: 3,
  SUPERSEDED: 2,
  SETTLED: 2,
};
const REFUSALS: Readonly<Record<string, number>> = {
  JOURNAL_FULL: 6,
  NO_OWNER: 3,
  JETSTREAM_UNAVAILABLE: 2,
  TOO_LARGE: 1,
  BAD_MESSAGE: 1,
};
const ASK_ERRORS: Readonly<Record<string, number>> = {
  NO_OWNER: 4,
  BUSY: 3,
  JOURNAL_REPLACED: 3,
  JOURNAL_LOST: 3,
  JOURNAL_DAMAGED: 1,
  BAD_MESSAGE: 2,
  REJOIN: 1,
  SUPERSEDED: 1,
};
const ENDS: Readonly<Record<string, number>> = { TIMEOUT: 3, ABORTED: 1, CLOSED: 1 };

const CALM = { send: 14, stored: 16, refused: 5, answered: 16, tick: 18, read: 18, end: 3 };
const RARE = { "ask-failed": 4, denied: 1, connection: 2, pause: 1 };
/**
 * How often each event comes: as usual; with a journal that stays full; with a broker that is silent, while little or
 * much is in flight; with PubAcks that get lost; with owners that answer with errors alone.
 */
const WEIGHTS = {
  calm: { ...CALM, ...RARE },
  full: { ...CALM, ...RARE, send: 6, stored: 2, refused: 40, tick: 50, end: 1 },
  silent: {
    ...CALM,
    ...RARE,
    send: 6,
    stored: 4,
    answered: 3,
    tick: 60,
    read: 40,
    connection: 4,
    end: 1,
  },
  slow: {
    ...CALM,
    ...RARE,
    send: 12,
    stored: 4,
    answered: 3,
    tick: 60,
    read: 3,
    connection: 1,
    end: 0,
  },
  overtaken: { ...CALM, ...RARE, read: 40, refused: 0, answered: 1, stored: 30, tick: 50, end: 0 },
  failing: { ...CALM, ...RARE, answered: 2, "ask-failed": 30, tick: 40, end: 1, connection: 12 },
} as const;
const TICK_DELAYS_MS = {
  calm: 900,
  full: 120,
  silent: 2_500,
  slow: 2_500,
  overtaken: 400,
  failing: 300,
} as const;

/** Plays I/O layer, broker and hosts to an outbox, by chance alone. */
export class OutboxPlayer implements Player {
  readonly settings: string;
  readonly #random: Random;
  readonly #sent: SentRecord[] = [];
  readonly #calls = new Set<number>();
  readonly #updates = new Map<number, readonly number[]>();
  readonly #asked: number[] = [];
  readonly #pings: number[] = [];
  readonly #seqs = new Array<number>(SHARDS).fill(0);
  readonly #weather: keyof typeof WEIGHTS;
  /** Factor of all sizes. */
  readonly #size: number;
  #generation = 1;
  #callIds = 0;
  #session = 0;
  #nowMs = 1_000;
  #timerAtMs: number | undefined;
  #isConnected = true;
  #isPaused = true;

  constructor(random: Random) {
    this.#random = random;
    this.#weather =
      random.pick(["calm", "calm", "full", "silent", "slow", "overtaken", "failing"] as const) ??
      "calm";
    this.#size = this.#weather === "slow" ? 10_000 : 1;
    this.settings = `outbox ${100 * this.#size} 4`;
  }

  next(): string | undefined {
    this.#nowMs += this.#random.pick([0, 1, 7, 40, 300]) ?? 0;
    if (this.#session === 0 || (this.#isPaused && this.#random.chance(0.3))) return this.#start();
    const events: Readonly<Record<string, () => string | undefined>> = {
      send: () => this.#send(),
      stored: () => this.#stored(),
      refused: () => this.#refused(),
      answered: () => this.#answered(),
      tick: () => this.#tick(),
      read: () => this.#read(),
      end: () => this.#end(),
      "ask-failed": () => this.#askFailed(),
      denied: () => this.#denied(),
      connection: () => this.#connection(),
      pause: () => this.#pause(),
    };
    return events[pickWord(this.#random, WEIGHTS[this.#weather])]?.();
  }

  onCommand(command: string): string | undefined {
    const [verb = "", ...words] = command.split(" ");
    const [a = 0, b = 0, session = 0, n = 0, , slot = 0, serial = 0] = words.map(Number);
    const fails = this.#random.chance(0.02);
    if (verb === "timer") this.#timerAtMs = a;
    if (verb === "ping") this.#pings.push(a);
    if (verb === "over") this.#calls.delete(a);
    if (verb === "session-over") this.#isPaused ||= words[0] === "REJOIN";
    if (verb === "ask" && !fails) this.#asked.push(a);
    if (verb === "publish" && !fails) {
      const shard = this.#updates.get(a)?.[b] ?? 0;
      this.#sent.push({ call: a, index: b, shard, session, n, slot, serial, seq: 0 });
    }
    const canFail = verb === "publish" || verb === "repeat" || verb === "ask";
    return canFail && fails ? toLine(["not-published", this.#code()]) : undefined;
  }

  #code(): ErrorCode {
    return this.#random.chance(0.5) ? "TOO_LARGE" : "CLOSED";
  }

  #start(): string {
    this.#session += 1;
    this.#isPaused = false;
    return toLine(["start", this.#session, this.#nowMs]);
  }

  #pause(): string {
    this.#isPaused = true;
    return "pause";
  }

  #send(): string {
    const id = ++this.#callIds;
    const count = this.#random.chance(0.05) ? 0 : 1 + this.#random.below(5);
    const shards = Array.from({ length: count }, () => this.#random.below(SHARDS));
    this.#updates.set(id, shards);
    this.#calls.add(id);
    const flags = [0.2, 0.3, 0.3].map((chance) => this.#random.chance(chance));
    const end = this.#random.chance(0.03) ? pickWord(this.#random, ENDS) : "-";
    const updates = shards.map((shard) => {
      const bytes = this.#size * (this.#random.pick([0, 8, 20, 40, 150]) ?? 0);
      const namesVersion = Number(this.#random.chance(0.4));
      // Few of the largest batches fill the window of a shard.
      const blocks = this.#random.chance(0.3) ? (this.#random.pick([2, 40, 3_000, 4_096]) ?? 1) : 1;
      return `${shard}:${bytes}:${namesVersion}:${blocks}`;
    });
    return toLine(["send", id, this.#nowMs, ...flags, end, ...updates]);
  }

  #stored(): string | undefined {
    const record = this.#random.pick(this.#sent);
    const isLost = this.#weather === "overtaken" && (record?.serial ?? 0) % 4 === 0;
    if (record === undefined || isLost) return undefined;
    if (this.#random.chance(0.02)) this.#generation += 1;
    if (record.seq === 0) {
      record.seq = (this.#seqs[record.shard] ?? 0) + 1;
      this.#seqs[record.shard] = record.seq;
    }
    const { slot, serial, seq } = record;
    const shard = this.#random.chance(0.02) ? (record.shard + 1) % SHARDS : record.shard;
    return toLine(["stored", slot, serial, shard, this.#generation, seq, this.#nowMs]);
  }

  #refused(): string | undefined {
    const record = this.#random.pick(this.#sent.slice(this.#weather === "full" ? -2 : 0));
    if (record === undefined) return undefined;
    const code = this.#weather === "full" ? "JOURNAL_FULL" : pickWord(this.#random, REFUSALS);
    const isRetryable = code !== "TOO_LARGE" && code !== "BAD_MESSAGE";
    return toLine(["refused", record.slot, record.serial, code, isRetryable, this.#nowMs]);
  }

  #answered(): string | undefined {
    const first = this.#random.pick(this.#sent.slice(-12));
    if (first === undefined) return undefined;
    const { shard, session } = first;
    const others = this.#sent.filter((one) => one.shard === shard && one.session === session);
    const told = [first, ...others.slice(-3).filter(() => this.#random.chance(0.3))];
    const outcomes = told.map(({ n, seq }) => {
      const at = seq === 0 ? (this.#seqs[shard] ?? 0) : seq;
      return `${n}:${at}:${pickWord(this.#random, OUTCOMES)}`;
    });
    const isReply = this.#random.chance(0.4);
    const header = ["answered", shard, this.#generation, session, isReply, this.#nowMs];
    return toLine([...header, outcomes.length, ...outcomes]);
  }

  #askFailed(): string | undefined {
    const shard = this.#asked.shift();
    if (shard === undefined) return undefined;
    const code = pickWord(this.#random, ASK_ERRORS);
    const waitMs = code === "BUSY" ? 600 : 0;
    const isReplaced = code === "JOURNAL_REPLACED";
    if (isReplaced) this.#generation += 1;
    const names = isReplaced || this.#random.chance(0.5);
    const generation = names ? this.#generation : 0;
    const seq = names ? this.#random.below(1 + (this.#seqs[shard] ?? 0)) : -1;
    const received = code === "REJOIN" || code === "SUPERSEDED" ? this.#session : 0;
    return toLine(["ask-failed", shard, code, waitMs, generation, seq, this.#nowMs, received]);
  }

  #denied(): string | undefined {
    const record = this.#random.pick(this.#sent.slice(-6));
    if (record === undefined) return undefined;
    return toLine(["denied", record.call, record.index, this.#nowMs]);
  }

  #connection(): string {
    this.#isConnected = !this.#isConnected;
    return this.#isConnected ? toLine(["reconnected", this.#nowMs]) : "disconnected";
  }

  /** The answer to a PING, at times to one of an earlier connection. */
  #read(): string | undefined {
    const sendNumber = this.#random.chance(0.1) ? this.#pings[0] : this.#pings.at(-1);
    return sendNumber === undefined ? undefined : toLine(["read", sendNumber, this.#nowMs]);
  }

  #tick(): string | undefined {
    if (this.#timerAtMs === undefined) return undefined;
    this.#nowMs =
      Math.max(this.#nowMs, this.#timerAtMs) + this.#random.below(TICK_DELAYS_MS[this.#weather]);
    this.#timerAtMs = undefined;
    return toLine(["tick", this.#nowMs]);
  }

  #end(): string | undefined {
    const call = this.#random.pick([...this.#calls]);
    if (call === undefined) return undefined;
    return toLine(["end", call, pickWord(this.#random, ENDS), this.#nowMs]);
  }
}
