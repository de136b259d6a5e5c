// Proves that columns line up, whatever is in their cells, and that names made to command a
// terminal are shown instead of obeyed.
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { makePaint, wantsAnimation, wantsColor } from "../../../src/cli/output/colors.ts";
import { formatTable } from "../../../src/cli/output/table.ts";
import { visible } from "../../../src/protocol/visible.ts";

const plain = makePaint(false);
const colored = makePaint(true);
const columns = [{ title: "NAME" }, { title: "BYTES", align: "right" }] as const;

test("aligns columns left and right, and leaves no blanks at the ends of lines", () => {
  const rows = [
    ["w", "12"],
    ["größe", "1234567"],
  ];
  expect(formatTable(columns, rows, plain)).toEqual([
    "NAME     BYTES",
    "w           12",
    "größe  1234567",
  ]);
  expect(formatTable([{ title: "A" }, { title: "B" }], [["1", ""]], plain)).toEqual(["A  B", "1"]);
});

test("colours do not move columns", () => {
  const rows = [["w", "12"]];
  const lines = formatTable(columns, rows, colored).map(stripVTControlCharacters);
  expect(lines).toEqual(formatTable(columns, rows, plain));
  expect(formatTable(columns, rows, colored).join("")).toContain("\u001b[1m");
});

test("has no title without rows", () => {
  expect(formatTable(columns, [], plain)).toEqual([]);
});

test("shows control characters escaped", () => {
  expect(visible("a\u001b[2Jb\n\u009b")).toBe("a\\x1b[2Jb\\x0a\\x9b");
  const [, row] = formatTable([{ title: "NAME" }], [["\u001b]0;x\u0007"]], plain);
  expect(row).toBe("\\x1b]0;x\\x07");
});

test.each([
  [true, {}, false, true],
  [false, {}, false, false],
  [true, { NO_COLOR: "1" }, false, false],
  [true, { NO_COLOR: "" }, false, true],
  [true, { TERM: "dumb" }, false, false],
  [true, {}, true, false],
])(
  "colours: terminal %j, environment %j, --no-color %j: %j",
  (isTTY, environment, flag, wanted) => {
    expect(wantsColor(isTTY, environment, flag)).toBe(wanted);
  },
);

test("animates only on a terminal that can, and not in CI", () => {
  expect(wantsAnimation(true, { TERM: "xterm" })).toBe(true);
  expect(wantsAnimation(false, { TERM: "xterm" })).toBe(false);
  expect(wantsAnimation(true, { TERM: "dumb" })).toBe(false);
  expect(wantsAnimation(true, { CI: "true" })).toBe(false);
});
