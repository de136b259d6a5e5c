// Checks types and format of the Python package and its tests; sees to it that each of their files is run.
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { packageRoot } from "../../../src/broker/broker-config.ts";

const run = promisify(execFile);

test("types and format are right", async () => {
  await run(join(packageRoot(), "scripts", "check-python.sh"), ["--required"]);
});

test("each file of tests is run", async () => {
  const tests = await readdir(join(packageRoot(), "src/client/python/tests"), { recursive: true });
  const files = tests.filter((path) => /(?:^|\/)test_[^/]*\.py$/.test(path));
  expect(files.length).toBeGreaterThan(1);
  const runners = (await readdir(import.meta.dirname)).filter((name) => name.endsWith(".test.ts"));
  const text = await Promise.all(
    runners.map((name) => readFile(join(import.meta.dirname, name), "utf8")),
  );
  expect(files.filter((path) => !text.join("\n").includes(`"${path}"`))).toEqual([]);
});
