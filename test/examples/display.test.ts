// Proves what the demo prints: one redrawn block of lines on a terminal, which never wraps, and
// plain lines at most every two seconds elsewhere. A stream that records stands in for the terminal.
import { describe, expect, test } from "vitest";
import {
  Display,
  type DisplayStream,
  type Progress,
  plainLine,
  statusLines,
} from "../../examples/digits/display.ts";

const PROGRESS: Progress = {
  elapsedMs: 12_340,
  updates: 1_204,
  updatesWanted: 2_408,
  evaluation: { loss: 0.25, accuracy: 0.934 },
  trainers: [
    { name: "trainer-1", state: "training", updates: 800, loss: 0.1234 },
    { name: "trainer-2", state: "killed", updates: 404, loss: 0.3 },
    { name: "trainer-3", state: "starting", updates: 0, loss: undefined },
  ],
};

function record(stream: Omit<DisplayStream, "write">): DisplayStream & { written: string } {
  return {
    ...stream,
    written: "",
    write(text: string): void {
      this.written += text;
    },
  };
}

test("the state is told with amounts, bars and what is special of a trainer", () => {
  const lines = statusLines(PROGRESS);
  expect(lines).toHaveLength(5);
  expect(lines[0]).toContain(`${"█".repeat(12)}${"░".repeat(12)} 1,204 of 2,408, 12.3 s`);
  expect(lines[1]).toContain("93.4 %, loss 0.250");
  expect(lines[2]).toContain(`${"█".repeat(24)} 800 updates, loss 0.123`);
  expect(lines[3]).toContain("404 updates, loss 0.300, killed");
  expect(lines[4]).toContain(`${"░".repeat(24)} 0 updates, loss –, starting`);
});

test("a plain line counts the trainers at work", () => {
  expect(plainLine(PROGRESS)).toBe(
    "  12.3 s   1,204 updates  loss 0.250  accuracy 93.4 %  trainers 1",
  );
});

describe("on a terminal", () => {
  test("the state is redrawn in place, below the story", () => {
    const stream = record({ isTTY: true, columns: 200 });
    const display = new Display(stream);
    display.tell("first");
    display.show(PROGRESS);
    const block = `${statusLines(PROGRESS).join("\n")}\n`;
    expect(stream.written).toBe(`first\n${block}`);
    stream.written = "";
    display.tell("second");
    expect(stream.written).toBe(`\x1b[5A\x1b[Jsecond\n${block}`);
    stream.written = "";
    display.show({ ...PROGRESS, trainers: [] });
    expect(stream.written.startsWith("\x1b[5A\x1b[J")).toBe(true);
    stream.written = "";
    display.finish();
    display.tell("end");
    expect(stream.written).toBe("end\n");
  });

  test("no line wraps", () => {
    const stream = record({ isTTY: true, columns: 30 });
    new Display(stream).show(PROGRESS);
    for (const line of stream.written.split("\n")) expect(line.length).toBeLessThan(30);
  });
});

test("elsewhere plain lines come at most every two seconds, without control characters", () => {
  const stream = record({});
  const display = new Display(stream);
  display.tell("first");
  for (const elapsedMs of [0, 500, 1_999, 2_000, 3_999, 4_000]) {
    display.show({ ...PROGRESS, elapsedMs });
  }
  const lines = stream.written.trimEnd().split("\n");
  expect(lines[0]).toBe("first");
  expect(lines.slice(1).map((line) => line.trim().split("  ")[0])).toEqual([
    "0.0 s",
    "2.0 s",
    "4.0 s",
  ]);
  expect(stream.written).not.toContain("\x1b");
});
