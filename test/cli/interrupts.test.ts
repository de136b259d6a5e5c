// Proves, with a process that is an event emitter, what interrupts do: the first of any signal aborts with
// its name, the second ends at once with the code for interrupts, and the end of the process that started
// this one counts as one.
import { EventEmitter } from "node:events";
import { describe, expect, test } from "vitest";
import {
  type IgnorableSignal,
  type InterruptSource,
  ignoredSignals,
  type ProcessStart,
  takeIgnoredSignals,
  unlessAborted,
  untilAborted,
  watchInterrupts,
} from "../../src/cli/signals.ts";

class FakeProcess extends EventEmitter {
  readonly exits: unknown[] = [];
  readonly connected: boolean;
  isHeld = true;
  readonly channel = {
    unref: (): void => {
      this.isHeld = false;
    },
  };

  constructor(connected = false) {
    super();
    this.connected = connected;
  }

  exit(code?: number | string | null): never {
    this.exits.push(code);
    return undefined as never;
  }
}

const watch = (source: FakeProcess, readerGone?: AbortSignal): AbortSignal =>
  watchInterrupts(source as unknown as InterruptSource, readerGone);

describe.each(["SIGINT", "SIGTERM", "SIGHUP"])("%s", (name) => {
  test("aborts at first, and ends the process with 130 when it comes again", () => {
    const source = new FakeProcess();
    const signal = watch(source);
    expect(signal.aborted).toBe(false);
    source.emit(name);
    expect(signal.reason).toMatchObject({ code: "ABORTED", message: `interrupted by ${name}` });
    expect(source.exits).toEqual([]);
    source.emit(name);
    expect(source.exits).toEqual([130]);
  });
});

test("signals that it was started to ignore change nothing, the others do", () => {
  const source = new FakeProcess();
  const signal = watchInterrupts(
    source as unknown as InterruptSource,
    undefined,
    new Set<IgnorableSignal>(["SIGHUP", "SIGQUIT"]),
  );
  // Without a handler Node.js would end the process.
  for (const name of ["SIGHUP", "SIGQUIT", "SIGHUP"]) expect(source.emit(name)).toBe(true);
  expect(signal.aborted).toBe(false);
  source.emit("SIGTERM");
  expect(signal.reason.message).toBe("interrupted by SIGTERM");
  source.emit("SIGHUP");
  expect(source.exits).toEqual([]);
});

describe("the signals that a process was started to ignore", () => {
  const start = {
    hasTerminal: false,
    printsToFiles: true,
    isBackgroundJob: true,
    variable: undefined,
  };

  test.each<[ProcessStart, string[]]>([
    [{ ...start, variable: "" }, []],
    [{ ...start, variable: " HUP INT" }, ["SIGHUP", "SIGINT"]],
    [{ ...start, isBackgroundJob: false, variable: " TERM" }, ["SIGTERM"]],
    [start, ["SIGHUP", "SIGINT", "SIGQUIT"]],
    [{ ...start, isBackgroundJob: false }, ["SIGHUP"]],
    [{ ...start, hasTerminal: true, isBackgroundJob: false }, []],
    [{ ...start, printsToFiles: false }, ["SIGINT", "SIGQUIT"]],
  ])("%j: %j", (known, expected) => {
    expect([...ignoredSignals(known)]).toEqual(expected);
  });

  test("are taken from the environment once, so that what it starts is not told", () => {
    const environment = { PSERVER_IGNORED_SIGNALS: " HUP" };
    expect([...takeIgnoredSignals(environment)]).toEqual(["SIGHUP"]);
    expect(environment).toEqual({});
  });
});

test("two different signals count as two", () => {
  const source = new FakeProcess();
  const signal = watch(source);
  source.emit("SIGINT");
  source.emit("SIGTERM");
  expect(source.exits).toEqual([130]);
  expect(signal.reason.message).toBe("interrupted by SIGINT");
});

test("a process that was started with a channel ends with the one that started it", () => {
  const source = new FakeProcess(true);
  const signal = watch(source);
  expect(source.isHeld).toBe(false);
  source.emit("disconnect");
  expect(signal.reason).toMatchObject({ code: "ABORTED" });
  expect(source.exits).toEqual([]);
});

test("the end of the reader of its output counts as an interrupt, and only once", () => {
  const source = new FakeProcess();
  const readerGone = new AbortController();
  const signal = watch(source, readerGone.signal);
  expect(signal.aborted).toBe(false);
  readerGone.abort();
  readerGone.abort();
  expect(signal.reason).toMatchObject({ code: "ABORTED" });
  expect(source.exits).toEqual([]);
  source.emit("SIGINT");
  expect(source.exits).toEqual([130]);
});

test("a process without one does not look for it", () => {
  const source = new FakeProcess();
  const signal = watch(source);
  source.emit("disconnect");
  expect([signal.aborted, source.isHeld]).toEqual([false, true]);
});

test("waiting for an abort ends at once if it has come, else with it", async () => {
  await untilAborted(AbortSignal.abort());
  const controller = new AbortController();
  let isOver = false;
  const waiting = untilAborted(controller.signal).then(() => {
    isOver = true;
  });
  await new Promise(setImmediate);
  expect(isOver).toBe(false);
  controller.abort();
  await waiting;
});

test("work is waited for unless it is aborted first", async () => {
  const controller = new AbortController();
  expect(await unlessAborted(controller.signal, Promise.resolve(7))).toBe(7);
  const waiting = unlessAborted(controller.signal, new Promise(() => undefined));
  controller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
});
