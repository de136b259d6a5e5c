// Proves that directories are made with those above them, that many may do it at one time, and that a
// place where none can be made is an error and no endless attempt.
import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeDirectory } from "../../src/model-files/atomic-write.ts";

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-directory-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

test("makes what is missing, and answers the first that was", async () => {
  const path = join(home, "a", "b", "c");
  expect(await makeDirectory(path)).toBe(join(home, "a"));
  expect((await stat(path)).isDirectory()).toBe(true);
  expect(await makeDirectory(path)).toBeUndefined();
  expect(await makeDirectory(join(path, "d"))).toBe(join(path, "d"));
});

test("many that make the same at one time all succeed", async () => {
  const path = join(home, "a", "b", "c", "d");
  await Promise.all(Array.from({ length: 20 }, () => makeDirectory(path)));
  expect((await stat(path)).isDirectory()).toBe(true);
});

test("a file in the way is an error", async () => {
  await mkdir(join(home, "a"));
  await writeFile(join(home, "a", "file"), "");
  await expect(makeDirectory(join(home, "a", "file"))).rejects.toMatchObject({ code: "EEXIST" });
  const below = makeDirectory(join(home, "a", "file", "b", "c"));
  await expect(below).rejects.toMatchObject({ code: "ENOTDIR" });
});

test.runIf(process.platform === "linux")("where nothing can be made is an error", async () => {
  const made = makeDirectory("/proc/pserver-test/store/lock");
  await expect(made).rejects.toMatchObject({ code: "ENOENT" });
});
