// Proves that the commands that documents show are ones that the programs take: every line of `pserver` or
// `legion` in a block or in a sentence parses, with its options and arguments; `make` has the target, and the
// files that other lines name are there. It runs nothing.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { makeProgram } from "../support/command-line.ts";
import { commandLines, readExamples } from "./fenced-examples.ts";

const ROOT = join(import.meta.dirname, "../..");
const examples = readExamples();

/** Splits a line into its commands, and these into words, as a shell does; leaves out comments. */
function commands(line: string): string[][] {
  const tokens = line.match(/(?:'[^']*'|"[^"]*"|[^\s'"#]|(?<=\S)#)+|#.*$/g) ?? [];
  const found: string[][] = [[]];
  for (const token of tokens) {
    if (token.startsWith("#")) break;
    if (["&&", "|", "&"].includes(token)) found.push([]);
    else found.at(-1)?.push(token.replaceAll(/['"]/g, ""));
  }
  return found
    .map((words) => words.slice(words.findIndex((word) => !/^[A-Z_]+=/.test(word))))
    .filter((words) => words.length > 0);
}

/** Checks one command as far as that is possible without running it. */
async function check([first = "", ...args]: readonly string[]): Promise<void> {
  const [script = "", ...rest] = args;
  if (first === "pserver" || first === "legion") {
    await makeProgram(first).parseAsync(args, { from: "user" });
  } else if (first === "node" && script === "dist/pserver.js") {
    await check(["pserver", ...rest]);
  } else if (first === "node" && script.startsWith("build/programs/")) {
    expect(script.replace(/^build\/programs\/(.*)\.js$/, "$1.ts")).toSatisfy(isFile);
  } else if (first === "make") {
    expect(readFileSync(join(ROOT, "Makefile"), "utf8")).toMatch(new RegExp(`^${script}:`, "m"));
  } else if (first === "nats-server" || first === "cc") {
    const file = args.find((word) => /^examples\//.test(word)) ?? "";
    expect(file).toSatisfy(isFile);
  }
}

function isFile(path: string): boolean {
  return existsSync(join(ROOT, path));
}

const lines = examples.flatMap((example) =>
  commandLines(example).flatMap((line) => commands(line).map((words) => ({ ...example, words }))),
);
const shown = lines.map(({ document, words }) => ({ document, words, command: words.join(" ") }));

test("documents show commands", () => {
  expect(shown.filter(({ words }) => words[0] === "pserver").length).toBeGreaterThan(30);
});

test.each(shown)("$document: $command", ({ words }) => check(words));

test("a wrong command is told", async () => {
  await expect(check(["pserver", "log", "--lasst", "3"])).rejects.toThrow("unknown option");
  await expect(check(["pserver", "logg"])).rejects.toThrow("unknown command");
  await expect(check(["make", "no-such-target"])).rejects.toThrow();
});

describe("in sentences", () => {
  const documents = [...new Set(examples.map(({ document }) => document))];
  const named = documents.flatMap((document) =>
    [...readFileSync(join(ROOT, document), "utf8").matchAll(/`pserver ([a-z][^`]*)`/g)].map(
      ([, text = ""]) => ({ document, text }),
    ),
  );

  test.each(named)("$document: pserver $text", ({ text }) => {
    const [name = "", ...rest] = text.split(" -- ")[0]?.split(/\s+/) ?? [];
    const command = makeProgram("pserver").commands.find((each) => each.name() === name);
    expect(command).toBeDefined();
    const options = command?.options.flatMap(({ short, long }) => [short, long]);
    for (const flag of rest.filter((word) => word.startsWith("-"))) {
      expect([...(options ?? []), "--help"]).toContain(flag.split("=")[0]);
    }
  });
});
