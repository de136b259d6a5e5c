// Proves that setting a broker up finds and asks for what it promises, and that an abort ends all that the
// set-up has started. A script plays Go, with processes of its own that would go on for minutes.
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { setUpBroker } from "../../src/broker/index.ts";
import { identifyProcess } from "../../src/broker/process-identity.ts";
import { HANG_MS } from "../support/limits.ts";
import { signalProcess } from "../support/signals.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };

/** Too old to be used without an attempt to install a better one. */
const OLD = "2.9.25";

let home: string;
let environment: Record<string, string>;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-set-up-"));
  const bin = join(home, "bin");
  await mkdir(bin);
  environment = { PATH: `${bin}:/usr/bin:/bin`, HOME: home, XDG_DATA_HOME: join(home, "data") };
});
afterEach(() => rm(home, { recursive: true, force: true }));

/** A program of this name that others find first. */
async function program(name: string, lines: string): Promise<string> {
  const path = join(home, "bin", name);
  await writeFile(path, `#!/bin/sh\n${lines}\n`);
  await chmod(path, 0o755);
  return path;
}

/** Names an old broker, so that a better one is to be installed. */
async function nameOldBroker(): Promise<string> {
  const path = await program("old-broker", `echo nats-server: v${OLD}`);
  environment["PSERVER_NATS_SERVER"] = path;
  return path;
}

const setUp = (messages: string[], signal = new AbortController().signal) =>
  setUpBroker({ environment, onMessage: (text) => messages.push(text), signal });

test("an abort ends all that the set-up has started", async () => {
  await nameOldBroker();
  const pids = join(home, "pids");
  await program(
    "go",
    `[ "$1" = version ] && exit\nsleep 600 &\necho $$ $! >${pids}.new\nmv ${pids}.new ${pids}\nwait`,
  );
  const aborting = new AbortController();
  const messages: string[] = [];
  const setting = setUp(messages, aborting.signal);
  setting.catch(() => {});
  await vi.waitFor(() => expect(existsSync(pids)).toBe(true), WAIT);
  const started = (await readFile(pids, "utf8")).trim().split(" ").map(Number);
  onTestFinished(() => {
    for (const pid of started.filter((each) => identifyProcess(each)))
      signalProcess(pid, "SIGKILL");
  });
  const reason = new Error("enough");
  aborting.abort(reason);
  await expect(setting).rejects.toBe(reason);
  await vi.waitFor(() => expect(started.filter((pid) => identifyProcess(pid))).toEqual([]), WAIT);
  expect(started).toHaveLength(2);
});

test("an abort that has come already starts nothing", async () => {
  await nameOldBroker();
  const mark = join(home, "mark");
  await program("go", `touch ${mark}`);
  const aborting = new AbortController();
  aborting.abort(new Error("enough"));
  await expect(setUp([], aborting.signal)).rejects.toMatchObject({ code: "ABORTED" });
  expect(existsSync(mark)).toBe(false);
});

test("an old broker is kept where Go cannot build a better one, and every line is told", async () => {
  const path = await nameOldBroker();
  const calls = join(home, "calls");
  await program(
    "go",
    `[ "$1" = version ] && exit\necho "$GOBIN $*" >${calls}\necho no such module >&2\nexit 1`,
  );
  const messages: string[] = [];
  expect(await setUp(messages)).toEqual({ path, version: OLD });
  const directory = join(home, "data", "nats-pserver", "bin");
  expect(await readFile(calls, "utf8")).toMatch(new RegExp(`^${directory} install .*nats-server`));
  expect(messages[0]).toMatch(/^building nats-server 2\.12\.\d+ with Go$/);
  expect(messages[1]).toContain("no such module");
  expect(messages[2]).toBe(
    `WARNING: ${path} is nats-server ${OLD}; 2.12 is recommended, 2.10.28 and 2.11.2 are the oldest without these gaps.`,
  );
});

test("a broker that is new enough is used as it is", async () => {
  const path = await program("new-broker", "echo nats-server: v2.12.3");
  environment["PSERVER_NATS_SERVER"] = path;
  const mark = join(home, "mark");
  await program("go", `touch ${mark}`);
  expect(await setUp([])).toEqual({ path, version: "2.12.3" });
  expect(existsSync(mark)).toBe(false);
});

test("a named program that cannot be used is refused, and none is installed instead", async () => {
  const mark = join(home, "mark");
  await program("go", `touch ${mark}`);
  environment["PSERVER_NATS_SERVER"] = await program("older", "echo nats-server: v2.8.4");
  await expect(setUp([])).rejects.toMatchObject({ code: "BROKER_TOO_OLD" });
  expect(existsSync(mark)).toBe(false);
});

test("a set-up that fails ends with the last that it said", async () => {
  await nameOldBroker();
  // The note of an earlier failure cannot be removed.
  await mkdir(join(home, "data", "nats-pserver", "go-failed"), { recursive: true });
  const messages: string[] = [];
  await expect(setUp(messages)).rejects.toMatchObject({
    code: "NO_BROKER",
    message: expect.stringMatching(/go-failed.*directory/),
  });
  expect(messages.at(-1)).toMatch(/go-failed.*directory/);
});
