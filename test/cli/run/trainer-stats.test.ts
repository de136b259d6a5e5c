// Proves that the counts that clients leave in the directory of a run are read, summed nowhere and lost nowhere, whatever
// else is there, and that nothing of the directory stays.
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { describeStats, StatsDirectory } from "../../../src/cli/run/trainer-stats.ts";

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-stats-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const STATS = {
  trainer: "trainer-2",
  ...{ calls: 12, failed: {}, records: 30, resent: 0, clipped: 0, setAside: 0, reads: 1 },
  ...{ sentBytes: 2_048, receivedBytes: 0, reconnects: 0 },
};

test("counts are read in the order of the trainers, and the directory goes", async () => {
  const run = join(home, "run");
  const directory = await StatsDirectory.make(run);
  const { PSERVER_STATS_DIR: path = "" } = StatsDirectory.variables(run);
  await writeFile(join(path, "9-1.json"), JSON.stringify({ ...STATS, trainer: "trainer-10" }));
  await writeFile(join(path, "1-1.json"), JSON.stringify(STATS));
  await writeFile(join(path, "1-2.json"), '{"trainer":"trainer-3","calls":');
  await writeFile(join(path, "1-3.json"), "null");
  await writeFile(join(path, "1-4.json"), JSON.stringify({ ...STATS, calls: "many" }));
  const taken = await directory.take();
  expect(taken.map(({ trainer }) => trainer)).toEqual(["trainer-2", "trainer-10"]);
  expect(taken[0]).toEqual(STATS);
  expect(existsSync(run)).toBe(false);
});

test("what a run keeps beside them stays", async () => {
  await mkdir(join(home, "models"));
  const directory = await StatsDirectory.make(home);
  expect(await directory.take()).toEqual([]);
  expect(existsSync(join(home, "models"))).toBe(true);
});

test("a line says what a client has done, and no zeros of what went wrong", () => {
  expect(describeStats(STATS)).toBe(
    "trainer-2: 12 calls; 30 records; 1 read; 2 KiB sent, 0 B received",
  );
  const failed = { TIMEOUT: 2, BUSY: 1 };
  const guarded = { clipped: 4, setAside: 5 };
  expect(describeStats({ ...STATS, failed, ...guarded, resent: 3, reconnects: 1 })).toBe(
    "trainer-2: 12 calls; failed: TIMEOUT 2, BUSY 1; 30 records, 3 sent again; 4 clipped; 5 set aside; 1 read; " +
      "2 KiB sent, 0 B received; 1 reconnection",
  );
});
