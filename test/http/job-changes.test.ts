// Proves what the page's requests for forks and rewinds become: which command is started, that nothing is without the
// job's name, one at a time, and that its lines reach whoever follows, also late; with a command that tests play.
import { expect, test } from "vitest";
import { type CommandLine, JobChanges } from "../../src/http/job-changes.ts";
import { codeOf } from "../protocol/refusal.ts";

/** A command that ends, and prints, when a test says so. */
class PlayedCommand {
  readonly started: string[][] = [];
  print: (line: CommandLine) => void = () => undefined;
  end: (exitCode: number) => void = () => undefined;
  stops = 0;

  readonly changes = new JobChanges((args, onLine) => {
    this.started.push([...args]);
    this.print = onLine;
    const ended = new Promise<number>((resolve) => (this.end = resolve));
    const stop = async (): Promise<void> => {
      this.stops += 1;
      this.end(130);
      await ended;
    };
    return { ended, stop };
  });
}

async function collect(
  events: AsyncIterable<{ event: string; data: unknown }>,
): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const { event, data } of events) all.push([event, data]);
  return all;
}

test.each([
  ["fork", { at: "now", as: "other" }, ["fork", "--job=j", "--at=now", "--as=other"]],
  ["rewind", { to: "--yes", dryRun: true }, ["rewind", "--job=j", "--to=--yes", "--dry-run"]],
  ["rewind", { to: "0:5", confirm: "j" }, ["rewind", "--job=j", "--to=0:5", "--yes"]],
  ["rewind", { complete: true, confirm: "j" }, ["rewind", "--job=j", "--complete", "--yes"]],
  ["rewind", { drop: true, confirm: "j" }, ["rewind", "--job=j", "--drop", "--yes"]],
] as const)("%s %j", (what, body, args) => {
  const command = new PlayedCommand();
  command.changes.begin("j", what, body);
  expect(command.started).toEqual([args]);
});

test.each([
  ["rewind", {}, "BAD_VALUE"],
  ["rewind", { to: "0:5" }, "BAD_VALUE"],
  ["rewind", { to: "0:5", confirm: "k" }, "BAD_VALUE"],
  ["rewind", { to: "0:5", drop: true, confirm: "j" }, "BAD_VALUE"],
  ["rewind", { to: 5, confirm: "j" }, "BAD_VALUE"],
  ["rewind", { to: "x".repeat(257), confirm: "j" }, "BAD_VALUE"],
  ["rewind", "0:5", "BAD_VALUE"],
  ["fork", { at: "now" }, "BAD_VALUE"],
  ["fork", { at: "now", as: "a=b" }, "BAD_NAME"],
  ["fork", { at: "now", as: "a b" }, "BAD_NAME"],
] as const)("%s %j starts nothing: %s", (what, body, code) => {
  const command = new PlayedCommand();
  expect(codeOf(() => command.changes.begin("j", what, body))).toBe(code);
  expect(command.started).toEqual([]);
});

test("lines reach whoever follows, progress only as it is, and at last the exit code", async () => {
  const command = new PlayedCommand();
  const { open } = command.changes.begin("j", "fork", { at: "now", as: "k" });
  command.print({ kind: "message", text: "point: now" });
  command.print({ kind: "progress", text: "10 %" });
  command.print({ kind: "progress", text: "20 %" });
  const following = collect(open(new AbortController().signal));
  await Promise.resolve();
  command.print({ kind: "message", text: "made job k" });
  command.end(0);
  expect(await following).toEqual([
    ["line", { kind: "message", text: "point: now" }],
    ["line", { kind: "progress", text: "20 %" }],
    ["line", { kind: "message", text: "made job k" }],
    ["end", { exitCode: 0, dropped: 0 }],
  ]);
});

test("a command runs on when nobody follows it any more, and no other starts meanwhile", async () => {
  const command = new PlayedCommand();
  const gone = new AbortController();
  const { open } = command.changes.begin("j", "fork", { at: "now", as: "k" });
  const following = collect(open(gone.signal));
  gone.abort();
  expect(await following).toEqual([]);
  expect(command.stops).toBe(0);
  const again = (): unknown => command.changes.begin("j", "rewind", { to: "0:5", confirm: "j" });
  expect(codeOf(again)).toBe("BUSY");
  command.end(0);
  await new Promise((resolve) => setImmediate(resolve));
  expect(codeOf(again)).toBe("");
});

test("closing stops the command and waits for its end", async () => {
  const command = new PlayedCommand();
  command.changes.begin("j", "fork", { at: "now", as: "k" });
  await command.changes.close();
  expect(command.stops).toBe(1);
  await command.changes.close();
  expect(command.stops).toBe(1);
});
