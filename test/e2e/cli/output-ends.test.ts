// Proves what becomes of a command whose output cannot go on: on a full disk it fails with that reason,
// Ctrl-C ends one whose reader takes nothing, a server without a reader of its messages serves on, and one
// that writes data which nobody reads any more stops in order.
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { identifyProcess } from "../../../src/system/process-identity.ts";
import { MAIN, type Running, run, start } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { signalProcess } from "../../support/signals.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-output-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const startUp = (...more: string[]): Running =>
  start(["up", "--port", "0", "--shards", "1", "--store", join(home, "up"), ...more]);

/** Data of a command on a disk without space. */
const onFullDisk = (...args: string[]): Promise<unknown> =>
  promisify(execFile)("sh", ["-c", 'exec "$0" "$@" >/dev/full', process.execPath, MAIN, ...args]);

describe("on a full disk", () => {
  test("a command fails with one line that says so", async () => {
    await expect(onFullDisk("completion", "bash")).rejects.toMatchObject({
      code: 6,
      stderr:
        "pserver: DISK_FULL: cannot write to the standard output: ENOSPC: no space left on device\n",
    });
  });

  test("--json makes the error one JSON value", async () => {
    await expect(onFullDisk("setup", "--json")).rejects.toMatchObject({
      code: 6,
      stderr: expect.stringMatching(/^\{"error":\{"code":"DISK_FULL",.*\}\n$/),
    });
  });
});

test("a run on a full disk goes on, and says once what it cannot write", async () => {
  const line = 'exec "$0" "$@" >/dev/full';
  const train = ["--", "sh", "-c", "echo lost; echo lost, too"];
  const args = ["-c", line, process.execPath, MAIN, "run", "-n", "2", "--shards", "1", ...train];
  const { stderr } = await promisify(execFile)("sh", args, { cwd: home });
  expect(stderr.match(/DISK_FULL: cannot write to the standard output/g)).toHaveLength(1);
  expect(stderr).toContain("ranks 0-1  ended well");
});

test("Ctrl-C ends a command whose reader takes nothing", async () => {
  const job = await TestJob.start({ job: "j", shards: 1 });
  onTestFinished(() => job.remove());
  await job.host();
  const client = await job.trainer("a");
  await client.beginInit();
  await client.initParam("w", new Float32Array(2 ** 20));
  await client.finishInit();
  const running = start(["get", "w", "--json", "--url", job.broker.url, "--job", "j"]);
  const { stdout } = running.child;
  stdout.once("data", () => stdout.pause());
  await once(stdout, "pause");
  running.child.kill("SIGINT");
  const [code] = await once(running.child, "exit");
  stdout.resume();
  await running.finished;
  expect(JSON.parse(running.errors())).toMatchObject({
    error: { code: "ABORTED", message: "interrupted by SIGINT" },
  });
  expect(code).toBe(130);
});

describe("without a reader of its messages", () => {
  test("a command ends with its own exit code", async () => {
    const wrong = start(["stauts"]);
    wrong.child.stderr.destroy();
    expect(await wrong.finished).toMatchObject({ code: 128 });
    const unreachable = start(["status", "--url", "nats://127.0.0.1:1", "--timeout", "1s"]);
    unreachable.child.stderr.destroy();
    expect(await unreachable.finished).toMatchObject({ code: 2 });
  });

  test("a server serves on, and stops in order", async () => {
    const up = startUp("--json");
    const ready = JSON.parse(await up.firstLine);
    up.child.stderr.destroy();
    signalProcess(ready.brokers[0].pid, "SIGKILL");
    // It has told that the broker ended, and starts it again.
    await vi.waitFor(async () => {
      expect(await run(["status", "--url", ready.url])).toMatchObject({ code: 0 });
    }, WAIT);
    up.child.kill("SIGINT");
    expect(await up.finished).toMatchObject({ code: 0 });
    expect(identifyProcess(ready.brokers[0].pid)).toBeUndefined();
  });
});

/** Runs two trainers, each a line of a shell. */
const startRun = (line: string): Running =>
  start(["run", "-n", "2", "--store", join(home, "up"), "--", "sh", "-c", line]);

/** Who has not given the store back. */
const claims = (): Promise<string[]> => readdir(join(home, "up", "store", "lock"));

test("trainers whose messages nobody reads are not held up", async () => {
  const running = startRun("yes | head -c 1000000 >&2");
  running.child.stderr.destroy();
  expect(await running.finished).toMatchObject({ code: 0 });
});

describe("without a reader of its data", () => {
  test("a command ends with 0, as one that is done", async () => {
    const help = start(["help"]);
    help.child.stdout.destroy();
    expect(await help.finished).toMatchObject({ code: 0, stderr: "" });
  });

  test("a server that cannot say where it is stops in order", async () => {
    const up = startUp("--hosts", "2");
    up.child.stdout.destroy();
    expect(await up.finished).toMatchObject({ code: 0 });
    expect(up.errors()).toContain("stopping");
    expect(await claims()).toEqual([]);
  });

  test("trainers are stopped in order, and then their server", async () => {
    const running = startRun("yes");
    await running.firstLine;
    running.child.stdout.destroy();
    expect(await running.finished).toMatchObject({ code: 130 });
    expect(running.errors()).toMatch(/ranks 0-1 +stopped\n/);
    expect(running.errors()).toContain("ABORTED: interrupted by the end of the reader");
    // An old broker is warned of at the start; what stops is not.
    expect(running.errors()).not.toMatch(/warning: (?!nats-server \S+ works, but)/);
    expect(await claims()).toEqual([]);
  });

  test("a server that has said where it is serves on, and stops in order", async () => {
    const up = startUp();
    await up.firstLine;
    const url = /nats:\S+/.exec(up.output())?.[0] ?? "";
    up.child.stdout.destroy();
    expect(await run(["status", "--url", url])).toMatchObject({ code: 0 });
    up.child.kill("SIGINT");
    expect(await up.finished).toMatchObject({ code: 0 });
    expect(up.errors()).toContain("stopping");
  });
});
