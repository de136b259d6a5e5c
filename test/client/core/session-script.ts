// The session machine as a machine of scripts, and a player that raises every event that an I/O layer can raise.

import {
  newSessionRequest,
  type SessionCommands,
  SessionCore,
  type SessionListener,
  type SessionRequest,
} from "../../../src/client/core/session-core.ts";
import type { Failure } from "../../../src/client/core/update-call.ts";

import type { Random } from "../../simulation/random.ts";
import { failureOf } from "./outbox-script.ts";
import { type Machine, type Player, pickWord, type Recorder, toLine } from "./script.ts";

/** The session machine, given events as lines. */
export class SessionMachine implements Machine, SessionCommands, SessionListener {
  readonly #recorder: Recorder;
  readonly #session: SessionCore;
  readonly #requests = new Map<number, SessionRequest>();

  constructor(_settings: string, recorder: Recorder) {
    this.#recorder = recorder;
    this.#session = new SessionCore({ commands: this, listener: this });
  }

  take(event: string): void {
    const [verb = "", ...words] = event.split(" ");
    const [a = 0, b = 0, c = 0] = words.map(Number);
    const failure = (at: number): Failure =>
      failureOf(words[at] ?? "", 0, -1, Number(words[at + 1]));
    switch (verb) {
      case "joined":
        this.#session.joined(a, b, c);
        break;
      case "rejoin-failed":
        this.#session.rejoinFailed(failure(0));
        break;
      case "renewal-due":
        this.#session.renewalDue();
        break;
      case "renewed":
        this.#session.renewed(a);
        break;
      case "renew-failed":
        this.#session.renewFailed(failure(0), c);
        break;
      case "ended":
        this.#session.ended(failure(0));
        break;
      case "request-failed":
        this.#session.requestFailed(this.#request(a), failure(1));
        break;
      case "request-ended":
        this.#session.requestEnded(this.#request(a));
        break;
      case "stop":
        this.#session.stop();
        break;
      default:
        throw new Error(`no event: ${event}`);
    }
  }

  rejoin(timeoutMs: number): void {
    this.#recorder.command("rejoin", timeoutMs);
  }

  renew(timeoutMs: number): void {
    this.#recorder.command("renew", timeoutMs);
  }

  setRenewal(atMs: number): void {
    this.#recorder.command("set-renewal", Number.isFinite(atMs) ? atMs : -1);
  }

  repeatRequest(request: SessionRequest): void {
    this.#recorder.command("repeat-request", request.id);
  }

  failRequest(request: SessionRequest, { code }: Failure): void {
    this.#recorder.command("fail-request", request.id, code);
  }

  loseClient({ code }: Failure): void {
    this.#recorder.command("lose-client", code);
  }

  sessionEnded(): void {
    this.#recorder.command("session-ended");
  }

  sessionBegan(session: number): void {
    this.#recorder.command("session-began", session);
  }

  #request(id: number): SessionRequest {
    const request = this.#requests.get(id) ?? newSessionRequest(id);
    this.#requests.set(id, request);
    return request;
  }
}

const LEASE_MS = 3_000;
const ENDS = { REJOIN: 5, SUPERSEDED: 2 } as const;
const REJOIN_ERRORS = { NO_HOST: 4, TIMEOUT: 2, DENIED: 1, CLOSED: 1 } as const;
const RENEW_ERRORS = {
  NO_HOST: 4,
  REJOIN: 3,
  SUPERSEDED: 1,
  DENIED: 1,
  NOT_INITIALIZED: 1,
} as const;
const REQUEST_ERRORS = { REJOIN: 6, SUPERSEDED: 2, NOT_SELECTED: 1 } as const;

/** Plays I/O layer and hosts to a session machine, by chance alone. */
export class SessionPlayer implements Player {
  readonly settings = "session";
  readonly #random: Random;
  /** Requests that are asked; what waits for a session is not. */
  readonly #asked = new Set<number>();
  readonly #waiting = new Set<number>();
  #session = 0;
  #requests = 0;
  #nowMs = 1_000;
  #renewAtMs = -1;
  #isRenewing = false;
  #isRejoining = false;

  constructor(random: Random) {
    this.#random = random;
  }

  next(): string | undefined {
    this.#nowMs += this.#random.below(500);
    if (this.#session === 0) return this.#joined();
    const events: Readonly<Record<string, () => string | undefined>> = {
      joined: () => (this.#isRejoining ? this.#joined() : undefined),
      "rejoin-failed": () => this.#rejoinFailed(),
      "renewal-due": () => this.#renewalDue(),
      renewed: () => this.#renewed(),
      "renew-failed": () => this.#renewFailed(),
      ended: () => toLine(["ended", pickWord(this.#random, ENDS), this.#received()]),
      "request-failed": () => this.#requestFailed(),
      "request-ended": () => this.#requestEnded(),
      stop: () => "stop",
    };
    const often = { joined: 30, "renewal-due": 30, renewed: 20, "request-failed": 30 };
    const rare = { "rejoin-failed": 16, "renew-failed": 8, ended: 8, "request-ended": 6, stop: 1 };
    return events[pickWord(this.#random, { ...often, ...rare })]?.();
  }

  onCommand(command: string): undefined {
    const [verb = "", word] = command.split(" ");
    const id = Number(word);
    if (verb === "set-renewal") this.#renewAtMs = id;
    if (verb === "renew") this.#isRenewing = true;
    if (verb === "rejoin") this.#isRejoining = true;
    if (verb === "repeat-request") this.#asked.add(id);
    if (verb === "repeat-request" || verb === "fail-request") this.#waiting.delete(id);
  }

  #joined(): string {
    this.#session += 1 + this.#random.below(2);
    this.#isRejoining = false;
    return toLine(["joined", this.#session, LEASE_MS, this.#nowMs]);
  }

  #rejoinFailed(): string | undefined {
    if (!this.#isRejoining) return undefined;
    this.#isRejoining = false;
    return toLine(["rejoin-failed", pickWord(this.#random, REJOIN_ERRORS), 0]);
  }

  #renewalDue(): string | undefined {
    if (this.#isRenewing) return undefined;
    // A timer may fire just before it is cleared.
    if (this.#renewAtMs < 0) return this.#random.chance(0.05) ? "renewal-due" : undefined;
    this.#nowMs = Math.max(this.#nowMs, this.#renewAtMs);
    this.#renewAtMs = -1;
    return "renewal-due";
  }

  #renewed(): string | undefined {
    if (!this.#isRenewing) return undefined;
    this.#isRenewing = false;
    return toLine(["renewed", this.#nowMs]);
  }

  #renewFailed(): string | undefined {
    if (!this.#isRenewing) return undefined;
    this.#isRenewing = false;
    const code = pickWord(this.#random, RENEW_ERRORS);
    return toLine(["renew-failed", code, this.#received(), this.#nowMs]);
  }

  #requestFailed(): string {
    const id = this.#random.chance(0.5) ? this.#random.pick([...this.#asked]) : undefined;
    const request = id ?? ++this.#requests;
    this.#asked.delete(request);
    this.#waiting.add(request);
    const code = pickWord(this.#random, REQUEST_ERRORS);
    return toLine(["request-failed", request, code, this.#received()]);
  }

  #requestEnded(): string | undefined {
    const id = this.#random.pick([...this.#waiting]);
    if (id === undefined) return undefined;
    this.#waiting.delete(id);
    return toLine(["request-ended", id]);
  }

  /** The session that a host speaks of: the present one, an earlier one, or it does not say. */
  #received(): number {
    return this.#random.pick([this.#session, this.#session, this.#session - 1, 0]) ?? 0;
  }
}
