// Proves what surrounds a broker's process, with scripts that play one: its process group, its end with
// this process, its log and its clean-up to the last line, and that a stop is patient for 15 s.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { BrokerProcess } from "../../src/broker/start-broker.ts";
import { identifyProcess } from "../../src/system/process-identity.ts";
import { HANG_MS } from "../support/limits.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "pserver-broker-process-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** A player of nats-server that has printed "up". */
async function play(
  lines: string,
  { afterExit = async (): Promise<void> => {}, type = BrokerProcess } = {},
): Promise<BrokerProcess> {
  const path = join(dir, "nats-server");
  await writeFile(path, `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  let heard: (line: string) => void = () => {};
  const isUp = new Promise<string>((resolve) => {
    heard = resolve;
  });
  const broker = await type.spawn(path, [], process.env, { afterExit, onLog: heard });
  onTestFinished(() => broker.kill());
  expect(await isUp).toBe("up");
  return broker;
}

test("it has a process group of its own, which Ctrl-C does not reach", async () => {
  const broker = await play("echo up >&2; exec sleep 600");
  const stat = await readFile(`/proc/${broker.pid}/stat`, "utf8");
  const [, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  expect(Number(group)).toBe(broker.pid);
});

test("a stop sends SIGTERM, SIGKILL only after 15 s, and leaves no timer behind", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const broker = await play(`trap "" TERM; echo up >&2; while :; do sleep 1; done`);
  const sent = vi.spyOn(broker, "signal");
  const stopped = broker.stop();
  await vi.advanceTimersByTimeAsync(14_999);
  expect(sent.mock.calls).toEqual([["SIGTERM"]]);
  await vi.advanceTimersByTimeAsync(1);
  expect(sent.mock.calls).toEqual([["SIGTERM"], ["SIGKILL"]]);
  await stopped;
  const quick = await play("echo up >&2; exec sleep 600");
  await quick.stop();
  expect(vi.getTimerCount()).toBe(0);
});

test("at the exit of this process it is sent SIGTERM, as for a stop in order", async () => {
  vi.resetModules();
  const { BrokerProcess: type } = await import("../../src/broker/start-broker.ts");
  const before = process.listeners("exit");
  const broker = await play(
    `trap "exit 7" TERM; echo up >&2; while :; do sleep 0.1; done`,
    // Loaded anew: its one listener of the exit is made by this broker.
    { type: type as typeof BrokerProcess },
  );
  const added = process.listeners("exit").filter((listener) => !before.includes(listener));
  expect(added).toHaveLength(1);
  onTestFinished(() => void process.removeListener("exit", added[0] ?? (() => {})));
  for (const listener of added) listener.call(process, 0);
  expect(await broker.exited).toEqual({ code: 7, signal: null });
});

test("its end is told with the last line of its log, which what it has started may write", async () => {
  const pipe = join(dir, "pipe");
  const broker = await play(`mkfifo ${pipe}; cat ${pipe} >&2 & echo up >&2; exit 3`);
  const atEnd = broker.exited.then((exit) => ({ exit, lines: broker.lastLines() }));
  await vi.waitFor(() => expect(identifyProcess(broker.pid)).toBeUndefined(), WAIT);
  await writeFile(pipe, "late\n");
  expect(await atEnd).toEqual({ exit: { code: 3, signal: null }, lines: ["up", "late"] });
});

test("its end is told even if the clean-up fails", async () => {
  const broker = await play("echo up >&2; exit 3", {
    afterExit: () => Promise.reject(new Error("read-only")),
  });
  expect(await broker.exited).toEqual({ code: 3, signal: null });
});
