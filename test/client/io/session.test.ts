// Proves when a session is renewed, what ends it and what does not. There is no broker: the test plays
// the hosts on a fake connection, with a fake clock, so that every moment is exact.
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Deadline } from "../../../src/client/calls/calls.ts";
import { Session } from "../../../src/client/io/session.ts";
import { Requests } from "../../../src/client/wire/wire.ts";
import {
  decodeMessage,
  ERROR_CODES,
  type ErrorCode,
  encodeError,
  encodeMessage,
  type Fields,
  isErrorCode,
  JobSubjects,
  type LifecycleVerb,
  PserverError,
} from "../../../src/protocol/index.ts";
import { FakeWire, type Published } from "../../support/fake-wire.ts";

const LEASE_MS = 3_000;
const MADE = "2026-11-22T10:00:00.123456789Z";
const subjects = new JobSubjects("j");

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** A client's session, and a test that is its hosts. */
class Rig {
  readonly wire = new FakeWire();
  readonly joined: number[] = [];
  readonly lost: PserverError[] = [];
  ended = 0;
  held = 0;
  readonly session: Session;
  #read = 0;

  constructor() {
    this.session = new Session({
      requests: Requests.open(this.wire, false),
      subjects,
      trainer: "t",
      onEnded: () => {
        this.ended += 1;
      },
      onJoined: ({ session }) => this.joined.push(session),
      onHeld: () => {
        this.held += 1;
      },
      onLost: (error) => this.lost.push(error),
    });
    onTestFinished(() => this.session.stop());
  }

  /** A rig whose session has this number. */
  static async joined(number: number): Promise<Rig> {
    const rig = new Rig();
    const joining = rig.session.join(deadline());
    rig.answerJoin(rig.only("join"), number);
    await joining;
    return rig;
  }

  /** The requests published since the last look, which must be of one verb. */
  requests(verb: LifecycleVerb): Published[] {
    const fresh = this.wire.published.slice(this.#read);
    this.#read = this.wire.published.length;
    expect(fresh.map(({ subject }) => subject)).toEqual(
      fresh.map(() => subjects.lifecycle("t", verb)),
    );
    return fresh;
  }

  /** The one request published since the last look. */
  only(verb: LifecycleVerb): Published {
    const [request, ...others] = this.requests(verb);
    if (request === undefined || others.length > 0) throw new Error(`expected one ${verb}`);
    return request;
  }

  answer(request: Published, entries: Fields): void {
    this.wire.deliver(request.reply, encodeMessage(entries));
  }

  answerJoin(request: Published, session: number, leaseMs = LEASE_MS): void {
    const synchronization = { mode: "async" };
    const entries = { session, made: MADE, shards: 4, leaseMs, journal: "file", synchronization };
    this.answer(request, { ...entries, maxPayloadBytes: 8_000_000 });
  }

  refuse(request: Published, code: ErrorCode, details: Fields = {}): void {
    this.wire.deliver(
      request.reply,
      encodeError(new PserverError(code, "the host says so", details)),
    );
  }
}

function deadline(timeoutMs = 30_000): Deadline {
  const made = Deadline.start("call", { timeoutMs });
  onTestFinished(() => made.dispose());
  return made;
}

function sent(request: Published): Fields {
  return decodeMessage(request.bytes).fields;
}

async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

describe("a lease", () => {
  test("may have run out once its whole time has passed since a request was sent that has renewed it", async () => {
    const rig = await Rig.joined(5);
    expect(rig.session.mayBeOut).toBe(false);
    await pass(LEASE_MS / 3);
    const renewal = rig.only("renew");
    await pass((LEASE_MS * 2) / 3 - 1);
    expect(rig.session.mayBeOut).toBe(false);
    await pass(1);
    expect(rig.session.mayBeOut).toBe(true);
    rig.answer(renewal, { session: 5 });
    await pass(0);
    expect(rig.session.mayBeOut).toBe(false);
    await pass(LEASE_MS / 3);
    expect(rig.session.mayBeOut).toBe(true);
  });

  test("is renewed after a third of its time, and each third from then on", async () => {
    const rig = await Rig.joined(5);
    for (let time = 1; time <= 4; time++) {
      await pass(LEASE_MS / 3 - 1);
      expect(rig.requests("renew")).toEqual([]);
      await pass(1);
      const renewal = rig.only("renew");
      expect(sent(renewal)).toMatchObject({ session: 5 });
      rig.answer(renewal, { session: 5 });
      await pass(0);
    }
    expect(rig.lost).toEqual([]);
  });

  const passing = Object.keys(ERROR_CODES)
    .filter(isErrorCode)
    .filter((code) => ERROR_CODES[code].retryable && code !== "NOT_INITIALIZED");

  test.each(passing)(
    "is asked to be renewed again soon after %s, under the same session",
    async (code) => {
      const rig = await Rig.joined(5);
      await pass(LEASE_MS / 3);
      for (let time = 1; time <= 3; time++) {
        rig.refuse(rig.only("renew"), code);
        // Pauses are of 50 ms, 100 ms and 200 ms, less up to a quarter.
        await pass(50 * 2 ** (time - 1));
      }
      rig.answer(rig.only("renew"), { session: 5 });
      await pass(LEASE_MS / 3 - 1);
      expect(rig.requests("renew")).toEqual([]);
      await pass(1);
      expect(sent(rig.only("renew"))).toMatchObject({ session: 5 });
      expect([rig.lost, rig.ended, rig.joined]).toEqual([[], 0, [5]]);
    },
  );

  test("that could not be renewed for a lease time is tried again a third later", async () => {
    const rig = await Rig.joined(5);
    await pass(LEASE_MS / 3);
    expect(rig.requests("renew")).toHaveLength(1);
    await pass(LEASE_MS);
    // Repeated for want of an answer; then its time was over.
    expect(rig.requests("renew").length).toBeGreaterThan(0);
    await pass(LEASE_MS / 3 - 1);
    expect(rig.requests("renew")).toEqual([]);
    await pass(1);
    const renewal = rig.only("renew");
    expect(sent(renewal)).toMatchObject({ session: 5 });
    rig.answer(renewal, { session: 5 });
    await pass(0);
    expect([rig.lost, rig.ended, rig.session.number]).toEqual([[], 0, 5]);
  });

  test("is not renewed after the session was stopped or given back", async () => {
    const stopped = await Rig.joined(5);
    stopped.session.stop();
    await pass(LEASE_MS);
    expect(stopped.requests("renew")).toEqual([]);
    const left = await Rig.joined(6);
    const leaving = left.session.leave(deadline());
    const request = left.only("leave");
    expect(sent(request)).toMatchObject({ session: 6 });
    left.answer(request, { session: 6 });
    await leaving;
    await pass(LEASE_MS);
    expect(left.requests("renew")).toEqual([]);
  });

  test("is renewed under the next session after a third of the time that this has", async () => {
    const rig = await Rig.joined(5);
    rig.session.ended(new PserverError("REJOIN", "over", { received: 5 }));
    rig.answerJoin(rig.only("join"), 6, 2 * LEASE_MS);
    await pass((2 * LEASE_MS) / 3 - 1);
    expect(rig.requests("renew")).toEqual([]);
    await pass(1);
    expect(sent(rig.only("renew"))).toMatchObject({ session: 6 });
  });

  test("of a session that has ended is not renewed while the next one is joined", async () => {
    const rig = await Rig.joined(5);
    rig.session.ended(new PserverError("REJOIN", "over", { received: 5 }));
    await pass(LEASE_MS);
    expect(rig.requests("join").length).toBeGreaterThan(0);
  });

  test("that is renewed leaves no timer but that of the next time", async () => {
    const rig = await Rig.joined(5);
    const timers: number[] = [];
    for (let time = 0; time < 3; time++) {
      await pass(LEASE_MS / 3);
      rig.answer(rig.only("renew"), { session: 5 });
      await pass(100);
      timers.push(vi.getTimerCount());
    }
    expect(new Set(timers).size).toBe(1);
    rig.session.stop();
    expect(vi.getTimerCount()).toBe((timers[0] ?? 0) - 1);
  });

  test("is not asked for again once the session is stopped, though its renewal has no answer", async () => {
    const rig = await Rig.joined(5);
    await pass(LEASE_MS / 3);
    rig.only("renew");
    rig.session.stop();
    await pass(2 * LEASE_MS);
    expect([rig.requests("renew"), rig.lost]).toEqual([[], []]);
  });

  test("is given back only by a session that was joined and not stopped", async () => {
    const fresh = new Rig();
    const stopped = await Rig.joined(5);
    stopped.session.stop();
    const leaving = [fresh, stopped].map(({ session }) => session.leave(deadline()));
    await pass(0);
    expect([fresh.wire.published, stopped.requests("leave")]).toEqual([[], []]);
    await Promise.all(leaving);
  });

  test.each(["DENIED", "NO_JETSTREAM", "BAD_VERSION", "INTERNAL"] as const)(
    "whose renewal is refused for good, with %s, ends the client",
    async (code) => {
      const rig = await Rig.joined(5);
      await pass(LEASE_MS / 3);
      rig.refuse(rig.only("renew"), code);
      await pass(0);
      expect(rig.lost.map((error) => error.code)).toEqual([code]);
      await pass(2 * LEASE_MS);
      expect(rig.requests("renew")).toEqual([]);
    },
  );
});

describe("a former job", () => {
  test("is told from another one of its name by every request after the first join", async () => {
    const rig = new Rig();
    const joining = rig.session.join(deadline());
    const first = rig.only("join");
    expect(sent(first)).not.toHaveProperty("made");
    rig.answerJoin(first, 5);
    await joining;
    rig.session.request("begin", {}, deadline()).catch(() => undefined);
    expect(sent(rig.only("begin"))).toMatchObject({ session: 5, made: MADE });
    await pass(LEASE_MS / 3);
    const renewal = rig.wire.published.find(({ subject }) => subject.endsWith(".renew"));
    expect(renewal && sent(renewal)).toMatchObject({ session: 5, made: MADE });
    rig.session.ended(new PserverError("REJOIN", "over", { received: 5 }));
    const again = rig.wire.published.findLast(({ subject }) => subject.endsWith(".join"));
    expect(again && sent(again)).toMatchObject({ made: MADE });
  });

  test.each(["renewal", "call"])("ends the client when a host says so to a %s", async (asked) => {
    const rig = await Rig.joined(5);
    const call = rig.session.request("begin", {}, deadline());
    const failed = call.catch(({ code }: PserverError) => code);
    const begin = rig.only("begin");
    await pass(LEASE_MS / 3);
    const renewal = rig.wire.published.find(({ subject }) => subject.endsWith(".renew"));
    if (renewal === undefined) throw new Error("no renewal");
    const replaced = { expected: "later", received: MADE };
    rig.refuse(asked === "call" ? begin : renewal, "JOB_REPLACED", replaced);
    await pass(0);
    expect(rig.lost).toMatchObject([{ code: "JOB_REPLACED", message: "the host says so" }]);
    if (asked === "call") expect(await failed).toBe("JOB_REPLACED");
  });

  test("ends the client whose session is over when it cannot join again, and the call that has noticed", async () => {
    const rig = await Rig.joined(5);
    const call = rig.session.request("begin", {}, deadline());
    const failed = call.catch(({ code }: PserverError) => code);
    rig.refuse(rig.only("begin"), "REJOIN", { received: 5 });
    await pass(0);
    rig.refuse(rig.only("join"), "JOB_REPLACED", { expected: "later", received: MADE });
    await pass(0);
    expect(await failed).toBe("JOB_REPLACED");
    expect(rig.lost.map(({ code }) => code)).toEqual(["JOB_REPLACED"]);
    await pass(2 * LEASE_MS);
    expect(rig.requests("renew")).toEqual([]);
  });
});

describe("a session", () => {
  test("that has ended is followed by another, with a token of its own and a lease to renew", async () => {
    const rig = await Rig.joined(5);
    const first = sent(rig.wire.published[0] as Published)["token"];
    await pass(LEASE_MS / 3);
    rig.refuse(rig.only("renew"), "REJOIN", { received: 5 });
    await pass(0);
    const join = rig.only("join");
    expect(sent(join)["token"]).not.toBe(first);
    expect([rig.ended, rig.joined]).toEqual([1, [5]]);
    rig.answerJoin(join, 6);
    await pass(LEASE_MS / 3);
    expect(sent(rig.only("renew"))).toMatchObject({ session: 6 });
    expect([rig.lost, rig.joined]).toEqual([[], [5, 6]]);
  });

  test("is joined for as long as no host answers", async () => {
    const rig = await Rig.joined(5);
    await pass(LEASE_MS / 3);
    rig.refuse(rig.only("renew"), "REJOIN");
    await pass(100_000);
    const joins = rig.requests("join");
    // Each attempt, of 30 s, has its token; a host takes the repeats of one for the same.
    expect(new Set(joins.map((join) => sent(join)["token"])).size).toBe(4);
    rig.answerJoin(joins.at(-1) as Published, 6);
    await pass(0);
    expect([rig.lost, rig.joined]).toEqual([[], [5, 6]]);
  });

  test("that a newer one of another process has ended, ends the client", async () => {
    const rig = await Rig.joined(5);
    await pass(LEASE_MS / 3);
    rig.refuse(rig.only("renew"), "SUPERSEDED", { expected: 6, received: 5 });
    await pass(2 * LEASE_MS);
    expect(rig.lost).toMatchObject([{ code: "SUPERSEDED", details: { session: 5, trainer: "t" } }]);
    expect(rig.requests("renew")).toEqual([]);
  });

  test("that a request finds ended is followed by another, and the request is asked again", async () => {
    const rig = await Rig.joined(5);
    const call = rig.session.request("begin", {}, deadline());
    rig.refuse(rig.only("begin"), "REJOIN", { received: 5 });
    await pass(0);
    rig.answerJoin(rig.only("join"), 6);
    await pass(0);
    const again = rig.only("begin");
    expect(sent(again)).toMatchObject({ session: 6 });
    rig.answer(again, { selected: true });
    await expect(call).resolves.toMatchObject({ selected: true });
  });

  test("is not ended by an answer about an earlier one of the same client", async () => {
    const rig = await Rig.joined(5);
    const calls = ["begin", "enter", "exit"] as const;
    const running = calls.map((verb) => rig.session.request(verb, {}, deadline()));
    const [begin, enter, exit] = rig.wire.published.slice(1) as [Published, Published, Published];
    rig.refuse(begin, "REJOIN", { received: 5 });
    await pass(0);
    const join = rig.wire.published[4] as Published;
    // The one comes while the next session is being joined, the other when it has been.
    rig.refuse(enter, "SUPERSEDED", { expected: 6, received: 5 });
    await pass(0);
    rig.answerJoin(join, 6);
    rig.refuse(exit, "REJOIN", { received: 5 });
    await pass(0);
    const again = rig.wire.published.slice(5);
    expect(again.map((request) => sent(request)["session"])).toEqual([6, 6, 6]);
    for (const request of again) rig.answer(request, {});
    await Promise.all(running);
    expect([rig.lost, rig.ended, rig.joined]).toEqual([[], 1, [5, 6]]);
  });

  test("is not ended by a host's answer about it while the next one is joined", async () => {
    const rig = await Rig.joined(5);
    await pass(LEASE_MS / 3);
    const renewal = rig.only("renew");
    rig.session.ended(new PserverError("REJOIN", "of a record", { received: 5 }));
    const join = rig.only("join");
    rig.refuse(renewal, "SUPERSEDED", { expected: 6, received: 5 });
    rig.session.ended(new PserverError("REJOIN", "of another record", { received: 5 }));
    await pass(0);
    rig.answerJoin(join, 6);
    await pass(LEASE_MS / 3);
    expect(sent(rig.only("renew"))).toMatchObject({ session: 6 });
    expect([rig.lost, rig.ended, rig.joined]).toEqual([[], 1, [5, 6]]);
  });

  test("is ended by one of another process that joined while this client was joining anew", async () => {
    const rig = await Rig.joined(5);
    const call = rig.session.request("begin", {}, deadline());
    const refused = expect(call).rejects.toMatchObject({ code: "SUPERSEDED" });
    rig.session.ended(new PserverError("REJOIN", "over"));
    rig.answerJoin(rig.wire.published[2] as Published, 6);
    await pass(0);
    rig.refuse(rig.wire.published[1] as Published, "SUPERSEDED", { expected: 7, received: 5 });
    await pass(0);
    const again = rig.wire.published[3] as Published;
    expect(sent(again)).toMatchObject({ session: 6 });
    rig.refuse(again, "SUPERSEDED", { expected: 7, received: 6 });
    await refused;
    expect(rig.lost).toMatchObject([{ code: "SUPERSEDED" }]);
  });

  test("is not joined for ever: when a request finds no session for the fourth time, that is its error", async () => {
    const rig = await Rig.joined(5);
    const call = rig.session.request("begin", {}, deadline());
    const refused = expect(call).rejects.toMatchObject({ code: "REJOIN" });
    for (let session = 5; session < 9; session++) {
      rig.refuse(rig.only("begin"), "REJOIN", { received: session });
      await pass(0);
      if (session < 8) rig.answerJoin(rig.only("join"), session + 1);
      await pass(0);
    }
    await refused;
    expect(rig.joined).toEqual([5, 6, 7, 8]);
  });
});

describe("a request that waits for the next session", () => {
  test("fails when its call ends, and is not asked again", async () => {
    const rig = await Rig.joined(5);
    const call = rig.session.request("begin", {}, deadline(500));
    const failed = expect(call).rejects.toMatchObject({ code: "TIMEOUT" });
    rig.refuse(rig.only("begin"), "REJOIN", { received: 5 });
    await pass(500);
    await failed;
    rig.answerJoin(rig.only("join"), 6);
    await pass(0);
    expect([rig.requests("begin"), rig.joined]).toEqual([[], [5, 6]]);
  });

  test.each([5, 4])(
    "and is then not answered, fails with NO_HOST when its call ends: refused as of session %i",
    async (received) => {
      const rig = await Rig.joined(5);
      const call = rig.session.request("begin", {}, deadline(5_000));
      const failed = expect(call).rejects.toMatchObject({ code: "NO_HOST" });
      rig.refuse(rig.only("begin"), "REJOIN", { received });
      await pass(0);
      if (received === 5) {
        rig.answerJoin(rig.only("join"), 6);
        await pass(0);
      }
      expect(rig.requests("begin")).toHaveLength(1);
      await pass(5_000);
      await failed;
    },
  );
});

describe("joining", () => {
  test("fails with NO_HOST at its deadline if no host answers, with its end if that is another", async () => {
    const silent = new Rig().session.join(deadline(2_000));
    const noHost = expect(silent).rejects.toMatchObject({
      code: "NO_HOST",
      message: expect.stringContaining("not finished within 2000 ms"),
    });
    await pass(2_000);
    await noHost;
    const abort = new AbortController();
    const ended = Deadline.start("call", { signal: abort.signal });
    onTestFinished(() => ended.dispose());
    const aborted = expect(new Rig().session.join(ended)).rejects.toMatchObject({
      code: "ABORTED",
    });
    abort.abort();
    await aborted;
  });

  test("continues until its deadline while hosts say that they cannot answer at the moment", async () => {
    const rig = new Rig();
    const call = rig.session.join(deadline(10_000));
    const failed = expect(call).rejects.toMatchObject({
      code: "JETSTREAM_UNAVAILABLE",
      message: expect.stringContaining("not finished within 10000 ms"),
    });
    for (let spentMs = 0; spentMs < 10_000; spentMs += 500) {
      for (const join of rig.requests("join")) rig.refuse(join, "JETSTREAM_UNAVAILABLE");
      await pass(500);
    }
    await failed;
    // Pauses grow to half a second.
    expect(rig.wire.published.length).toBeGreaterThan(15);
  });

  test("succeeds as soon as a host can", async () => {
    const rig = new Rig();
    const call = rig.session.join(deadline(10_000));
    rig.refuse(rig.only("join"), "JETSTREAM_UNAVAILABLE");
    await pass(50);
    rig.answerJoin(rig.only("join"), 5);
    await call;
    expect(rig.joined).toEqual([5]);
  });

  test("ends at once where JetStream is not there", async () => {
    const rig = new Rig();
    const call = rig.session.join(deadline());
    const failed = expect(call).rejects.toMatchObject({ code: "NO_JETSTREAM" });
    rig.refuse(rig.only("join"), "NO_JETSTREAM");
    await failed;
  });
});
