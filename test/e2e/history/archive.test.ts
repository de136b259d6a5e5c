// Proves on a real broker that an archive loses nothing: while a client trains and hosts trim their
// journals, the archiver is killed at arbitrary moments and started again; afterwards every value that was
// pulled equals the replay from the archive alone, from archive and broker as one, and from a recorded
// file, byte for byte. And what an archiver as a process does: it is the only one in its directory, ends in
// order when it is interrupted, follows a job to its next generation, and survives a full disk.
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { checkArchive } from "../../../src/history/archive/check-archive.ts";
import { openHistory } from "../../../src/history/open-history.ts";
import { replayShard } from "../../../src/history/replay/replay-shard.ts";
import type { HistorySource } from "../../../src/history/source.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { mountObstacle, SmallDisk } from "../../support/small-disk.ts";
import { control, snapshotAll } from "../host/control.ts";
import { Archive } from "../host/journal-fold.ts";
import { type ArchivedJob, archivedJobOfEachTest } from "./archived-job.ts";
import { digestOf, Observer, type PulledBlock } from "./pulled.ts";

const { signal } = new AbortController();
const each = archivedJobOfEachTest();

/** Pulls all parameters now. */
async function pullAll({ job, client }: ArchivedJob): Promise<PulledBlock[]> {
  const observer = await Observer.open(job);
  try {
    const infos = await client.listParams();
    return (await Promise.all(infos.map((info) => observer.pull(info)))).flat();
  } finally {
    await observer.close();
  }
}

/** Compares pulled blocks with the replays to their positions. */
async function expectReplayed(source: HistorySource, pulled: readonly PulledBlock[]) {
  const subjects = new JobSubjects(source.job);
  for (const { shard, position, parameter, index, version, digest } of pulled) {
    const replayed = await replayShard(source.shard(shard), position, { subjects, signal });
    const block = replayed.block(parameter, index);
    expect(block?.version).toBe(version);
    expect(digestOf(block?.values() ?? Buffer.of()), `${parameter} at ${position.seq}`).toBe(
      digest,
    );
  }
}

test("nothing is lost or doubled by an archiver that is killed again and again while hosts trim", async () => {
  const archived = await each.start();
  const { job, directory } = archived;
  const pulled: PulledBlock[] = [];
  for (let life = 0; life < 5; life++) {
    const archiver = archived.archiver();
    await archived.train(life);
    if (life % 2 === 0) await archived.untilArchived();
    pulled.push(...(await pullAll(archived)));
    archiver.child.kill("SIGKILL");
    await archiver.finished;
    // Less than hosts hold back for it.
    await archived.train(3);
    pulled.push(...(await pullAll(archived)));
    const next = archived.archiver();
    await archived.untilArchived();
    next.child.kill("SIGKILL");
    await next.finished;
    await archived.train(2);
  }
  const last = await archived.pserver("archive", directory, "--once", "--json");
  expect([last.code, last.stderr]).toEqual([0, ""]);
  await using broker = await Archive.open(job.broker.url, job.job);
  for (const shard of [0, 1]) expect((await broker.journal(shard)).first).toBeGreaterThan(1);
  const { shards, damage } = await checkArchive(directory, signal);
  expect(damage).toEqual([]);
  for (const { shard, spans, missing } of shards) {
    const { last: lastSeq } = await broker.journal(shard);
    expect(spans).toEqual([{ generation: 1, firstSeq: 1, lastSeq }]);
    expect(missing).toEqual([]);
  }
  // From the archive alone, and with what came after it from the broker.
  const alone = await openHistory({ kind: "archive", archive: directory });
  await expectReplayed(alone, pulled);
  await archived.train(2);
  pulled.push(...(await pullAll(archived)));
  const joined = await openHistory(archived.place(directory));
  await expectReplayed(joined, pulled);
  await joined.close();
  // From a file of all of it, by the command.
  const file = join(archived.home, "all.pserver");
  const recorded = await archived.pserver("record", file, "--archive", directory);
  expect(recorded.code, recorded.stderr).toBe(0);
  const fromFile = await openHistory({ kind: "file", file });
  await expectReplayed(fromFile, pulled);
  await fromFile.close();
});

test("commands read the archive and a recorded file as they read the broker", async () => {
  const archived = await each.start();
  const { directory, home } = archived;
  await archived.train(4);
  const [early] = (await pullAll(archived)).filter(({ parameter }) => parameter === "w");
  if (early === undefined) throw new Error("nothing pulled");
  expect((await archived.pserver("archive", directory, "--once")).code).toBe(0);
  await archived.train(30);
  await snapshotAll(archived.job);
  const to = `${early.shard}:${early.position.seq}`;
  const out = join(home, "w.bin");
  const replay = (...from: string[]) =>
    archived.pserver("replay", "--to", to, "--param", "w", "--out", out, "--json", ...from);
  // The broker alone has trimmed it.
  const lost = await replay();
  expect(lost.code).not.toBe(0);
  expect(JSON.parse(lost.stderr).error.code).toBe("HISTORY_LOST");
  for (const from of [
    ["--archive", directory, "--no-broker"],
    ["--archive", directory],
  ]) {
    const { code, stdout, stderr } = await replay(...from);
    expect([code, stderr]).toEqual([0, ""]);
    const digests = JSON.parse(stdout).shards;
    expect(digests).toHaveLength(2);
  }
  const file = join(home, "span.pserver");
  const span = ["--from", "start", "--to", to, "--archive", directory];
  const recorded = await archived.pserver("record", file, ...span, "--json");
  expect([recorded.code, recorded.stderr]).toEqual([0, ""]);
  expect(JSON.parse(recorded.stdout)).toMatchObject({ file });
  const { code, stderr } = await replay("--from-file", file, "--url", "nats://127.0.0.1:1");
  expect([code, stderr]).toEqual([0, ""]);
});

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

  test("ends in order when it is interrupted: all is complete, and hosts wait for it no more", async () => {
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

  test("that comes too late says what is missing, and the archive goes on after it", async () => {
    const archived = await each.start();
    expect((await archived.pserver("archive", archived.directory, "--once")).code).toBe(0);
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
    const alone = await openHistory({ kind: "archive", archive: archived.directory });
    await expectReplayed(alone, pulled);
  });

  test("follows a job to the next generation of its journals", async () => {
    const archived = await each.start({ journal: "memory" });
    const { job, directory } = archived;
    await archived.train(2);
    await snapshotAll(job);
    expect((await archived.pserver("archive", directory, "--once")).code).toBe(0);
    for (const host of job.hosts.splice(0)) await host.kill();
    await job.broker.stop();
    await job.broker.start();
    await job.host();
    await archived.client.pullFull("w");
    await archived.train(2);
    const { code, stderr } = await archived.pserver("archive", directory, "--once");
    expect(code, stderr).toBe(0);
    const { shards, damage } = await checkArchive(directory, signal);
    expect(damage).toEqual([]);
    for (const { spans } of shards) {
      expect(spans.map(({ generation }) => generation)).toEqual([1, 2]);
    }
    const alone = await openHistory({ kind: "archive", archive: directory });
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
        expect((await archived.pserver("archive", directory, "--once")).code).toBe(0);
        await archived.train(3);
        await disk.fill();
        const full = await archived.pserver("archive", directory, "--once", "--json");
        expect(full.code).toBe(6);
        expect(JSON.parse(full.stderr).error.code).toBe("DISK_FULL");
        expect((await checkArchive(directory, signal)).damage).toEqual([]);
        await disk.free();
        expect((await archived.pserver("archive", directory, "--once")).code).toBe(0);
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

  test("is told what is wrong: another job, no job, no archive", async () => {
    const archived = await each.start();
    const { directory } = archived;
    const failure = async (...args: string[]) => {
      const { code, stderr } = await archived.pserver(...args, "--json");
      return [code, JSON.parse(stderr).error.code];
    };
    expect(await failure("archive", directory, "--job", "none", "--once")).toEqual([3, "BAD_NAME"]);
    expect(await failure("archive", directory, "--check")).toEqual([3, "BAD_ARCHIVE"]);
    expect(await failure("replay", "--to", "now", "--from-file", "none")).toEqual([6, "IO"]);
    expect(await failure("replay", "--to", "now", "--no-broker")).toEqual([3, "BAD_VALUE"]);
    expect(await failure("record", join(directory, "none", "f"))).toEqual([6, "IO"]);
  });
});
