// Proves that columns line up, whatever is in their cells; that a table too wide for the terminal gives
// up what it can spare, in its order and no more than it must; and that names made to command a terminal
// are shown instead of obeyed.
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { makePaint, wantsAnimation, wantsColor } from "../../../src/cli/output/colors.ts";
import { formatTable } from "../../../src/cli/output/table.ts";
import { visible } from "../../../src/protocol/errors.ts";

const WIDE = { width: Number.POSITIVE_INFINITY };
const plain = { paint: makePaint(false), ...WIDE };
const colored = { paint: makePaint(true), ...WIDE };
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

test("wide characters and combining marks line up as a terminal shows them", () => {
  const rows = [
    ["重み🚀", "1"],
    ["cafe\u0301", "22"],
  ];
  expect(formatTable(columns, rows, plain)).toEqual([
    "NAME    BYTES",
    "重み🚀      1",
    "cafe\u0301       22",
  ]);
});

describe("a table that is too wide", () => {
  const three = [{ title: "NAME" }, { title: "HOSTS" }, { title: "AGE", align: "right" }] as const;
  const rows = [["embedding.weight", "alpha, beta, gamma", "12"]];
  const concessions = [
    { kind: "drop", column: "AGE" },
    { kind: "wrap", column: "HOSTS", to: 6 },
    { kind: "cut", column: "NAME", to: 8 },
  ] as const;
  const at = (width: number): string[] =>
    formatTable(three, rows, { paint: makePaint(false), width }, concessions);

  test("stays whole where there is room", () => {
    expect(at(41)).toEqual([
      "NAME              HOSTS               AGE",
      "embedding.weight  alpha, beta, gamma   12",
    ]);
  });

  test("gives up the least important first, and no more than it must", () => {
    expect(at(40)).toEqual(["NAME              HOSTS", "embedding.weight  alpha, beta, gamma"]);
    expect(at(30)).toEqual([
      "NAME              HOSTS",
      "embedding.weight  alpha, beta,",
      "                  gamma",
    ]);
    expect(at(20)).toEqual([
      "NAME          HOSTS",
      "embedd…eight  alpha,",
      "              beta,",
      "              gamma",
    ]);
  });

  test("goes beyond the edge rather than below what it can spare", () => {
    expect(at(1)).toEqual([
      "NAME      HOSTS",
      "embe…ght  alpha,",
      "          beta,",
      "          gamma",
    ]);
  });

  test("cuts names after they were escaped", () => {
    const hostile = [["\u001b[2J\u001b[2J\u001b[2J", "", ""]];
    const [, line = ""] = formatTable(three, hostile, { paint: makePaint(false), width: 10 }, [
      { kind: "drop", column: "AGE" },
      { kind: "drop", column: "HOSTS" },
      { kind: "cut", column: "NAME", to: 8 },
    ]);
    expect(line).toBe("\\x1b[…b[2J");
  });
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
