// Proves the search for a broker with scripts that play some: the order of the directories, what is skipped
// and what ends the search; and which process a lock's identity means, with real processes.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { findBroker } from "../../src/broker/index.ts";
import { signalTree } from "../../src/broker/set-up-broker.ts";
import { identifyProcess, isAlive } from "../../src/system/process-identity.ts";
import { HANG_MS } from "../support/limits.ts";
import { checkedPid, signalProcess } from "../support/signals.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-find-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

/** A player of nats-server in a directory below the test's. */
async function player(directory: string, lines: string, mode = 0o755): Promise<string> {
  const path = join(home, directory, "nats-server");
  await mkdir(join(home, directory), { recursive: true });
  await writeFile(path, `#!/bin/sh\n${lines}\n`);
  await chmod(path, mode);
  return path;
}

const says = (version: string): string => `echo nats-server: v${version}`;

function startSleep(): ChildProcess & { pid: number } {
  const child = spawn("sleep", ["600"], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child as ChildProcess & { pid: number };
}

test("the package's own comes first, then that of set-up, then those of PATH in their order", async () => {
  const first = await player("a", says("2.11.5"));
  const second = await player("b", says("2.11.6"));
  const PATH = `:${join(home, "a")}:${join(home, "b")}`;
  const environment = { XDG_DATA_HOME: join(home, "data"), PATH };
  const found = async (): Promise<string> =>
    (await findBroker(environment, undefined, join(home, "package"))).path;
  expect(await found()).toBe(first);
  const made = await player("data/nats-pserver/bin", says("2.11.7"));
  expect(await found()).toBe(made);
  const own = await player("package/.tools/bin", says("2.11.8"));
  expect(await found()).toBe(own);
  // Programs that are too old or cannot be executed are skipped.
  await player("package/.tools/bin", says("2.8.4"));
  expect(await found()).toBe(made);
  await player("data/nats-pserver/bin", says("2.8.4"));
  await player("a", says("2.11.5"), 0o644);
  expect(await found()).toBe(second);
});

test("one that is named comes before all others, and is asked for its version once", async () => {
  const calls = join(home, "calls");
  const path = await player("named", `echo "$*" >>${calls}\n${says("2.11.9")}`);
  const environment = { PSERVER_NATS_SERVER: path, PATH: process.env["PATH"] };
  expect(await findBroker(environment)).toEqual({ path, version: "2.11.9" });
  expect(await readFile(calls, "utf8")).toBe("--version\n");
});

test("an abort ends the question for a version", async () => {
  const pidFile = join(home, "pid");
  const path = await player(
    "named",
    `echo $$ >${pidFile}.new; mv ${pidFile}.new ${pidFile}; exec sleep 600`,
  );
  const aborting = new AbortController();
  const finding = findBroker({ PSERVER_NATS_SERVER: path }, aborting.signal);
  finding.catch(() => {});
  await vi.waitFor(() => expect(existsSync(pidFile)).toBe(true), WAIT);
  aborting.abort();
  await expect(finding).rejects.toMatchObject({ code: "ABORTED", details: { path } });
  const pid = Number(await readFile(pidFile, "utf8"));
  await vi.waitFor(() => expect(identifyProcess(pid)).toBeUndefined(), WAIT);
});

test("an abort does not wait for a program that ignores SIGTERM", async () => {
  const pidFile = join(home, "pid");
  const path = await player(
    "named",
    `trap "" TERM; echo $$ >${pidFile}.new; mv ${pidFile}.new ${pidFile}; while :; do sleep 1; done`,
  );
  const aborting = new AbortController();
  const finding = findBroker({ PSERVER_NATS_SERVER: path }, aborting.signal);
  finding.catch(() => {});
  await vi.waitFor(() => expect(existsSync(pidFile)).toBe(true), WAIT);
  const pid = Number(await readFile(pidFile, "utf8"));
  onTestFinished(() => void signalProcess(pid, "SIGKILL"));
  aborting.abort();
  await expect(finding).rejects.toMatchObject({ code: "ABORTED" });
  expect(identifyProcess(pid)).toBeDefined();
});

describe("the identity of a process", () => {
  test("is that of the process while it lives, and no other's", async () => {
    const child = startSleep();
    await once(child, "spawn");
    const identity = identifyProcess(child.pid);
    expect(identity).toMatchObject({ pid: child.pid });
    expect(identity !== undefined && isAlive(identity)).toBe(true);
    const own = identifyProcess(process.pid);
    expect(own?.birth).not.toBe(identity?.birth);
    expect(isAlive({ pid: child.pid, birth: own?.birth ?? "" })).toBe(false);
    child.kill("SIGKILL");
    await once(child, "close");
    expect(identity !== undefined && isAlive(identity)).toBe(false);
  });

  test("is found behind a name with blanks and parentheses", async () => {
    const path = join(home, "a) S 1 (b");
    await writeFile(path, "#!/bin/sh\nread line\n", { mode: 0o755 });
    const child = spawn(path, { stdio: ["pipe", "ignore", "ignore"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    await once(child, "spawn");
    const pid = checkedPid(child.pid);
    await vi.waitFor(
      async () => expect(await readFile(`/proc/${pid}/comm`, "utf8")).toBe("a) S 1 (b\n"),
      WAIT,
    );
    expect(identifyProcess(pid)?.birth).toMatch(/^[0-9a-f]{8}-\d{2,}$/);
  });

  test("of one that has ended and is not waited for yet is none", async () => {
    // The shell becomes a program that waits for no child; before that it might wait for one that has ended.
    const untilReplaced = `until read name </proc/$$/comm && [ "$name" = sleep ]; do :; done`;
    const zombie = spawn("sh", ["-c", `${untilReplaced} & echo $!; exec sleep 600`]);
    onTestFinished(() => void zombie.kill("SIGKILL"));
    const [text] = await once(zombie.stdout, "data");
    await vi.waitFor(() => expect(identifyProcess(Number(text))).toBeUndefined(), WAIT);
    expect(existsSync(`/proc/${Number(text)}`)).toBe(true);
  });
});

test("a signal to a tree of processes reaches grandchildren in groups of their own, and no others", async () => {
  const other = startSleep();
  const child = spawn("sh", ["-c", "setsid sh -c 'sleep 600 & echo $!; wait' & wait"]);
  onTestFinished(() => void child.kill("SIGKILL"));
  const [text] = await once(child.stdout, "data");
  const ended = once(child, "close");
  await signalTree(checkedPid(child.pid), "SIGTERM");
  expect(await ended).toEqual([null, "SIGTERM"]);
  await vi.waitFor(() => expect(identifyProcess(Number(text))).toBeUndefined(), WAIT);
  expect(identifyProcess(other.pid)).toBeDefined();
});
