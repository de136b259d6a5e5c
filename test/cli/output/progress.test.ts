// Proves that progress is redrawn on one line and not too often, taken away at the end, and that
// nothing at all is written where there is no terminal.
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { Output, Progress } from "../../../src/cli/output/output.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: these command the terminal
const SHOWN_AND_ERASED = /^\r\u001b\[2Ksaving 50 %.*\r\u001b\[2K$/;

test("redraws one line at most ten times a second", () => {
  const written: string[] = [];
  let now = 0;
  const progress = new Progress(
    "saving",
    (text) => written.push(text),
    () => now,
  );
  progress.update(0, 2048);
  now = 50;
  progress.update(512, 2048);
  now = 1000;
  progress.update(1024, 2048);
  progress.clear();
  progress.clear();
  expect(written).toEqual([
    "saving 0 %  0 B of 2 KiB  0 ms, 0 B/s",
    "saving 50 %  1 KiB of 2 KiB  1 s, 1 KiB/s",
    "",
  ]);
});

test("says how long it takes where the total is not known", () => {
  const written: string[] = [];
  let now = 0;
  const progress = new Progress(
    "saving",
    (text) => written.push(text),
    () => now,
  );
  now = 2500;
  progress.update(0);
  expect(written).toEqual(["saving 2.5 s"]);
});

test.each([
  ["a terminal", true, {}, false, true],
  ["no terminal", false, {}, false, false],
  ["a dumb terminal", true, { TERM: "dumb" }, false, false],
  ["JSON on a terminal", true, {}, true, false],
])("is shown on %s or not", (_what, isTTY, environment, json, shown) => {
  const stderr = Object.assign(new PassThrough(), { isTTY });
  const output = Output.open({ stdout: new PassThrough(), stderr }, environment, { json });
  const progress = output.progress("saving");
  progress.update(1, 2);
  progress.clear();
  const written = stderr.read();
  expect(written === null ? "" : String(written)).toMatch(shown ? SHOWN_AND_ERASED : /^$/);
});

test("whoever has started the command is told lines, without what commands a terminal", () => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const told: string[] = [];
  const onProgress = (line: string): unknown => told.push(line);
  const progress = Output.open({ stdout, stderr, onProgress }, {}, {}).progress("saving");
  progress.update(1, 2);
  progress.clear();
  expect(told).toEqual([expect.stringMatching(/^saving 50 % {2}1 B of 2 B/), ""]);
  expect(stderr.read()).toBeNull();
});

test.each(["ends", "fails"])("what work reports is shown until it %s", async (how) => {
  const written: string[] = [];
  const progress = new Progress(
    "saving",
    (text) => written.push(text),
    () => 0,
  );
  const work = progress.reported((onProgress) => {
    onProgress(512, 2048);
    return how === "ends" ? Promise.resolve(7) : Promise.reject(new Error("full"));
  });
  await (how === "ends" ? expect(work).resolves.toBe(7) : expect(work).rejects.toThrow("full"));
  expect(written).toEqual(["saving 25 %  512 B of 2 KiB  0 ms, 0 B/s", ""]);
});

test("data goes to one stream, messages to the other", () => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const output = Output.open({ stdout, stderr }, {}, {});
  output.lines(["a", "b"]);
  output.lines([]);
  output.value({ c: 1 });
  output.message("hello");
  output.warning("careful");
  expect(String(stdout.read())).toBe('a\nb\n{"c":1}\n');
  expect(String(stderr.read())).toBe("hello\nwarning: careful\n");
});

test("with JSON messages are left out and warnings are objects", () => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const output = Output.open({ stdout, stderr }, {}, { json: true });
  output.message("hello");
  output.warning("careful");
  expect(String(stderr.read())).toBe('{"warning":"careful"}\n');
});
