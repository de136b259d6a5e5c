// Proves that the sources of the C library keep apart what belongs apart, by reading them: modules (a source
// and its header) include each other without circles, and every name that files share begins with ps_ or PS_.
import { readdir, readFile } from "node:fs/promises";
import { join, normalize } from "node:path";
import { expect, test } from "vitest";

const SOURCES = join(import.meta.dirname, "../../src/client/c");

const names = (await readdir(SOURCES, { recursive: true })).filter((name) => /\.[ch]$/.test(name));
const texts = new Map(
  await Promise.all(
    names.map(async (name) => [name, await readFile(join(SOURCES, name), "utf8")] as const),
  ),
);

/** The module of a file: its path without the ending. */
function moduleOf(name: string): string {
  return name.slice(0, -2);
}

/** The other modules that each module includes. */
function includedModules(): Map<string, Set<string>> {
  const modules = new Map<string, Set<string>>(names.map((name) => [moduleOf(name), new Set()]));
  for (const [name, text] of texts) {
    for (const [, path = ""] of text.matchAll(/^#include "(.+)"$/gm)) {
      const beside = normalize(join(name, "..", path));
      const included = moduleOf(texts.has(path) ? path : beside);
      expect(modules.has(included), `${name} includes ${path}`).toBe(true);
      if (included !== moduleOf(name)) modules.get(moduleOf(name))?.add(included);
    }
  }
  return modules;
}

/** What is left after modules that include none of the others have been taken away, again and again. */
function circles(modules: Map<string, Set<string>>): string[] {
  const left = new Map(modules);
  for (let before = -1; before !== left.size; ) {
    before = left.size;
    for (const [name, included] of left) {
      if (![...included].some((other) => left.has(other))) left.delete(name);
    }
  }
  return [...left.keys()].sort();
}

test("modules include each other without circles", () => {
  const modules = includedModules();
  expect(modules.size).toBeGreaterThan(50);
  expect(circles(modules)).toEqual([]);
});

test("names in headers are the library's own", () => {
  const foreign: string[] = [];
  for (const [name, text] of texts) {
    if (!name.endsWith(".h")) continue;
    const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, "");
    const guard = `${name.replaceAll(/[/.-]/g, "_").toUpperCase()}`;
    const shared = [
      ...code.matchAll(/^\s*#define (\w+)/gm),
      ...code.matchAll(/\b(?:struct|enum) (\w+)(?= ?[;{])/g),
      ...code.matchAll(/^typedef .*\(\*(\w+)\)/gm),
      ...code.matchAll(/^ {2,}([A-Z][A-Z0-9_]+),?$/gm),
    ].map((match) => match[1] ?? "");
    foreign.push(
      ...shared
        .filter((own) => !/^(ps_|PS_|pserver_|PSERVER_|paddle_)/.test(own) && own !== guard)
        .map((own) => `${name}: ${own}`),
    );
  }
  expect(foreign).toEqual([]);
});
