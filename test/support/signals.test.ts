// Proves that a test cannot signal its own group, another one or every process for want of a pid.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { checkedPid, signalGroup, signalProcess } from "./signals.ts";

const sent = vi.fn<typeof process.kill>(() => true);
beforeEach(() => {
  sent.mockClear();
  vi.spyOn(process, "kill").mockImplementation(sent);
});
afterEach(() => vi.restoreAllMocks());

test.each([undefined, Number.NaN, 0, 1, -1, -700, 7.5])("%s is no process of a test", (pid) => {
  const message = `expected the pid of a process of the test, received ${pid}`;
  expect(() => signalProcess(pid, "SIGKILL")).toThrow(message);
  expect(() => signalGroup(pid, "SIGKILL")).toThrow(message);
  expect(() => checkedPid(pid)).toThrow(message);
  expect(sent).not.toHaveBeenCalled();
});

test("a process and a group get the signal", () => {
  signalProcess(700, "SIGCONT");
  signalGroup(800, "SIGTERM");
  expect(sent.mock.calls).toEqual([
    [700, "SIGCONT"],
    [-800, "SIGTERM"],
  ]);
});
