// Proves that a release cannot be made of parts that name different versions: the package, its lock file, the Python
// package, the C library and the changelog are compared, and each that differs is named.
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { differences, findVersions } from "../../scripts/release/check-versions.mjs";

const ROOT = join(import.meta.dirname, "../..");

test("all places name one version", async () => {
  const versions = await findVersions(ROOT);
  expect(versions.map(({ file }) => file)).toContain("include/pserver.h");
  expect(versions[0]?.version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(differences(versions)).toEqual([]);
});

/** What stands before the version in each place. */
const PLACES = [
  ["package-lock.json", '\n  "version": "'],
  ["package-lock.json", '\n      "name": "nats-pserver",\n      "version": "'],
  ["src/client/python/pserver/_version.py", 'VERSION: Final = "'],
  ["include/pserver.h", '#define PSERVER_VERSION "'],
  ["CHANGELOG.md", "## ["],
] as const;

test.each(PLACES)("another version in %s is named", async (changed, before) => {
  const directory = await mkdtemp(join(tmpdir(), "pserver-versions-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const versions = await findVersions(ROOT);
  for (const { file } of versions) await cp(join(ROOT, file), join(directory, file));
  const text = await readFile(join(ROOT, changed), "utf8");
  const expected = versions[0]?.version ?? "";
  expect(text).toContain(before + expected);
  await writeFile(join(directory, changed), text.replace(before + expected, `${before}7.0.0`));

  expect(differences(await findVersions(directory))).toEqual([
    `${changed}: expected version ${expected}; received 7.0.0`,
  ]);
});
