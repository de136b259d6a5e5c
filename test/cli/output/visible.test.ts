// Proves that nothing from a name, a path or a message reaches a terminal as a command or turns the text
// round, whether or not text is coloured, and that JSON keeps its values.
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { Output } from "../../../src/cli/output/output.ts";
import { summarizeTensor } from "../../../src/cli/output/tensor-summary.ts";
import { visibleColored, visibleJson, visibleLines } from "../../../src/cli/output/wrap.ts";
import { jsonError } from "../../../src/cli/report-error.ts";
import { PserverError, visible } from "../../../src/protocol/errors.ts";

/** Clears the screen, sets the title, turns text round, hides, breaks lines. */
const HOSTILE = "a\u001b[2J\u001b]0;t\u0007\u009b1m\u202eb\u2066c\u200bd\u{e0001}\u2028\u2029\rz\n";
const DANGEROUS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

function outputOf(isTTY: boolean, json = false): { output: Output; printed: () => string } {
  const stream = Object.assign(new PassThrough(), { isTTY });
  const output = Output.open({ stdout: stream, stderr: stream }, {}, { json });
  return { output, printed: () => String(stream.read() ?? "") };
}

describe("text is escaped", () => {
  test("character by character, and nothing else is", () => {
    expect(visible("é 漢 \u{1f600} a\tb")).toBe("é 漢 \u{1f600} a\\x09b");
    expect(visible("\u001b[31m\u202e\u{e0001}\ud800")).toBe("\\x1b[31m\\u202e\\u{e0001}\\ud800");
    expect(visible(HOSTILE)).not.toMatch(DANGEROUS);
    expect(visibleLines("a\n\u001bb")).toBe("a\n\\x1bb");
  });

  test("but for colours, where there are any", () => {
    const colored = "\u001b[31mred\u001b[39m";
    expect(visibleColored(`${colored}\u001b[2J`)).toBe(`${colored}\\x1b[2J`);
    expect(visibleColored("\u001b[38;5;1m")).toBe("\\x1b[38;5;1m");
  });
});

describe.each([true, false])("where the output is a terminal: %s", (isTTY) => {
  test("lines, messages and warnings are escaped", () => {
    const { output, printed } = outputOf(isTTY);
    output.lines([HOSTILE, output.paint("fail", "x")]);
    output.message(HOSTILE);
    output.warning(HOSTILE);
    const lines = printed()
      .replaceAll(/\p{Cc}(?=\[(?:31|33|39)m)/gu, "")
      .trimEnd()
      .split("\n");
    expect(lines).toHaveLength(4);
    expect(lines.join("")).not.toMatch(DANGEROUS);
  });

  test("a name is not coloured by what it holds", () => {
    const { output, printed } = outputOf(isTTY);
    const tensor = { dtype: "float32", shape: [1], data: Float32Array.of(1) } as const;
    output.lines(summarizeTensor("w\u001b[31m", tensor));
    expect(printed()).toMatch(/^w\\x1b\[31m {2}float32/);
  });
});

test("a further line of a warning does not pass for another message", () => {
  const { output, printed } = outputOf(false);
  output.warning("first\nhint: do harm");
  expect(printed()).toBe("warning: first\n  hint: do harm\n");
});

test("JSON is escaped as JSON and reads back as it was", () => {
  const { output, printed } = outputOf(true, true);
  output.value({ name: HOSTILE });
  output.warning(HOSTILE);
  const lines = printed().trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toEqual([{ name: HOSTILE }, { warning: HOSTILE }]);
  const error = jsonError(new PserverError("BAD_NAME", HOSTILE));
  expect(JSON.parse(error).error.message).toBe(HOSTILE);
  for (const line of [...lines, error, visibleJson(HOSTILE)]) expect(line).not.toMatch(DANGEROUS);
});
