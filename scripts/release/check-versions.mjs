// Ends with an error unless all places that say which version this is say the same one.
//
//   node scripts/release/check-versions.mjs

import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Where a version is written: a file, what it is the version of, and how it is found. */
const PLACES = [
  { file: "package.json", pattern: /^ {2}"version": "([^"]+)"/m },
  // Of the package, and of the root of all packages.
  { file: "package-lock.json", pattern: /^ {2}"version": "([^"]+)"/m },
  {
    file: "package-lock.json",
    pattern: /^ {4}"": \{\n {6}"name": [^\n]+\n {6}"version": "([^"]+)"/m,
  },
  { file: "src/client/python/pserver/_version.py", pattern: /^VERSION: Final = "([^"]+)"/m },
  { file: "include/pserver.h", pattern: /^#define PSERVER_VERSION "([^"]+)"/m },
  { file: "CHANGELOG.md", pattern: /^## \[([^\]]+)\]/m },
];

/** Lists every place with the version that it names; none where it names none. */
export async function findVersions(root) {
  return await Promise.all(
    PLACES.map(async ({ file, pattern }) => {
      const [, version = "none"] = pattern.exec(await readFile(join(root, file), "utf8")) ?? [];
      return { file, version };
    }),
  );
}

/** Returns what is wrong with the versions, a line for each place that differs from package.json. */
export function differences(versions) {
  const [{ version: expected }] = versions;
  return versions
    .filter(({ version }) => version !== expected)
    .map(({ file, version }) => `${file}: expected version ${expected}; received ${version}`);
}

if (import.meta.filename === process.argv[1]) {
  const wrong = differences(await findVersions(join(import.meta.dirname, "../..")));
  for (const line of wrong) console.error(`release: ${line}`);
  if (wrong.length > 0) process.exitCode = 1;
}
