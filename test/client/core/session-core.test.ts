// Proves what a session does when its end, an attempt to join again and a stop come in an order that a
// connection seldom gives them: each test raises the events and looks at the commands.
import { describe, expect, test } from "vitest";
import {
  newSessionRequest,
  type SessionCommands,
  SessionCore,
  type SessionListener,
  type SessionRequest,
} from "../../../src/client/core/session-core.ts";
import type { Failure } from "../../../src/client/core/update-call.ts";

import { failureOf } from "./outbox-script.ts";

const LEASE_MS = 3_000;

/** A session core, and what it commands. */
class Rig implements SessionCommands, SessionListener {
  readonly core: SessionCore = new SessionCore({ commands: this, listener: this });
  #said: string[] = [];

  /** The core of a session that has been joined at 0 ms. */
  static joined(session = 5): Rig {
    const rig = new Rig();
    rig.core.joined(session, LEASE_MS, 0);
    rig.said();
    return rig;
  }

  /** The commands since the last look. */
  said(): string[] {
    return this.#said.splice(0);
  }

  rejoin(): void {
    this.#said.push("rejoin");
  }

  renew(timeoutMs: number): void {
    this.#said.push(`renew ${timeoutMs}`);
  }

  setRenewal(atMs: number): void {
    this.#said.push(`renewal at ${atMs}`);
  }

  repeatRequest({ id }: SessionRequest): void {
    this.#said.push(`repeat ${id}`);
  }

  failRequest({ id }: SessionRequest, { code }: Failure): void {
    this.#said.push(`fail ${id} ${code}`);
  }

  loseClient({ code }: Failure): void {
    this.#said.push(`lose ${code}`);
  }

  sessionEnded(): void {
    this.#said.push("ended");
  }

  sessionBegan(session: number): void {
    this.#said.push(`began ${session}`);
  }
}

function rejoin(received = 0): Failure {
  return failureOf("REJOIN", 0, -1, received);
}

function superseded(received = 0): Failure {
  return failureOf("SUPERSEDED", 0, -1, received);
}

const NEVER = `renewal at ${Number.POSITIVE_INFINITY}`;

test("a client that was superseded stops its renewals, and hears nothing more", () => {
  const rig = Rig.joined();
  rig.core.ended(superseded(5));
  expect(rig.said()).toEqual([NEVER, "lose SUPERSEDED"]);
  rig.core.ended(superseded(5));
  rig.core.ended(rejoin(5));
  rig.core.renewalDue();
  rig.core.renewed(1_000);
  rig.core.renewFailed(failureOf("NO_HOST"), 1_000);
  rig.core.renewFailed(failureOf("DENIED"), 1_000);
  expect(rig.said()).toEqual([]);
});

test("a client whose request was superseded is lost, and asks no request again", () => {
  const rig = Rig.joined();
  rig.core.requestFailed(newSessionRequest(1), superseded(5));
  expect(rig.said()).toEqual([NEVER, "lose SUPERSEDED", "fail 1 SUPERSEDED"]);
  rig.core.requestFailed(newSessionRequest(2), rejoin(5));
  rig.core.requestFailed(newSessionRequest(3), rejoin(4));
  expect(rig.said()).toEqual(["fail 2 REJOIN", "fail 3 REJOIN"]);
});

test("a stopped session is not joined again, though the attempt under way could be repeated", () => {
  const rig = Rig.joined();
  rig.core.ended(rejoin(5));
  expect(rig.said()).toEqual([NEVER, "ended", "rejoin"]);
  rig.core.rejoinFailed(failureOf("NO_HOST"));
  expect(rig.said()).toEqual(["rejoin"]);
  rig.core.stop();
  expect(rig.said()).toEqual([NEVER]);
  rig.core.rejoinFailed(failureOf("TIMEOUT"));
  expect(rig.said()).toEqual(["lose TIMEOUT"]);
});

describe("an attempt to join again that has failed for good", () => {
  test("loses the client that a host has told to join, with the requests that wait", () => {
    const rig = Rig.joined();
    rig.core.requestFailed(newSessionRequest(1), rejoin(5));
    rig.core.ended(rejoin(5));
    expect(rig.said()).toEqual([NEVER, "ended", "rejoin"]);
    rig.core.rejoinFailed(failureOf("DENIED"));
    expect(rig.said()).toEqual(["fail 1 DENIED", "lose DENIED"]);
  });

  test("fails a request that needed it, and nothing else: the next one joins anew", () => {
    const rig = Rig.joined();
    rig.core.ended(rejoin(5));
    rig.core.joined(6, LEASE_MS, 0);
    rig.said();
    rig.core.requestFailed(newSessionRequest(1), rejoin(6));
    expect(rig.said()).toEqual([NEVER, "ended", "rejoin"]);
    rig.core.rejoinFailed(failureOf("DENIED"));
    expect(rig.said()).toEqual(["fail 1 DENIED"]);
    rig.core.requestFailed(newSessionRequest(2), rejoin(6));
    expect(rig.said()).toEqual([NEVER, "ended", "rejoin"]);
  });

  test("forgets the SUPERSEDED that was heard meanwhile", () => {
    const rig = Rig.joined();
    rig.core.requestFailed(newSessionRequest(1), rejoin(5));
    rig.core.ended(superseded());
    rig.core.rejoinFailed(failureOf("DENIED"));
    rig.core.requestFailed(newSessionRequest(2), rejoin(5));
    rig.said();
    rig.core.joined(6, LEASE_MS, 0);
    expect(rig.said()).toEqual(["began 6", "renewal at 1000", "repeat 2"]);
  });
});

describe("a SUPERSEDED that is heard while the client joins again", () => {
  test("loses the client once it has joined, if it says of no session", () => {
    const rig = Rig.joined();
    rig.core.ended(rejoin(5));
    rig.said();
    rig.core.ended(superseded());
    expect(rig.said()).toEqual([]);
    rig.core.joined(6, LEASE_MS, 0);
    expect(rig.said()).toEqual(["began 6", "renewal at 1000", NEVER, "lose SUPERSEDED"]);
  });

  test("means nothing if it is of the session before, and does not hide a later one", () => {
    const rig = Rig.joined();
    rig.core.ended(rejoin(5));
    rig.core.ended(superseded(5));
    rig.core.joined(6, LEASE_MS, 0);
    rig.core.ended(rejoin(6));
    rig.core.ended(superseded());
    rig.said();
    rig.core.joined(7, LEASE_MS, 0);
    expect(rig.said()).toEqual(["began 7", "renewal at 1000", NEVER, "lose SUPERSEDED"]);
  });

  test("counts before a later one", () => {
    const rig = Rig.joined();
    rig.core.ended(rejoin(5));
    rig.core.ended(superseded());
    rig.core.ended(superseded(5));
    rig.core.joined(6, LEASE_MS, 0);
    expect(rig.said()).toContain("lose SUPERSEDED");
  });
});

describe("a request that waits while the client joins again", () => {
  test("is asked under the next session if a SUPERSEDED was of the one before", () => {
    const rig = Rig.joined();
    rig.core.ended(rejoin(5));
    rig.core.requestFailed(newSessionRequest(1), rejoin(5));
    rig.core.requestFailed(newSessionRequest(2), superseded(5));
    rig.said();
    rig.core.joined(6, LEASE_MS, 0);
    expect(rig.said()).toEqual(["began 6", "renewal at 1000", "repeat 1", "repeat 2"]);
  });

  test("fails, and loses the client, if a SUPERSEDED says of no session", () => {
    const rig = Rig.joined();
    rig.core.ended(rejoin(5));
    rig.core.requestFailed(newSessionRequest(1), superseded());
    rig.said();
    rig.core.joined(6, LEASE_MS, 0);
    const over = [NEVER, "lose SUPERSEDED", "fail 1 SUPERSEDED"];
    expect(rig.said()).toEqual(["began 6", "renewal at 1000", ...over]);
  });

  test("is not asked again once its call has ended, and no other is forgotten with it", () => {
    const rig = Rig.joined();
    const [first, second, third] = [1, 2, 3].map(newSessionRequest) as [
      SessionRequest,
      SessionRequest,
      SessionRequest,
    ];
    rig.core.requestFailed(first, rejoin(5));
    rig.core.requestFailed(second, rejoin(5));
    rig.core.requestEnded(first);
    rig.core.requestEnded(third);
    rig.said();
    rig.core.joined(6, LEASE_MS, 0);
    expect(rig.said()).toEqual(["began 6", "renewal at 1000", "repeat 2"]);
  });
});
