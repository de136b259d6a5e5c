// Proves that the C library says by name what keeps its calls from being done, and ends them in their
// time: a broker that refuses credentials or subjects, one that answers nothing any more, a newer
// session under the same id, a session that has ended, a journal that is lost, a client that is closed while it is used.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { PserverError } from "../../../src/protocol/index.ts";
import { type RunningProgram, runProgram } from "../../c/running-program.ts";
import { startProgram, startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { startTestBroker } from "../../support/broker.ts";
import { startFakeBroker } from "../../support/fake-broker.ts";
import { startFakeHost } from "../../support/fake-host.ts";
import { freeze, thaw } from "../../support/freeze.ts";
import { HANG_MS } from "../../support/limits.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };

const READER = `{
  user: reader, password: pw
  permissions: {
    publish: ["ps.j.block.*.*.reader.pull", "ps.j.lifecycle.reader.*"]
    subscribe: ["_INBOX_j.reader.>"]
  }
}`;

let library: BuiltLibrary;
let probe: string;
let close: string;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
  probe = await library.program("probe");
  close = await library.program("close");
});

afterAll(async () => {
  await library?.remove();
});

function start(url: string, trainer: string, timeoutMs = HANG_MS): RunningProgram {
  return startProgram(probe, [url, "j", trainer, `${timeoutMs}`]);
}

test("the broker refuses credentials and subjects", async () => {
  const broker = await startTestBroker({
    extraConfig: `authorization { users: [{ user: host, password: pw }, ${READER}] }`,
  });
  onTestFinished(() => broker.remove());
  const host = await startFakeHost({ url: broker.url, job: "j", user: "host", pass: "pw" });
  onTestFinished(() => host.close());
  const as = (user: string): string => broker.url.replace("://", `://${user}@`);
  expect(await start(as("reader:no"), "reader").line(0)).toMatch(
    /^DENIED .*refuses the credentials/,
  );
  expect(await start(as("reader:pw"), "other").line(0)).toMatch(/^DENIED /);
  const writer = start(as("host:pw"), "writer");
  expect(await writer.line(0)).toMatch(/^OK/);
  expect(await writer.ask("create")).toMatch(/^OK/);
  const reader = start(as("reader:pw"), "reader");
  await reader.line(0);
  expect(await reader.ask("get")).toMatch(/^1 OK/);
  expect(await reader.ask("push")).toMatch(/^DENIED .*ps\.j\.log\./);
  reader.finish();
  await reader.end();
});

/** A nonce for which a key's signature begins with a zero byte, or with another one. */
function nonceFor(key: ReturnType<typeof nkeys.createUser>, isZero: boolean): string {
  for (let i = 0; ; i++) {
    const nonce = `nonce-${i}`;
    if ((key.sign(new TextEncoder().encode(nonce))[0] === 0) === isZero) return nonce;
  }
}

test("a key is accepted whatever its signature begins with", async () => {
  const directory = await mkdtemp(join(tmpdir(), "pserver-refusals-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const key = nkeys.createUser();
  const variables = {
    NATS_NKEY: join(directory, "seed"),
    NATS_NKEY_PUBLIC: key.getPublicKey(),
  };
  await writeFile(variables.NATS_NKEY, key.getSeed());
  // Before, because the search takes seconds.
  const [omitted, sent] = [nonceFor(key, true), nonceFor(key, false)];
  const broker = await startFakeBroker({
    info: (connection) => ({ auth_required: true, nonce: connection <= 2 ? omitted : sent }),
    welcome: (line) => (line.includes('"sig":') ? "accept" : "refuse"),
  });
  onTestFinished(() => broker.close());
  const url = `nats://127.0.0.1:${broker.port}`;
  const program = startProgram(probe, [url, "j", "c", `${HANG_MS}`, `${HANG_MS}`], variables);
  const asking = vi.waitFor(() => expect(broker.received).toContain("lifecycle.c.join"), WAIT);
  expect(await Promise.race([asking.then(() => "let in"), program.line(0)])).toBe("let in");
});

test("what greets as a broker says nothing more", async () => {
  const broker = await startFakeBroker({ welcome: () => "ignore" });
  onTestFinished(() => broker.close());
  const url = `nats://127.0.0.1:${broker.port}`;
  const program = startProgram(probe, [url, "j", "c", `${HANG_MS}`, "1500"]);
  expect(await program.line(0)).toMatch(/^NO_BROKER .*127\.0\.0\.1/);
});

test("the broker answers nothing for a while", async () => {
  const job = await startServedJob();
  const program = start(job.broker.url, "c", 2_000);
  expect(await program.line(0)).toMatch(/^OK/);
  // Its calls are short for the sake of those below: a busy machine may need several.
  await expect.poll(() => program.ask("create"), { timeout: HANG_MS }).toMatch(/^OK/);
  await freeze(job.broker.current.pid);
  try {
    expect(await program.ask("push")).toMatch(/^OUTCOME_UNKNOWN /);
    expect(await program.ask("large")).toMatch(/^(OUTCOME_UNKNOWN|NO_BROKER) /);
    expect(await program.ask("get")).toMatch(/^(NO_HOST|NO_OWNER|NO_BROKER|TIMEOUT) /);
  } finally {
    thaw(job.broker.current.pid);
  }
  await expect
    .poll(() => program.ask("get"), { timeout: HANG_MS, interval: 100 })
    .toMatch(/^[12] OK/);
  program.finish();
  await program.end();
});

test("a newer session joins under the same id", async () => {
  const job = await startServedJob();
  const older = start(job.broker.url, "same");
  await older.line(0);
  expect(await older.ask("create")).toMatch(/^OK/);
  const newer = start(job.broker.url, "same");
  await newer.line(0);
  expect(await newer.ask("push")).toMatch(/^OK/);
  expect(await older.ask("push")).toMatch(/^SUPERSEDED /);
  expect(await older.ask("get")).toMatch(/^SUPERSEDED /);
  for (const program of [older, newer]) {
    program.finish();
    await program.end();
  }
});

test("the journal is lost or damaged", async () => {
  const broker = await startTestBroker();
  onTestFinished(() => broker.remove());
  const host = await startFakeHost({ url: broker.url, job: "j", shards: 1 });
  onTestFinished(() => host.close());
  const program = start(broker.url, "c", 600_000);
  await program.line(0);
  expect(await program.ask("create")).toMatch(/^OK/);
  const received = { generation: 1, seq: 9 };
  const expected = { generation: 1, seq: 1 };
  host.stalled = true;
  for (const details of [
    { expected, received },
    { from: 2, to: 9 },
  ]) {
    host.refuse.set("outcome", [new PserverError("JOURNAL_LOST", "the end is lost", details)]);
    expect(await program.ask("push")).toMatch(/^JOURNAL_LOST .*the end is lost/);
  }
  const details = { expected: 3, found: 4 };
  host.refuse.set("outcome", [new PserverError("JOURNAL_DAMAGED", "expected record 3", details)]);
  expect(await program.ask("push")).toMatch(/^JOURNAL_DAMAGED .*expected record 3/);
  // Lost is only what lies behind the end of the journal: this one is folded and answered.
  const end = { generation: 1, seq: 1_000 };
  host.refuse.set("outcome", [new PserverError("JOURNAL_LOST", "beyond", { expected: end })]);
  const asked = host.received.get("outcome") ?? 0;
  const push = program.ask("push");
  await expect
    .poll(() => host.received.get("outcome") ?? 0, { timeout: HANG_MS })
    .toBeGreaterThan(asked);
  host.stalled = false;
  expect(await push).toMatch(/^OK/);
  host.refuse.set("pull", [new PserverError("JOURNAL_LOST", "the end is lost", { received })]);
  expect(await program.ask("get")).toMatch(/^JOURNAL_LOST .*the end is lost/);
  program.finish();
  await program.end();
});

test("closing ends the calls of other threads", async () => {
  const job = await startServedJob();
  await runProgram(close, [job.broker.url, job.job, "5"]);
});
