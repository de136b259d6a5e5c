// Proves that real commands end as the help says: each exit code by a command that fails in that way,
// waits bounded by --timeout though what they wait for never answers, and Ctrl-C while they wait.

import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { type Finished, run, start } from "../cli/spawn-command.ts";
import { startFakeBroker } from "../support/fake-broker.ts";
import { freeze, thaw } from "../support/freeze.ts";
import { TestJob } from "../support/host.ts";
import { HANG_MS, QUICK_LEASE_MS } from "../support/limits.ts";

let home: string;
let job: TestJob;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-exits-"));
  process.chdir(home);
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, job: "j", shards: 1 });
  const host = await job.host({ modelDirectory: home });
  const client = await job.trainer("a", { job: "j" });
  await client.beginInit();
  await client.initParam("w", Float32Array.of(1, 2));
  await client.initParam("fixed", Float32Array.of(1), { static: true });
  await client.finishInit();
  await client.close();
  frozen = { freeze: () => freeze(host.pid), thaw: () => thaw(host.pid) };
  await writeFile(join(home, "w.json"), "[3,4]");
  await writeFile(join(home, "one.json"), "[3]");
});
afterAll(async () => {
  await job.remove();
  process.chdir(packageRoot());
  await rm(home, { recursive: true, force: true });
});

/**
 * A command against the job, whose hosts do not answer, with a limit to its time. One that a busy machine
 * has not let reach the broker within it gets a longer one.
 */
async function atTimeLimit(...args: string[]): Promise<Finished> {
  for (let timeoutMs = 4_000; ; timeoutMs *= 4) {
    const end = await at(...args, "--timeout", `${timeoutMs}ms`);
    if (end.code !== 2 || timeoutMs * 4 > HANG_MS) return end;
  }
}

let frozen: { freeze(): Promise<void>; thaw(): void };

/** A command against the job. */
const at = (...args: string[]): Promise<Finished> =>
  run([...args, "--url", job.broker.url, "--job", "j"]);

/** An address where somebody listens and says nothing; `dialled` settles with the first connection. */
async function silence(): Promise<{ readonly url: string; readonly dialled: Promise<unknown> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket)).listen(0, "127.0.0.1");
  const dialled = once(server, "connection");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  return { url: `nats://127.0.0.1:${port}`, dialled };
}

describe("a command ends with", () => {
  test.each([
    [0, ["get", "w"], ""],
    [0, ["set", "w", "w.json"], "set w"],
    [1, ["load", "runs/m.npz"], "ALREADY_INITIALIZED: "],
    [3, ["get", "none"], "UNKNOWN_PARAMETER: "],
    [3, ["set", "w", "one.json"], "BAD_LENGTH: "],
    [3, ["get", "w", "--out", "w.pt"], "BAD_VALUE: "],
    [3, ["save", "w.safetensor"], "BAD_PATH: "],
    [3, ["load", "w.json"], "BAD_FILE: "],
    [4, ["set", "fixed", "one.json"], "STATIC: "],
    [6, ["load", "none.npz"], "IO: "],
    [6, ["get", "w", "--out", "no/such/w.npy"], "the directory no/such does not exist"],
    [128, ["get", "w", "--timeout", "0"], "expected a duration"],
  ] as const)("%i: %j", async (code, args, text) => {
    if (args[1] === "runs/m.npz") expect(await at("save", "runs/m.npz")).toMatchObject({ code: 0 });
    const end = await at(...args);
    expect(end.stderr).toContain(text);
    expect(end.code).toBe(code);
  });

  test.each([
    [2, ["status", "--url", "nats://127.0.0.1:1", "--timeout", "1s"], "NO_BROKER: "],
    [2, ["host", "--etcd", "http://127.0.0.1:1", "--job", "e"], "NO_ETCD: "],
  ])("%i: %j", async (code, args, text) => {
    const environment = { PSERVER_URL: job.broker.url };
    const end = await run(args, { environment });
    expect(end.stderr).toContain(text);
    expect(end.code).toBe(code);
  });

  test.each([
    ["get", "w"],
    ["host"],
    ["host", "--replicas", "3"],
    ["archive", "archive"],
    ["recover"],
  ])("4: a broker that is too old, for %s", async (...args) => {
    const broker = await startFakeBroker({ info: { version: "2.9.10", jetstream: true } });
    onTestFinished(() => broker.close());
    const url = `nats://127.0.0.1:${broker.port}`;
    const { code, stdout, stderr } = await run([...args, "--url", url, "--job", "j"]);
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toMatch(/BROKER_TOO_OLD: .*2\.11\.2 or newer.*received 2\.9\.10\nhint: /s);
  });

  test("1: the doctor, if the broker is too old", async () => {
    const broker = await startFakeBroker({ info: { version: "2.11.1", jetstream: true } });
    onTestFinished(() => broker.close());
    const url = `nats://127.0.0.1:${broker.port}`;
    const { code, stdout } = await run(["doctor", "--url", url, "--job", "j"]);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /FAIL +broker: BROKER_TOO_OLD: .*2\.11\.1\n +-> install nats-server 2\.12/s,
    );
  });

  test("2: a job without a host", async () => {
    const end = await run(["ls", "--url", job.broker.url, "--job", "nobody"]);
    expect(end).toMatchObject({ code: 2, stderr: expect.stringContaining("NO_HOST: ") });
  });
});

describe("where nobody answers", () => {
  test("--timeout bounds the wait for a broker", async () => {
    const { url } = await silence();
    const end = await run(["status", "--url", url, "--timeout", "700ms"]);
    expect(end.stderr).toContain("not finished within 700 ms");
    expect(end.code).toBe(2);
  });

  test("--timeout bounds the wait for a host, and the outcome is unknown", async () => {
    await frozen.freeze();
    onTestFinished(() => frozen.thaw());
    const commands = [["ls"], ["get", "w"], ["status"], ["set", "w", "w.json"]];
    const ends = await Promise.all(commands.map((command) => atTimeLimit(...command)));
    for (const end of ends) {
      expect(end.stderr).toMatch(/TIMEOUT: .*not finished within \d+ ms/);
      expect(end.code).toBe(7);
    }
  });

  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s ends the wait", async (signal) => {
    const { url, dialled } = await silence();
    const running = start(["status", "--url", url, "--timeout", "1h"]);
    await dialled;
    running.child.kill(signal);
    const end = await running.finished;
    expect(end.stderr).toMatch(/^pserver: ABORTED: /);
    expect(end.code).toBe(130);
  });

  test("a host that starts is interrupted", async () => {
    const { url, dialled } = await silence();
    const running = start(["host", "--url", url, "--job", "j"], { cwd: home });
    await dialled;
    running.child.kill("SIGINT");
    expect(await running.finished).toMatchObject({
      code: 130,
      stderr: expect.stringContaining("ABORTED: interrupted by SIGINT"),
    });
  });
});
