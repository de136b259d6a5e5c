// Proves that archives and recorded files that were written once stay readable: an archive of version 1 of
// the format and a file recorded from it, of a small training, are replayed to their end and have the digests
// that they had then; and the archive, which was begun late, lists all updates of its job from its tape.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkArchive } from "../../src/history/archive/check-archive.ts";
import { openArchivedJournal, type UpdateEvent } from "../../src/history/index.ts";
import { openHistory } from "../../src/history/open-journal.ts";
import { replayShard } from "../../src/history/replay/replay-shard.ts";
import type { HistoryPlace } from "../../src/history/source.ts";
import { JobSubjects } from "../../src/protocol/index.ts";

interface Expected {
  readonly shard: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly snapshots: readonly number[];
  readonly digest: string;
}

const { signal } = new AbortController();
const FIXTURES = join(import.meta.dirname, "../fixtures/history");
const ARCHIVE = join(FIXTURES, "archive-1");
const RECORDING = join(FIXTURES, "recording-1.pserver");
const EXPECTED: readonly Expected[] = JSON.parse(
  readFileSync(join(FIXTURES, "expected-1.json"), "utf8"),
);

async function listed(updates: AsyncIterable<UpdateEvent>): Promise<UpdateEvent[]> {
  const all: UpdateEvent[] = [];
  for await (const update of updates) all.push(update);
  return all;
}

async function expectDigests(place: HistoryPlace): Promise<void> {
  const source = await openHistory(place);
  const subjects = new JobSubjects(source.job);
  for (const { shard, lastSeq, digest } of EXPECTED) {
    const end = { generation: 1, seq: lastSeq };
    const replayed = await replayShard(source.shard(shard), end, { subjects, signal });
    expect(replayed.digest()).toBe(digest);
  }
  await source.close();
}

test("an archive of version 1 is read", async () => {
  await expectDigests({ kind: "archive", archive: ARCHIVE });
  const { shards, damage } = await checkArchive(ARCHIVE, signal);
  expect(damage).toEqual([]);
  for (const { shard, firstSeq, lastSeq } of EXPECTED) {
    expect(shards[shard]?.spans).toEqual([{ generation: 1, firstSeq, lastSeq }]);
  }
  const source = await openHistory({ kind: "archive", archive: ARCHIVE });
  for (const { shard, snapshots } of EXPECTED) {
    const seqs = (await source.shard(shard).snapshots()).map(({ manifest }) => manifest.seq);
    expect(seqs).toEqual(snapshots);
  }
});

test("a recorded file of version 1 is read", async () => {
  await expectDigests({ kind: "archive", archive: RECORDING });
});

test("the package opens both", async () => {
  const opened = [openArchivedJournal(ARCHIVE), openArchivedJournal(RECORDING)];
  for (const journal of await Promise.all(opened)) {
    const { model, close } = await journal.replayTo("now", { threads: false });
    expect(model.parameters.map(({ name }) => name)).toEqual(["u", "v", "w"]);
    await close();
    await journal.close();
  }
});

test("the package lists the updates of both, filtered and between points", async () => {
  await using archive = await openArchivedJournal(ARCHIVE);
  await using recorded = await openArchivedJournal(RECORDING);
  const { shard, lastSeq } = EXPECTED[0] ?? { shard: 0, lastSeq: 0 };
  for (const journal of [archive, recorded]) {
    const all = await listed(journal.updates());
    for (const expected of EXPECTED) {
      const seqs = all.flatMap((update) => (update.shard === expected.shard ? [update.seq] : []));
      const [first = 0, last] = [seqs[0], seqs.at(-1)];
      expect(last).toBe(expected.lastSeq);
      expect(new Set(seqs).size).toBe(expected.lastSeq - first + 1);
    }
    const ofW = await listed(journal.updates({ parameter: "w" }));
    expect(ofW.length).toBeGreaterThan(1);
    expect(ofW).toEqual(all.filter(({ block }) => block?.parameter === "w"));
    const end = await listed(journal.updates({ since: `${shard}:${lastSeq - 1}` }));
    const seqs = end.filter((update) => update.shard === shard).map(({ seq }) => seq);
    // It is a batch.
    expect(new Set(seqs)).toEqual(new Set([lastSeq]));
  }
});

test("its tape is read, back to the beginning of its job", async () => {
  const { shards } = await checkArchive(ARCHIVE, signal);
  expect(shards.map(({ tape, missing }) => [tape, missing[0]?.lastSeq])).toEqual([
    [{ messages: 3, missing: 0 }, 46],
    [{ messages: 3, missing: 0 }, 39],
  ]);
  await using archive = await openArchivedJournal(ARCHIVE);
  const all = await listed(archive.updates());
  for (const [shard, lastSeq] of [51, 44].entries()) {
    const seqs = all.flatMap((update) => (update.shard === shard ? [update.seq] : []));
    expect([...new Set(seqs)]).toEqual(Array.from({ length: lastSeq }, (_, i) => i + 1));
  }
  const ofW = all.filter(({ block }) => block?.parameter === "w");
  expect(ofW.map(({ block }) => block?.operation.op)).toEqual(["init", ...Array(40).fill("grad")]);
  const largest = ofW.slice(1).map(({ block }) => block?.statistics?.max);
  expect(largest).toEqual(Array.from({ length: 40 }, (_, i) => (i % 7 === 0 ? 0 : i / 8)));
  const notes = all.flatMap(({ note }) => (note === undefined ? [] : [note]));
  expect(notes.map(({ loss }) => loss)).toEqual([0, 10, 20, 30].map((i) => 1 / (i + 1)));
  const since = await listed(archive.updates({ since: "mark:early", parameter: "w" }));
  expect(since.map(({ block }) => block?.statistics?.max)).toEqual(largest.slice(11));
});
