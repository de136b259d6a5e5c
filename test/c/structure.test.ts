// Proves that the sources of the C library keep apart what belongs apart, by reading them: each folder has one
// header and uses only the folders below it, and every name that files share begins with ps_ or PS_.
import { readdir, readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";

const SOURCES = join(import.meta.dirname, "../../src/client/c");

const names = (await readdir(SOURCES, { recursive: true })).filter((name) => /\.[ch]$/.test(name));
const texts = new Map(
  await Promise.all(
    names.map(async (name) => [name, await readFile(join(SOURCES, name), "utf8")] as const),
  ),
);

/** The folders of the library, each of which may include those before it. */
const FOLDERS = [
  "formats",
  "errors",
  "core",
  "steps",
  "wire",
  "calls",
  "tensors",
  "records",
  "client",
  "pull",
  "push",
];

/** The headers that each file includes, relative to the sources. */
const included = names.map((name) => {
  const paths = [...(texts.get(name) ?? "").matchAll(/^#include "(.+)"$/gm)].map(([, path = ""]) =>
    texts.has(path) ? path : normalize(join(name, "..", path)),
  );
  return { name, paths };
});

test("every folder has one header that is written by hand, which all its sources include", () => {
  for (const folder of FOLDERS) {
    const own = names.filter((name) => dirname(name) === folder);
    const written = own.filter((name) => name.endsWith(".h") && name !== "errors/protocol.h");
    expect(written).toEqual([`${folder}/${folder}.h`]);
    const sources = included.filter(({ name }) => own.includes(name) && name.endsWith(".c"));
    expect(sources.length).toBeGreaterThan(0);
    for (const { paths } of sources) expect(paths).toEqual(written);
  }
});

test("folders include only those below them", () => {
  const upward = included.flatMap(({ name, paths }) => {
    const place = FOLDERS.indexOf(dirname(name));
    return paths
      .filter((path) => FOLDERS.indexOf(dirname(path)) > place)
      .map((path) => `${name} includes ${path}`);
  });
  expect(included.flatMap(({ paths }) => paths).filter((path) => !texts.has(path))).toEqual([]);
  expect(upward).toEqual([]);
  const others = names.map(dirname).filter((folder) => !/^paddle/.test(folder));
  expect([...new Set(others)].sort()).toEqual([...FOLDERS].sort());
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
