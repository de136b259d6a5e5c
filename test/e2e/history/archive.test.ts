// Proves on a real broker that an archive loses nothing: while a client trains and hosts trim their
// journals, the archiver is killed at arbitrary moments and started again; afterwards every value that was
// pulled equals the replay from the archive alone, from archive and broker as one, and from a recorded
// file, byte for byte; and that the commands read all of these alike.
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkArchive } from "../../../src/history/archive/check-archive.ts";
import { openHistory } from "../../../src/history/open-journal.ts";
import { snapshotAll } from "../host/control.ts";
import { Archive } from "../host/journal-fold.ts";
import { archivedJobOfEachTest, expectReplayed, pullAll } from "./archived-job.ts";
import type { PulledBlock } from "./pulled.ts";

const { signal } = new AbortController();
const each = archivedJobOfEachTest();

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
  const alone = await archived.alone();
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
  const fromFile = await openHistory({ kind: "archive", archive: file });
  await expectReplayed(fromFile, pulled);
  await fromFile.close();
});

test("commands read the archive and a recorded file as they read the broker", async () => {
  const archived = await each.start();
  const { directory, home } = archived;
  await archived.train(4);
  const [early] = (await pullAll(archived)).filter(({ parameter }) => parameter === "w");
  if (early === undefined) throw new Error("nothing pulled");
  await archived.archiveOnce();
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
