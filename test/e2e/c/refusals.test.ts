// Proves that the C library says by name what keeps its calls from being done, and ends them in their
// time: a broker that refuses credentials or subjects, one that answers nothing any more, a newer
// session under the same id, a session that has ended, a client that is closed while it is used.
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type RunningProgram, runProgram } from "../../c/running-program.ts";
import { startProgram, startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { startTestBroker } from "../../support/broker.ts";
import { startFakeHost } from "../../support/fake-host.ts";
import { freeze, thaw } from "../../support/freeze.ts";
import { HANG_MS } from "../../support/limits.ts";

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

test("the broker answers nothing for a while", async () => {
  const job = await startServedJob();
  const program = start(job.broker.url, "c", 2_000);
  await program.line(0);
  expect(await program.ask("create")).toMatch(/^OK/);
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

test("closing ends the calls of other threads", async () => {
  const job = await startServedJob();
  await runProgram(close, [job.broker.url, job.job, "5"]);
});
