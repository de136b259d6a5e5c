// Proves that a file which others write is read once and whole, whenever it appears, grows, or is begun anew.
import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { GrowingFile } from "../../../src/cli/run/batch-job.ts";

let directory: string;
let path: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-growing-"));
  path = join(directory, "rank-0.out");
  return () => rm(directory, { recursive: true });
});

async function newBytes(file: GrowingFile): Promise<string> {
  const pieces: Buffer[] = [];
  await file.readNew(async (bytes) => {
    expect(bytes.length).toBeLessThanOrEqual(64 * 1024);
    pieces.push(bytes);
  });
  return Buffer.concat(pieces).toString();
}

test("each byte comes once, in pieces", async () => {
  const file = new GrowingFile(path);
  expect(await newBytes(file)).toBe("");
  const long = "0123456789".repeat(30_000);
  await writeFile(path, long);
  expect(await newBytes(file)).toBe(long);
  expect(await newBytes(file)).toBe("");
  await appendFile(path, "more");
  expect(await newBytes(file)).toBe("more");
});

test("one that is begun anew is read from its start", async () => {
  const file = new GrowingFile(path);
  await writeFile(path, "of the first task");
  await newBytes(file);
  await writeFile(path, "again");
  expect(await newBytes(file)).toBe("again");
});

test("a path that is not a file is an error", async () => {
  await expect(newBytes(new GrowingFile(directory))).rejects.toThrow("EISDIR");
});
