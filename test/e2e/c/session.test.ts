// Proves what ends a C trainer's session and what does not, against a fake host that refuses what the
// test wants, under address and undefined behaviour sanitizers: what passes is asked again, an answer
// about a session that was left behind ends nothing, what does not pass is said of every call, and an
// initialization whose outcome it does not know it may repeat, with the same values and no others.
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { type ErrorCode, type Fields, PserverError } from "../../../src/protocol/index.ts";
import { RunningProgram } from "../../c/running-program.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { startTestBroker } from "../../support/broker.ts";
import { type FakeHost, startFakeHost } from "../../support/fake-host.ts";
import { HANG_MS } from "../../support/limits.ts";

const LEASE_MS = 600;

let library: BuiltLibrary;
let path: string;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
  path = await library.program("initialize");
});

afterAll(() => library?.remove());

async function startHost(): Promise<{ host: FakeHost; start: () => RunningProgram }> {
  const broker = await startTestBroker();
  onTestFinished(() => broker.remove());
  const host = await startFakeHost({ url: broker.url, job: "j", leaseMs: LEASE_MS });
  onTestFinished(() => host.close());
  const start = (): RunningProgram => {
    const program = new RunningProgram(path, [broker.url, "j"]);
    onTestFinished(() => program.kill());
    return program;
  };
  return { host, start };
}

function refusals(code: ErrorCode, count: number, details: Fields = {}): PserverError[] {
  return Array.from({ length: count }, () => new PserverError(code, "the host says so", details));
}

/** Waits until the host has been asked so often. */
async function asked(host: FakeHost, verb: string, times: number): Promise<void> {
  await vi.waitUntil(() => (host.received.get(verb) ?? 0) >= times, { timeout: HANG_MS });
}

test("requests are repeated after passing errors: when connecting, in calls, and in renewals", async () => {
  const { host, start } = await startHost();
  for (const verb of ["join", "begin", "declare", "finish"] as const) {
    host.refuse.set(verb, [
      ...refusals("JETSTREAM_UNAVAILABLE", 2),
      ...refusals("JOURNAL_FULL", 1),
      ...refusals("NO_BROKER", 1),
    ]);
  }
  const program = start();
  expect(await program.ask("init w 1 400000")).toBe("OK");
  // Longer than a lease: each time a renewal has spent its time, the next one tries.
  host.refuse.set("renew", refusals("JETSTREAM_UNAVAILABLE", 10));
  const before = host.received.get("renew") ?? 0;
  await asked(host, "renew", before + 12);
  expect(await program.ask("finish")).toBe("OK");
  program.finish();
  await program.end();
  expect(host.received.get("join")).toBeGreaterThanOrEqual(5);
});

test("an answer about a session that was left behind ends nothing", async () => {
  const { host, start } = await startHost();
  host.refuse.set("begin", [
    ...refusals("REJOIN", 1, { received: 1 }),
    ...refusals("SUPERSEDED", 1, { expected: 2, received: 1 }),
    ...refusals("REJOIN", 1, { received: 1 }),
  ]);
  const program = start();
  expect(await program.ask("init w 1 400000")).toBe("OK");
  expect([host.received.get("join"), host.received.get("begin")]).toEqual([2, 4]);
});

test.each([
  ["NO_JETSTREAM", {}],
  ["SUPERSEDED", { expected: 2, received: 1 }],
] as const)("a renewal that is refused with %s ends the client", async (code, details) => {
  const { host, start } = await startHost();
  const program = start();
  expect(await program.ask("init w 1 400000")).toBe("OK");
  host.refuse.set("renew", refusals(code, 1, details));
  await vi.waitUntil(async () => (await program.ask("init x 1 400000")) === code, {
    timeout: HANG_MS,
  });
  expect(await program.ask("finish")).toBe(code);
});

test("an initialization whose outcome is unknown may be repeated with the same values", async () => {
  const { host, start } = await startHost();
  const program = start();
  const unknown = async (what: string): Promise<void> => {
    host.stalled = true;
    let found = "";
    for (let timeoutMs = 1_500; found !== "OUTCOME_UNKNOWN"; timeoutMs *= 4) {
      found = await program.ask(`${what} ${timeoutMs}`);
      expect(["OUTCOME_UNKNOWN", "TIMEOUT", "NO_HOST"]).toContain(found);
    }
    host.stalled = false;
  };
  await unknown("init w 1");
  expect(await program.ask("init w 1 60000")).toBe("OK");
  expect(await program.ask("init w 1 60000")).toBe("ALREADY_INITIALIZED");
  await unknown("init x 1");
  expect(await program.ask("init x 2 60000")).toBe("ALREADY_INITIALIZED");
  expect(await program.ask("init x 1 60000")).toBe("ALREADY_INITIALIZED");
  await unknown("create y 3");
  expect(await program.ask("create y 3 60000")).toBe("OK");
  expect(await program.ask("finish")).toBe("OK");
  program.finish();
  await program.end();
});
