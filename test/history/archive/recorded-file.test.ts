// Proves that a recorded file gives what the history gave that it was recorded from, on a history in
// memory: snapshots, pieces, records and times of the span, in every shard and generation, alone and with a broker;
// that it is made of segments and snapshots like a directory; that damage of any byte is found when it is opened;
// that an archive's file is no recording; and that nothing is left behind where a recording fails.
import { readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { ArchiveSource } from "../../../src/history/archive/archive-source.ts";
import { checkArchive } from "../../../src/history/archive/check-archive.ts";
import { writeRecording } from "../../../src/history/archive/recorded-file.ts";
import type { TimedRecord } from "../../../src/history/source.ts";
import { checksum, ensureError, readCrc } from "../../../src/protocol/index.ts";
import { readContainer, temporaryDirectory, writeContainer } from "../container/container-files.ts";
import { archiveOnce, joinedShard } from "./archive-once.ts";
import { MemoryHistory, type MemoryShard, positionOf, recordsOf } from "./memory-history.ts";

const { signal } = new AbortController();
let live: MemoryHistory;
let shard: MemoryShard;
let path: string;

beforeEach(() => {
  live = new MemoryHistory(2);
  shard = live.shard(0);
  path = join(temporaryDirectory(), "file");
  shard.push(30);
  shard.snapshot(3);
  // More than one segment has.
  shard.push(40, 150_000);
  shard.snapshot(1);
  shard.push(10);
  live.shard(1).push(5);
});

function at(seq: number, generation = 1) {
  return { generation, seq };
}

/** A record with the checksum of its payload in place of that. */
function summary({ payload, ...record }: TimedRecord): unknown {
  return { ...record, crc: checksum(payload) };
}

async function record(from = at(35), to = at(75)) {
  const recording = await writeRecording(
    path,
    live,
    { from: [from, at(2)], to: [to, at(4)] },
    { signal },
  );
  return { recording, file: await ArchiveSource.open(path) };
}

describe("a recorded file", () => {
  test("begins at the newest snapshot before its beginning, and ends at its end", async () => {
    const { recording, file } = await record();
    expect(recording.shards).toEqual([
      { shard: 0, from: at(30), to: at(75) },
      { shard: 1, from: at(0), to: at(4) },
    ]);
    const [first] = shard.manifests;
    expect(await file.shard(0).snapshots()).toEqual([first]);
    // With the record of the snapshot, for its time.
    expect(await file.shard(0).spans()).toEqual([{ generation: 1, firstSeq: 30, lastSeq: 75 }]);
    expect(await file.shard(1).spans()).toEqual([{ generation: 1, firstSeq: 1, lastSeq: 4 }]);
    expect([file.job, file.shards, file.synchronization]).toEqual(["j", 2, { mode: "async" }]);
    await file.close();
  });

  test("gives records and pieces as they were", async () => {
    const { file } = await record();
    for (const after of [30, 31, 50, 74]) {
      const expected = (await recordsOf(shard, at(after), 75)).map(summary);
      expect((await recordsOf(file.shard(0), at(after), 75)).map(summary)).toEqual(expected);
    }
    const [first] = shard.manifests;
    for (const { seq, crc } of first?.manifest.state ?? []) {
      expect(await file.shard(0).piece({ seq, crc })).toEqual(shard.pieces.get(seq));
    }
    for (const seq of first?.manifest.pieces ?? []) {
      const bytes = shard.pieces.get(seq) as Uint8Array;
      expect(await file.shard(0).piece({ seq, crc: readCrc(bytes) })).toEqual(bytes);
    }
    const gone = file.shard(0).piece({ seq: 10_000, crc: 1 }).catch(ensureError);
    expect(await gone).toMatchObject({ code: "SNAPSHOT_DAMAGED" });
    await file.close();
  });

  test("tells positions at times", async () => {
    const { file } = await record();
    for (const seq of [30, 31, 60, 75]) {
      expect(await positionOf(file.shard(0), shard.timeOf(seq) + 0.1)).toEqual(at(seq));
    }
    expect(await positionOf(file.shard(0), shard.timeOf(29))).toBeUndefined();
    expect(await positionOf(file.shard(1), shard.timeOf(1) - 2)).toBeUndefined();
    await file.close();
  });

  test("does not give what it does not have", async () => {
    const { file } = await record();
    const before = recordsOf(file.shard(0), at(10), 40).catch(ensureError);
    expect(await before).toMatchObject({ code: "HISTORY_LOST" });
    const after = recordsOf(file.shard(0), at(70), 80).catch(ensureError);
    expect(await after).toMatchObject({ code: "JOURNAL_DAMAGED", details: { expected: 76 } });
    expect(() => file.shard(2)).toThrow("job j has shards 0 to 1");
    await file.close();
  });

  test("spans generations, each from its first snapshot", async () => {
    shard.replace();
    shard.push(6);
    const { file } = await record(at(72), at(4, 2));
    expect(await file.shard(0).spans()).toEqual([
      { generation: 1, firstSeq: 70, lastSeq: 80 },
      { generation: 2, firstSeq: 1, lastSeq: 4 },
    ]);
    const snapshots = await file.shard(0).snapshots();
    expect(snapshots.map(({ manifest: { generation, seq } }) => at(seq, generation))).toEqual([
      at(70),
      at(0, 2),
    ]);
    expect(await recordsOf(file.shard(0), at(0, 2), 4)).toEqual(
      await recordsOf(shard, at(0, 2), 4),
    );
    await file.close();
  });
});

describe("a recorded file is an archive", () => {
  test("of segments and snapshots, each begun by the job", async () => {
    await (await record()).file.close();
    const kinds = (await readContainer(path)).map(({ kind }) => kind).join(" ");
    const segments = kinds.split(/job ?/).filter((part) => part.startsWith("record"));
    expect(kinds).toMatch(/^job job manifest( piece)+ job record/);
    expect(segments.length).toBeGreaterThan(2);
    const { shards, damage } = await checkArchive(path, signal);
    expect(damage).toEqual([]);
    expect(shards.map(({ spans, snapshots }) => [spans[0]?.lastSeq, snapshots])).toEqual([
      [75, 1],
      [4, 0],
    ]);
  });

  test("which is read with the broker as one, and archived like any history", async () => {
    const { file } = await record();
    shard.trim(1);
    const joined = await joinedShard(path, live);
    expect(await joined.spans()).toEqual([{ generation: 1, firstSeq: 30, lastSeq: 80 }]);
    const records = await recordsOf(joined, at(30), 80);
    expect(records.map(({ seq }) => seq)).toEqual(Array.from({ length: 50 }, (_, i) => 31 + i));
    const directory = join(path, "../archive");
    await archiveOnce(file, directory);
    const copy = (await ArchiveSource.open(directory)).shard(0);
    expect((await recordsOf(copy, at(30), 75)).map(summary)).toEqual(
      (await recordsOf(file.shard(0), at(30), 75)).map(summary),
    );
    expect(await copy.snapshots()).toEqual(await file.shard(0).snapshots());
  });
});

describe("damage", () => {
  test("of any byte, and any cut, is found when the file is opened", async () => {
    live = new MemoryHistory(2);
    shard = live.shard(0);
    shard.push(2, 4);
    shard.snapshot();
    shard.push(2, 4);
    live.shard(1).push(4, 4);
    const { file } = await record(at(3), at(4));
    await file.close();
    const sound = readFileSync(path);
    const failure = async () => ensureError(await ArchiveSource.open(path).catch((error) => error));
    for (let i = 0; i < sound.length; i++) {
      const changed = Buffer.from(sound);
      changed[i] = (changed[i] as number) ^ (1 << (i % 8));
      writeFileSync(path, changed);
      expect(await failure(), `byte ${i}`).toMatchObject({
        code: "BAD_ARCHIVE",
        details: { path },
      });
    }
    writeFileSync(path, sound);
    for (let left = sound.length - 1; left >= 0; left--) {
      truncateSync(path, left);
      expect((await failure()).code, `cut at ${left}`).toBe("BAD_ARCHIVE");
    }
  });

  test("an archive's file is no recording", async () => {
    const synchronization = { mode: "async" as const };
    await writeContainer(path, [
      { kind: "job", job: "j", shards: 1, synchronization, archive: "a" },
    ]);
    const { code, message } = ensureError(await ArchiveSource.open(path).catch((error) => error));
    expect(code).toBe("BAD_ARCHIVE");
    expect(message).toContain("expected a recorded file; this is a part of an archive");
  });

  test("a message of a tape is refused in it", async () => {
    const synchronization = { mode: "async" as const };
    await writeContainer(path, [
      { kind: "job", job: "j", shards: 1, synchronization, archive: "" },
      { kind: "tape", shard: 0, number: 1, seq: 1, timeMs: 1, data: Uint8Array.of(1) },
    ]);
    const { code, message } = ensureError(await ArchiveSource.open(path).catch((error) => error));
    expect(code).toBe("BAD_ARCHIVE");
    expect(message).toContain("expected a record or a snapshot; received a tape");
  });
});

describe("a recording that fails", () => {
  const failure = async (from = at(35), to = at(75)) => {
    return ensureError(await record(from, to).catch((error) => error));
  };

  test("leaves nothing behind", async () => {
    shard.onBatch = () => {
      throw new Error("the broker is gone");
    };
    expect((await failure()).message).toBe("the broker is gone");
    expect(readdirSync(join(path, ".."))).toEqual([]);
  });

  test("because its beginning is not kept names what is", async () => {
    shard.trim(1);
    expect(await failure()).toMatchObject({ code: "HISTORY_LOST" });
  });

  test("because it ends before it begins says so", async () => {
    expect(await failure(at(75), at(35))).toMatchObject({
      code: "BAD_VALUE",
      message: "shard 0: the span ends at record 35, before its beginning at 75",
    });
  });

  test("because a snapshot is damaged begins at the one before", async () => {
    const newest = shard.manifests.at(-1);
    for (const { seq } of newest?.manifest.state ?? []) shard.pieces.delete(seq);
    const { recording, file } = await record(at(72), at(75));
    expect(recording.records).toBeGreaterThan(40);
    expect(await file.shard(0).spans()).toEqual([{ generation: 1, firstSeq: 30, lastSeq: 75 }]);
    await file.close();
  });

  test("because a piece of a snapshot is damaged leaves the snapshot out", async () => {
    const piece = shard.manifests.at(-1)?.manifest.pieces.at(-1) ?? 0;
    shard.pieces.delete(piece);
    const { file } = await record(at(72), at(75));
    const [first] = shard.manifests;
    expect(await file.shard(0).snapshots()).toEqual([first]);
    expect((await checkArchive(path, signal)).damage).toEqual([]);
    await file.close();
  });
});
