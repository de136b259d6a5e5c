// Proves that help is readable in 80 columns: its lists name each command once, in groups and on one line, no line is
// longer, and text is broken once, so that none but the last line of a paragraph is short.
import { PassThrough } from "node:stream";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { fillSection, HELP_COLUMNS } from "../../../src/cli/output/help-text.ts";
import { createProgram } from "../../../src/cli/program.ts";

function program(): Command {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const { signal } = new AbortController();
  const context = { stdin, stdout, stderr, environment: {}, signal, setExitCode: () => {} };
  return createProgram(context, { json: false, paint: (_, text) => text });
}

/** Returns what `--help` prints. */
function helpOf(command: Command): string[] {
  let text = "";
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
  });
  command.outputHelp();
  return text.split("\n");
}

const visible = program().createHelp().visibleCommands(program());
const names = visible.map((each) => each.name());

test("the list has each command once, on one line", () => {
  const lines = helpOf(program());
  for (const name of names) {
    const own = lines.filter((line) =>
      new RegExp(`^  ${name}(?: <\\w+>)*(?: \\[\\w+\\])? {2,}\\S`).test(line),
    );
    expect(own, name).toHaveLength(1);
  }
  expect(lines).toContain("Serve:");
  expect(lines).toContain("Find out what happened:");
});

test.each(["", ...names.filter((name) => name !== "help")])("help of pserver %s fits", (name) => {
  const all = program();
  const command = all.commands.find((each) => each.name() === name) ?? all;
  expect(helpOf(command).filter((line) => line.length > HELP_COLUMNS)).toEqual([]);
});

describe("a section", () => {
  test("joins the lines of a paragraph, and breaks them where the width ends", () => {
    expect(fillSection(["  one two", "  three four five", "  six"], 14)).toEqual([
      "  one two",
      "  three four",
      "  five six",
    ]);
  });

  test("keeps items of a list apart, with what they mean beside them", () => {
    const lines = ["  nan    not a number", "         at all", "  spike  far from others"];
    expect(fillSection(lines, 20)).toEqual([
      "  nan    not a",
      "         number at",
      "         all",
      "  spike  far from",
      "         others",
    ]);
  });

  test("breaks the shape of a JSON value after a comma", () => {
    expect(fillSection(['  {"a":[{"b","c"}],"d"}'], 16)).toEqual([
      '  {"a":[{"b",',
      '  "c"}], "d"}',
    ]);
  });
});
