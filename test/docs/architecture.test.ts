// Proves that docs/internals/architecture.md names what is there: the files and functions on the ways of a push,
// of a pull and of a begin, and every folder of src/ two levels deep. It reads the page and looks at the sources.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const TEXT = readFileSync(join(ROOT, "docs/internals/architecture.md"), "utf8");

/** More than a newcomer wants to read. */
const STOPS_MAX = 12;
/** A stop of a way: its number, a file, a function. */
const STOP = /^(\d+)\. `([\w./-]+)` `(#?\w+)`: /gm;

function section(title: string): string {
  const [, after = ""] = TEXT.split(`\n## ${title}\n`);
  return after.split("\n## ")[0] ?? "";
}

/** Whether a TypeScript or C source defines the function; a call of it is no definition. */
function defines(source: string, name: string): boolean {
  const inTypeScript = String.raw`^(?:(?:export )?(?:async )?function\*? |  (?:(?:static|async|get) )*\*?)`;
  const inC = String.raw`^\w[\w *]*[ *]`;
  const signature = String.raw`${name}(?:<[^(]*>)?\((?!.*;$)`;
  return new RegExp(`(?:${inTypeScript}|${inC})${signature}`, "m").test(source);
}

describe.each(["The way of a push", "The way of a pull", "The way of a begin"])("%s", (title) => {
  const stops = [...section(title).matchAll(STOP)].map(([, number, file = "", name = ""]) => ({
    number,
    file,
    name,
  }));

  test(`has up to ${STOPS_MAX} stops, numbered in order`, () => {
    expect(stops.length).toBeGreaterThanOrEqual(8);
    expect(stops.length).toBeLessThanOrEqual(STOPS_MAX);
    expect(stops.map(({ number }) => number)).toEqual(stops.map((_, i) => `${i + 1}`));
  });

  test.each(stops)("$file has $name", ({ file, name }) => {
    expect(existsSync(join(ROOT, file))).toBe(true);
    expect(defines(readFileSync(join(ROOT, file), "utf8"), name)).toBe(true);
  });
});

test.each(["fold", "#fold"])("a call of %s is not taken for its definition", (name) => {
  expect(defines(`  ${name}(record);\n    this.${name}(record)`, name)).toBe(false);
  expect(defines(`  ${name}(record: Record): void {`, name)).toBe(true);
});

describe("Where things are", () => {
  const named = [...section("Where things are").matchAll(/^\| `(src\/[\w/-]+)\/` \|/gm)].map(
    ([, folder = ""]) => folder,
  );

  test.each(named)("%s/ is there", (folder) => {
    expect(existsSync(join(ROOT, folder))).toBe(true);
  });

  test("names every folder two levels deep", () => {
    // A folder that holds only folders need not be named itself.
    const missing = foldersIn("src").flatMap((folder) => [
      ...(hasFiles(folder) ? [folder] : []),
      ...foldersIn(folder),
    ]);
    expect(missing.filter((folder) => !named.includes(folder))).toEqual([]);
  });
});

function foldersIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("__"))
    .map((entry) => `${folder}/${entry.name}`);
}

function hasFiles(folder: string): boolean {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).some((entry) => entry.isFile());
}
