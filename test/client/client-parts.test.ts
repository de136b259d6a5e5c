// Proves how the parts of a client work together when its session ends, with the parts as they are and
// without a broker: the test plays broker and hosts on a fake connection, with a fake clock.
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Deadline } from "../../src/client/calls/calls.ts";
import { ClientParts } from "../../src/client/client.ts";
import {
  type ErrorCode,
  encodeError,
  encodeMessage,
  JobSubjects,
  PserverError,
} from "../../src/protocol/index.ts";
import { FakeWire, type Published } from "../support/fake-wire.ts";
import { answer, applied, header, settle, update, watch } from "./io/outbox-rig.ts";

const LEASE_MS = 3_000;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function deadline(): Deadline {
  const made = Deadline.start("call", { timeoutMs: 30_000 });
  onTestFinished(() => made.dispose());
  return made;
}

function answerJoin(wire: FakeWire, join: Published | undefined, session: number): void {
  const synchronization = { mode: "async" };
  const settings = { shards: 4, leaseMs: LEASE_MS, journal: "file", synchronization };
  const entries = { session, made: "now", ...settings };
  wire.deliver(join?.reply ?? "", encodeMessage({ ...entries, maxPayloadBytes: 8_000_000 }));
}

/** The parts of a client that has joined as session 5, and what it published since. */
async function joined(): Promise<{
  wire: FakeWire;
  parts: ClientParts;
  lost: PserverError[];
  fresh: () => Published[];
}> {
  const wire = new FakeWire();
  const lost: PserverError[] = [];
  const subjects = new JobSubjects("j");
  const fail = (error: PserverError): number => lost.push(error);
  const parts = new ClientParts({ wire, control: wire.control, subjects, trainer: "t", fail });
  onTestFinished(() => parts.stop());
  const joining = parts.session.join(deadline());
  answerJoin(wire, wire.published[0], 5);
  await joining;
  let read = wire.published.length;
  const fresh = (): Published[] => {
    const published = wire.published.slice(read);
    read = wire.published.length;
    return published;
  };
  return { wire, parts, lost, fresh };
}

test("what keeps the trainer in the job goes over another connection than records", async () => {
  const { wire, parts, fresh } = await joined();
  watch(parts.sender.send([update(0)], { deadline: deadline() }));
  parts.session.request("enter", { exits: 0 }, deadline()).catch(() => undefined);
  const [record, enter] = fresh();
  expect(record?.reply.startsWith(`${wire.inbox}.ack.`)).toBe(true);
  expect(enter?.reply.startsWith(`${wire.control.inbox}.reply.`)).toBe(true);
});

test("records wait while the client joins again, and are sent under the next session", async () => {
  const { wire, parts, lost, fresh } = await joined();
  const first = watch(parts.sender.send([update(0)], { deadline: deadline() }));
  expect(fresh().map(header)).toMatchObject([{ session: 5, n: 1 }]);
  answer(wire, [{ n: 1, seq: 4, version: 0, code: "REJOIN" }]);
  const second = watch(parts.sender.send([update(0, 1)], { deadline: deadline() }));
  const [join, ...others] = fresh();
  expect([join?.subject, others]).toEqual(["ps.j.lifecycle.t.join", []]);
  answerJoin(wire, join, 6);
  await settle();
  const again = fresh();
  expect(again.map(({ subject }) => subject)).toEqual(["log.0.0", "log.0.1"]);
  expect(again.map(header)).toMatchObject([
    { session: 6, n: 1 },
    { session: 6, n: 2 },
  ]);
  answer(wire, [applied(1), applied(2)], 0, 6);
  await settle();
  expect([first.state, second.state, lost]).toEqual(["done", "done", []]);
});

test("a record that says SUPERSEDED ends the client, which renews and joins no more", async () => {
  const { wire, parts, lost, fresh } = await joined();
  const call = watch(parts.sender.send([update(0)], { deadline: deadline() }));
  fresh();
  answer(wire, [{ n: 1, seq: 4, version: 0, code: "SUPERSEDED" }]);
  await vi.advanceTimersByTimeAsync(3 * LEASE_MS);
  expect(call.error).toMatchObject({ code: "SUPERSEDED" });
  expect(lost).toMatchObject([{ code: "SUPERSEDED", details: { trainer: "t", session: 5 } }]);
  expect(fresh()).toEqual([]);
});

test("parts that are stopped neither renew nor repeat, and may be stopped again", async () => {
  const { parts, lost, fresh } = await joined();
  watch(parts.sender.send([update(0)], { deadline: deadline() }));
  fresh();
  parts.stop();
  parts.stop();
  await vi.advanceTimersByTimeAsync(3 * LEASE_MS);
  expect([fresh(), lost]).toEqual([[], []]);
});

/** Plays hosts that answer every request of these verbs with an error after which it is sent again. */
function refuse(
  wire: FakeWire,
  sent: readonly Published[],
  code: ErrorCode,
  verbs: string[],
): void {
  for (const { subject, reply } of sent) {
    if (!verbs.includes(subject.split(".").at(-1) ?? "")) continue;
    wire.deliver(reply, encodeMessage({ error: { code, message: "why", details: {} } }));
  }
}

describe("a call that shares a request and ends before it tells what the hosts answered", () => {
  test.each(["declare", "status"] as const)("%s", async (verb) => {
    const { wire, parts, fresh } = await joined();
    const begun = parts.lifecycle.begin(false, deadline());
    const selected = { selected: true, state: "initializing", epoch: 1, by: "t" };
    wire.deliver(fresh()[0]?.reply ?? "", encodeMessage(selected));
    await begun;
    const start = (timeoutMs: number): Deadline => {
      const made = Deadline.start("call", { timeoutMs });
      onTestFinished(() => made.dispose());
      return made;
    };
    const call = (name: string, limit: Deadline): Promise<unknown> =>
      verb === "declare"
        ? parts.lifecycle.initParam(name, Float32Array.of(1), undefined, limit)
        : parts.parameters.refresh("w", limit);
    const longer = watch(call("w", start(20_000)));
    const shorter = watch(call("v", start(5_000)));
    const code = verb === "declare" ? "NO_MEMORY" : "BUSY";
    for (let ms = 0; ms < 6_000; ms += 100) {
      await vi.advanceTimersByTimeAsync(100);
      refuse(wire, fresh(), code, [verb]);
    }
    expect(shorter.error).toMatchObject({ code, message: expect.stringContaining("last: why") });
    expect(longer.state).toBe("pending");
  });
});

test("after the connection was lost records wait until a host has said that the broker holds the same job", async () => {
  const { wire, parts, lost, fresh } = await joined();
  const call = watch(parts.sender.send([update(0)], { deadline: deadline() }));
  fresh();
  wire.disconnect();
  wire.reconnect();
  await vi.advanceTimersByTimeAsync(500);
  const asked = fresh();
  expect(asked.map(({ subject }) => subject)).toEqual(["ps.j.lifecycle.t.renew"]);
  wire.deliver(asked[0]?.reply ?? "", encodeMessage({ session: 5 }));
  await settle();
  expect(fresh().map(header)).toMatchObject([{ session: 5, n: 1 }]);
  answer(wire, [applied(1)]);
  await settle();
  expect([call.state, lost]).toEqual(["done", []]);
});

test("after the connection was lost records wait even where no host is: the next one may have made another job", async () => {
  const { wire, parts, fresh } = await joined();
  watch(parts.sender.send([update(0)], { deadline: deadline() }));
  fresh();
  wire.disconnect();
  wire.reconnect();
  wire.noResponders(fresh()[0] as Published);
  await vi.advanceTimersByTimeAsync(500);
  const [renewal, ...others] = fresh();
  expect([renewal?.subject, others]).toEqual(["ps.j.lifecycle.t.renew", []]);
  wire.deliver(renewal?.reply ?? "", encodeMessage({ session: 5 }));
  await settle();
  expect(fresh().map(header)).toMatchObject([{ session: 5, n: 1 }]);
});

test("after the connection was lost no record goes to another job of the name, and the client ends", async () => {
  const { wire, parts, lost, fresh } = await joined();
  watch(parts.sender.send([update(0)], { deadline: deadline() }));
  fresh();
  wire.disconnect();
  wire.reconnect();
  const error = new PserverError("JOB_REPLACED", "made anew");
  wire.deliver(fresh()[0]?.reply ?? "", encodeError(error));
  await vi.advanceTimersByTimeAsync(3 * LEASE_MS);
  expect(fresh()).toEqual([]);
  expect(lost).toMatchObject([{ code: "JOB_REPLACED", message: "made anew" }]);
});

test("a renewal that was answered while the connection was lost again lets no record go", async () => {
  const { wire, parts, fresh } = await joined();
  watch(parts.sender.send([update(0)], { deadline: deadline() }));
  fresh();
  wire.disconnect();
  wire.reconnect();
  const [renewal] = fresh();
  wire.disconnect();
  wire.deliver(renewal?.reply ?? "", encodeMessage({ session: 5 }));
  await settle();
  expect(fresh()).toEqual([]);
});
