// Proves where a command's text goes and in which form: data apart from messages, messages of servers
// with the time, and with --json nothing but JSON. And how wide a line of data may be.
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { Output } from "../../../src/cli/output/output.ts";
import { PserverError } from "../../../src/protocol/errors.ts";

const CLOCK = (): Date => new Date(Date.UTC(2026, 10, 22, 17, 0, 0, 5));

function print(json: boolean, clock?: () => Date): { out: string; err: string } {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const output = Output.open({ stdout, stderr }, {}, { json }, clock);
  output.lines(["data"]);
  output.message("a message");
  output.warning("a warning");
  return { out: String(stdout.read() ?? ""), err: String(stderr.read() ?? "") };
}

test("messages have no time of their own", () => {
  expect(print(false)).toEqual({ out: "data\n", err: "a message\nwarning: a warning\n" });
  expect(print(true).err).toBe('{"warning":"a warning"}\n');
});

test("messages of what serves begin with the time, in text and in JSON", () => {
  const time = "2026-11-22T17:00:00.005Z";
  expect(print(false, CLOCK).err).toBe(`${time} a message\n${time} warning: a warning\n`);
  expect(JSON.parse(print(true, CLOCK).err)).toEqual({ time, warning: "a warning" });
});

test.each([
  [{ isTTY: true, columns: 60 }, { COLUMNS: "90" }, 60],
  [{ isTTY: true, columns: 0 }, { COLUMNS: "90" }, 90],
  [{ isTTY: true, columns: 0 }, {}, Number.POSITIVE_INFINITY],
  [{}, { COLUMNS: "90" }, 90],
  [{ columns: 60 }, {}, Number.POSITIVE_INFINITY],
  [{}, { COLUMNS: "0" }, Number.POSITIVE_INFINITY],
  [{}, { COLUMNS: "wide" }, Number.POSITIVE_INFINITY],
])("a stream %j in environment %j has %d columns", (stream, environment, columns) => {
  const stdout = Object.assign(new PassThrough(), stream);
  const { width } = Output.open({ stdout, stderr: new PassThrough() }, environment, {});
  expect(width).toBe(columns);
});

test("data is the same with a clock", () => {
  expect(print(false, CLOCK).out).toBe("data\n");
});

test("a stream whose reader takes nothing ends with the reason of the abort", async () => {
  const stdout = new PassThrough({ highWaterMark: 1 });
  const output = Output.open({ stdout, stderr: new PassThrough() }, {}, {});
  const controller = new AbortController();
  const streaming = output.stream(["data", "more"], controller.signal);
  controller.abort(new PserverError("ABORTED", "interrupted by SIGINT"));
  await expect(streaming).rejects.toBe(controller.signal.reason);
  expect(String(stdout.read())).toBe("data");
});
