// Proves what an archiver as a process does, on a real broker: it is the only one in its directory, ends in
// order when it is interrupted, says what was trimmed before it came, follows a job to its next generation,
// and survives a full disk; and that wrong jobs, directories and flags are told.
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { checkArchive } from "../../../src/history/archive/check-archive.ts";
import { openHistory } from "../../../src/history/open-journal.ts";
import { mountObstacle, SmallDisk } from "../../support/small-disk.ts";
import { control, snapshotAll } from "../host/control.ts";
import { archivedJobOfEachTest, expectReplayed, pullAll } from "./archived-job.ts";

const { signal } = new AbortController();
const each = archivedJobOfEachTest();

describe("an archiver", () => {
  test("keeps another one out of its directory", async () => {
    const archived = await each.start();
    const first = archived.archiver();
    await archived.untilArchived();
    const { code, stderr } = await archived.pserver("archive", archived.directory, "--json");
    expect(code).toBe(6);
    expect(JSON.parse(stderr).error).toMatchObject({
      code: "STORE_IN_USE",
      message: `process ${first.child.pid} uses the directory ${archived.directory}`,
    });
  });

  test("ends in order when it is interrupted: all files are complete, and hosts stop waiting for it", async () => {
    const archived = await each.start();
    const archiver = archived.archiver("--json");
    await archived.train(2);
    await archived.untilArchived();
    const following = await control(archived.job, "hosts", {});
    expect(following["archivers"]).toHaveLength(1);
    const { stdout } = await archived.pserver("status");
    expect(stdout).toMatch(/archiver +process \d+ on .*, [\d,]+ records behind/);
    archiver.child.kill("SIGINT");
    const { code, stderr, stdout: told } = await archiver.finished;
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(told.trim().split("\n").at(-1) ?? "")).toMatchObject({ behindRecords: 0 });
    expect((await control(archived.job, "hosts", {}))["archivers"]).toEqual([]);
    const { shards, damage } = await checkArchive(archived.directory, signal);
    expect([shards.length, damage]).toEqual([2, []]);
  });

  test("that comes too late says what is missing, and the archive continues after the gap", async () => {
    const archived = await each.start();
    await archived.archiveOnce();
    await archived.train(60);
    await snapshotAll(archived.job);
    const late = await archived.pserver("archive", archived.directory, "--once");
    expect(late.code).toBe(0);
    expect(late.stderr).toMatch(/warning: \d+ records from 0:\d+ on are not in the archive/);
    const checked = await archived.pserver("archive", archived.directory, "--check", "--json");
    expect(checked.code).toBe(0);
    const { shards } = JSON.parse(checked.stdout);
    for (const { missing, spans } of shards) {
      expect(missing).toHaveLength(1);
      expect(spans).toHaveLength(2);
      expect(missing[0].firstSeq).toBe(spans[0].lastSeq + 1);
      expect(missing[0].lastSeq).toBe(spans[1].firstSeq - 1);
    }
    // From a snapshot behind the gap the rest can be rebuilt.
    const pulled = await pullAll(archived);
    const alone = await archived.alone();
    await expectReplayed(alone, pulled);
  });

  test("follows a job to the next generation of its journals", async () => {
    const archived = await each.start({ journal: "memory" });
    const { job, directory } = archived;
    await archived.train(2);
    await snapshotAll(job);
    await archived.archiveOnce();
    for (const host of job.hosts.splice(0)) await host.kill();
    await job.broker.stop();
    await job.broker.start();
    await job.host();
    await archived.client.pullFull("w");
    await archived.train(2);
    await archived.archiveOnce();
    const { shards, damage } = await checkArchive(directory, signal);
    expect(damage).toEqual([]);
    for (const { spans } of shards) {
      expect(spans.map(({ generation }) => generation)).toEqual([1, 2]);
    }
    const alone = await archived.alone();
    await expectReplayed(alone, await pullAll(archived));
  });

  const obstacle = mountObstacle();
  test.skipIf(obstacle !== "")(
    `stops at a full disk, and goes on when there is room${obstacle}`,
    async () => {
      const archived = await each.start();
      const disk = new SmallDisk();
      try {
        const directory = join(disk.path, "archive");
        await archived.archiveOnce(directory);
        await archived.train(3);
        await disk.fill();
        const full = await archived.pserver("archive", directory, "--once", "--json");
        expect(full.code).toBe(6);
        expect(JSON.parse(full.stderr).error.code).toBe("DISK_FULL");
        expect((await checkArchive(directory, signal)).damage).toEqual([]);
        await disk.free();
        await archived.archiveOnce(directory);
        const { shards, damage } = await checkArchive(directory, signal);
        expect(damage).toEqual([]);
        for (const { missing } of shards) expect(missing).toEqual([]);
        const alone = await openHistory({ kind: "archive", archive: directory });
        await expectReplayed(alone, await pullAll(archived));
      } finally {
        disk.remove();
      }
    },
  );

  test("says what is wrong: another job, no job, no archive", async () => {
    const archived = await each.start();
    const { directory } = archived;
    const failure = async (...args: string[]) => {
      const { code, stderr } = await archived.pserver(...args, "--json");
      return [code, JSON.parse(stderr).error.code];
    };
    expect(await failure("archive", directory, "--job", "none", "--once")).toEqual([3, "BAD_NAME"]);
    expect(await failure("archive", directory, "--check")).toEqual([6, "IO"]);
    expect(await failure("archive", archived.home, "--check")).toEqual([3, "BAD_ARCHIVE"]);
    expect(await failure("replay", "--to", "now", "--from-file", "none")).toEqual([6, "IO"]);
    expect(await failure("replay", "--to", "now", "--no-broker")).toEqual([3, "BAD_VALUE"]);
    expect(await failure("record", join(directory, "none", "f"))).toEqual([6, "IO"]);
  });
});
