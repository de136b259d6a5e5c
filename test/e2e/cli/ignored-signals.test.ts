// Proves what becomes of a command that was started to ignore signals, by nohup or as a background job of a script,
// or whose terminal closes: it goes on, with all that it has started, and SIGTERM stops it in order. Run as users
// do, and as `node dist/pserver.js`, from the shells that are here.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { judgeByCommand } from "../../../src/cli/history/judge-by-command.ts";
import { runProgram } from "../../../src/cli/run/trainer-command.ts";
import { MAIN } from "../../cli/spawn-command.ts";
import { findPython } from "../../support/find-python.ts";
import { HANG_MS } from "../../support/limits.ts";
import { signalGroup, signalProcess } from "../../support/signals.ts";

const WAIT = { timeout: HANG_MS, interval: 50 };
const SHELLS = ["dash", "bash"].filter((name) => existsSync(`/bin/${name}`));

/** A run with one trainer, which notes that it runs and ends well when it is told to. */
const RUN = `run --shards 1 -- sh -c 'echo $$ >ready; while [ ! -e go ]; do sleep 0.1; done; echo trained; : >done'`;

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-signals-"));
  return () => rm(home, { recursive: true, force: true });
});

const isThere = (name: string): boolean => existsSync(join(home, name));
const untilThere = (name: string): Promise<void> =>
  vi.waitFor(() => expect(isThere(name)).toBe(true), WAIT);

/** Starts a line of a shell in a process group of its own; all that it prints goes to the file `log`. */
async function startLine(shell: string, line: string): Promise<ChildProcess> {
  const log = await open(join(home, "log"), "w");
  const child = spawn(`/bin/${shell}`, ["-c", line], {
    cwd: home,
    stdio: ["ignore", log.fd, log.fd],
    detached: true,
  });
  await log.close();
  onTestFinished(() => {
    if (child.exitCode === null && child.signalCode === null) signalGroup(child.pid, "SIGKILL");
  });
  return child;
}

/** The exit code of a run that was told to end, with what it printed. */
async function ended(child: ChildProcess): Promise<{ code: unknown; log: string }> {
  const end = once(child, "exit");
  await writeFile(join(home, "go"), "");
  const [code] = await end;
  return { code, log: await readFile(join(home, "log"), "utf8") };
}

const COMMANDS = [MAIN, `node ${MAIN}`];

test.each(COMMANDS)("under nohup a hangup changes nothing: %s", async (command) => {
  const child = await startLine("sh", `exec nohup ${command} ${RUN}`);
  await untilThere("ready");
  // As a shell does to all of a job.
  signalGroup(child.pid, "SIGHUP");
  const { code, log } = await ended(child);
  expect(log).toContain("[0] trained\n");
  expect(code).toBe(0);
  expect(log).not.toContain("again");
});

/** Each shell and each command: what a shell does to a background job, the command finds in either way. */
const cases = SHELLS.map((shell, i) => [shell, COMMANDS[i % COMMANDS.length] ?? MAIN] as const);

test.each(cases)("a background job of a script ignores Ctrl-C: %s, %s", async (shell, command) => {
  const child = await startLine(shell, `${command} ${RUN} & echo $! >pid; wait $!`);
  await untilThere("ready");
  const pid = Number(await readFile(join(home, "pid"), "utf8"));
  signalProcess(pid, "SIGINT");
  signalProcess(pid, "SIGQUIT");
  const { code, log } = await ended(child);
  expect(log).toContain("[0] trained\n");
  expect(code).toBe(0);
});

test.each(COMMANDS)("SIGTERM stops it in order under nohup: %s", async (command) => {
  const child = await startLine("sh", `exec nohup ${command} ${RUN}`);
  await untilThere("ready");
  signalProcess(child.pid, "SIGTERM");
  const [code] = await once(child, "exit");
  expect(await readFile(join(home, "log"), "utf8")).toContain("interrupted by SIGTERM");
  expect([code, isThere("done")]).toEqual([130, false]);
});

test.each(["SIGHUP", "SIGINT"] as const)("%s stops what was started to heed it", async (signal) => {
  const child = await startLine("sh", `exec ${MAIN} ${RUN}`);
  await untilThere("ready");
  signalProcess(child.pid, signal);
  const [code] = await once(child, "exit");
  expect(await readFile(join(home, "log"), "utf8")).toContain(`interrupted by ${signal}`);
  expect([code, isThere("done")]).toEqual([130, false]);
});

test("a trainer is not told what the launcher was started to ignore, nor are its own variables changed", async () => {
  const print = "run --shards 1 -- sh -c 'env >variables'";
  const child = await startLine("sh", `exec nohup ${MAIN} ${print}`);
  const [code] = await once(child, "exit");
  expect(code).toBe(0);
  const variables = await readFile(join(home, "variables"), "utf8");
  expect(variables).not.toMatch(/^(?:PSERVER_IGNORED_SIGNALS|ps_\w+)=/m);
});

test("programs that a command runs have process groups of their own, which no terminal signals", async () => {
  const group = ["sh", "-c", "echo $$ $(cut -d ' ' -f 5 /proc/$$/stat)"] as const;
  const { stdout } = await runProgram(group, { environment: process.env, timeoutMs: HANG_MS });
  const judged = new PassThrough();
  const [stdin, stderr] = [new PassThrough(), judged];
  const { signal } = new AbortController();
  const context = { stdin, stdout: judged, stderr, environment: process.env, signal };
  const model = { write: async () => {}, point: "" };
  expect(await judgeByCommand({ ...context, setExitCode: () => {} }, group, model)).toBe("good");
  for (const text of [stdout, String(judged.read())]) expect(text).toMatch(/^(\d+) \1\n$/);
});

/** Runs a command at a terminal of its own, closes that when it prints "at work", and tells how it ended. */
const AT_TERMINAL = `
import fcntl, os, signal, subprocess, sys, termios
ours, theirs = os.openpty()
def begin():
    os.setsid()
    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
    if sys.argv[1] == "ignored":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
command = subprocess.Popen(sys.argv[2:], stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=begin)
os.close(theirs)
printed = b""
while b"at work" not in printed:
    printed += os.read(ours, 4096)
os.close(ours)
if sys.argv[1] == "ignored":
    open("closed", "w").close()
sys.exit(command.wait() % 256)
`;

test.each([
  ["ignored", 0, true],
  ["heeded", 130, false],
])(
  "where hangups are %s, a run whose terminal closes ends with %i",
  async (hangups, code, isDone) => {
    const train =
      "echo at work; while [ ! -e closed ]; do sleep 0.1; done; echo more; echo and more >&2; : >done";
    const args = [
      "-c",
      AT_TERMINAL,
      hangups,
      MAIN,
      "run",
      "--shards",
      "1",
      "--",
      "sh",
      "-c",
      train,
    ];
    const child = spawn(await findPython("os"), args, { cwd: home, stdio: "ignore" });
    onTestFinished(() => void child.kill("SIGKILL"));
    expect(await once(child, "exit")).toEqual([code, null]);
    expect(isThere("done")).toBe(isDone);
  },
);
