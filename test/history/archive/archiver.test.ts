// Proves what an archive holds of a history in memory that is trimmed, replaced and archived again: all
// records and snapshots once, as they were; an archiver continues where the last one stopped, wherever an
// archiver that was killed had cut its file; it names what was trimmed before it came; and the archive of
// another life of the job is refused. Damage of any byte of any file is found when the archive is read
// through.
import {
  copyFileSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { ArchiveSource } from "../../../src/history/archive/archive-source.ts";
import { checkArchive } from "../../../src/history/archive/check-archive.ts";
import type { Archiver, ArchiverOptions } from "../../../src/history/archive/job-archiver.ts";
import { temporaryNameBeside } from "../../../src/model-files/temporary-files.ts";
import { ensureError, PserverError } from "../../../src/protocol/index.ts";
import { temporaryDirectory } from "../container/container-files.ts";
import { failureOf } from "../failure.ts";
import { archivedShard, archiveOnce, openArchiver } from "./archive-once.ts";
import { MemoryHistory, type MemoryShard, positionOf, recordsOf } from "./memory-history.ts";

const { signal } = new AbortController();
let directory: string;
let live: MemoryHistory;
let shard: MemoryShard;

beforeEach(() => {
  directory = join(temporaryDirectory(), "archive");
  live = new MemoryHistory(2);
  shard = live.shard(0);
});

/** Archives what is there now, and ends in order. */
function archive(options: Partial<ArchiverOptions> = {}): Promise<Archiver> {
  return archiveOnce(live, directory, options);
}

function filesOf(number: number): string[] {
  const names = readdirSync(join(directory, `shard-${number}`), { recursive: true });
  return (names as string[]).filter((name) => name.includes(".")).sort();
}

/** The archive has exactly these records of a generation. */
async function expectRecords(from: MemoryShard, firstSeq: number, generation = 1): Promise<void> {
  const source = await ArchiveSource.open(directory);
  const own = source.shard(from.shard);
  const all = from.records.get(generation) ?? [];
  const lastSeq = all.at(-1)?.seq ?? 0;
  const after = { generation, seq: firstSeq - 1 };
  const records = await recordsOf(own, after, lastSeq);
  expect(records.map(({ seq }) => seq)).toEqual(
    Array.from({ length: lastSeq - firstSeq + 1 }, (_, i) => firstSeq + i),
  );
  for (const record of all) expect(records.find(({ seq }) => seq === record.seq)).toEqual(record);
}

describe("an archive", () => {
  test("holds records and snapshots as they were, each piece once", async () => {
    shard.push(50);
    const first = shard.snapshot(3);
    shard.push(20);
    const second = shard.snapshot(2);
    await archive();
    const own = await archivedShard(directory);
    expect(await own.spans()).toEqual([{ generation: 1, firstSeq: 1, lastSeq: 70 }]);
    expect(await own.snapshots()).toEqual([first, second]);
    await expectRecords(shard, 1);
    for (const [seq, bytes] of shard.pieces) {
      expect(await own.piece({ seq, crc: readCrcOf(bytes) })).toEqual(bytes);
    }
    // Each was read for the archive once, but for the state, which is read to know the pieces.
    const reads = shard.reads.filter((seq) => first.manifest.pieces.includes(seq));
    expect(reads).toEqual(first.manifest.pieces);
  });

  test("holds what was trimmed after it was copied", async () => {
    for (let i = 0; i < 5; i++) {
      shard.push(30);
      shard.snapshot();
      await archive();
      if (i > 0) shard.trim(1);
    }
    const own = await archivedShard(directory);
    expect(await own.spans()).toEqual([{ generation: 1, firstSeq: 1, lastSeq: 150 }]);
    expect((await own.snapshots()).map(({ manifest }) => manifest.seq)).toEqual([
      30, 60, 90, 120, 150,
    ]);
    await expectRecords(shard, 1);
  });

  test("follows a job to its next generation, after the rest of the one before", async () => {
    shard.push(10);
    shard.snapshot();
    await archive();
    shard.push(5);
    shard.replace();
    shard.push(7);
    await archive();
    const own = await archivedShard(directory);
    expect(await own.spans()).toEqual([
      { generation: 1, firstSeq: 1, lastSeq: 15 },
      { generation: 2, firstSeq: 1, lastSeq: 7 },
    ]);
    await expectRecords(shard, 1, 1);
    await expectRecords(shard, 1, 2);
  });

  test("has a snapshot only once that a take-over committed again", async () => {
    shard.push(10);
    shard.snapshot();
    await archive();
    shard.takeOver();
    await archive();
    expect(filesOf(0).filter((name) => name.endsWith(".snapshot"))).toHaveLength(1);
    shard.push(3);
    shard.snapshot();
    await archive();
    const own = await archivedShard(directory);
    const snapshots = await own.snapshots();
    expect(snapshots.map(({ manifest }) => manifest.seq)).toEqual([10, 13]);
    for (const [seq, bytes] of shard.pieces) {
      expect(await own.piece({ seq, crc: readCrcOf(bytes) })).toEqual(bytes);
    }
  });

  test("leaves out a snapshot that is damaged, but none of the pieces that the next one names", async () => {
    shard.push(5);
    const damaged = shard.snapshot(3);
    for (const { seq } of damaged.manifest.state) shard.pieces.delete(seq);
    const told: string[] = [];
    await archive({ onDamaged: ({ code }) => told.push(code) });
    expect(told).toEqual(["SNAPSHOT_DAMAGED"]);
    shard.push(5);
    const next = shard.snapshot(1);
    await archive();
    const own = await archivedShard(directory);
    expect(await own.snapshots()).toEqual([next]);
    for (const seq of next.manifest.pieces) {
      const bytes = shard.pieces.get(seq) as Uint8Array;
      expect(await own.piece({ seq, crc: readCrcOf(bytes) })).toEqual(bytes);
    }
  });

  test("begins a new segment when one is large enough", async () => {
    shard.push(100, 1_000);
    await archive({ segmentBytes: 20_000 });
    const segments = filesOf(0).filter((name) => name.endsWith(".segment"));
    expect(segments.length).toBeGreaterThan(4);
    const own = await archivedShard(directory);
    expect(await own.spans()).toEqual([{ generation: 1, firstSeq: 1, lastSeq: 100 }]);
    await expectRecords(shard, 1);
    for (const after of [0, 17, 99]) {
      const records = await recordsOf(own, { generation: 1, seq: after }, 100);
      expect(records[0]?.seq).toBe(after + 1);
      expect(records).toHaveLength(100 - after);
    }
  });

  test("tells the position at a time, between records and snapshots", async () => {
    shard.push(100, 1_000);
    shard.snapshot();
    await archive({ segmentBytes: 20_000 });
    const own = await archivedShard(directory);
    for (const seq of [1, 2, 50, 99, 100]) {
      expect(await positionOf(own, shard.timeOf(seq))).toEqual({ generation: 1, seq });
      expect(await positionOf(own, shard.timeOf(seq) + 0.1)).toEqual({ generation: 1, seq });
    }
    expect(await positionOf(own, shard.timeOf(1) - 1)).toBeUndefined();
  });

  test("tells the position at a time after all records while it is written", async () => {
    shard.push(20);
    const archiver = await openArchiver(live, directory);
    await archiver.copy(signal);
    const own = await archivedShard(directory);
    expect(await positionOf(own, shard.timeOf(20) + 1)).toEqual({ generation: 1, seq: 20 });
    await archiver.close();
  });

  test("tells what was trimmed before it was copied", async () => {
    shard.push(30);
    shard.snapshot();
    await archive();
    shard.push(30);
    shard.snapshot();
    shard.push(30);
    shard.snapshot();
    shard.trim(2);
    const archiver = await archive();
    expect(archiver.progress[0]).toMatchObject({
      record: { generation: 1, seq: 90 },
      behindRecords: 0,
      missing: [{ generation: 1, firstSeq: 31, lastSeq: 89 }],
    });
    const own = await archivedShard(directory);
    expect(await own.spans()).toEqual([
      { generation: 1, firstSeq: 1, lastSeq: 30 },
      { generation: 1, firstSeq: 90, lastSeq: 90 },
    ]);
    const after = { generation: 1, seq: 29 };
    const gap = { generation: 1, from: 31, to: 89 };
    expect(await failureOf(recordsOf(own, after, 90))).toMatchObject({
      ...{ code: "HISTORY_LOST", details: gap },
    });
    expect((await checkArchive(directory, signal)).damage).toEqual([]);
    // Which of the missing records were stored by then is not known.
    expect(await positionOf(own, shard.timeOf(50))).toBeUndefined();
    expect(await positionOf(own, shard.timeOf(20))).toEqual({ generation: 1, seq: 20 });
  });

  test("continues at once when records are trimmed while they are copied", async () => {
    shard.push(40);
    shard.snapshot();
    shard.push(40);
    shard.snapshot();
    let batches = 0;
    shard.onBatch = () => {
      // Once for a record that is read again, as it is not readable.
      if (++batches === 3) shard.trim(1);
    };
    const archiver = await archive();
    expect(archiver.progress[0]).toMatchObject({
      record: { generation: 1, seq: 80 },
      missing: [{ generation: 1, firstSeq: 17, lastSeq: 79 }],
    });
  });

  test("goes on behind a record that cannot be read, and says that it lacks that one", async () => {
    shard.push(40);
    shard.lost.add(23);
    const told: PserverError[] = [];
    await archive({ onDamaged: (error) => told.push(error) });
    expect(told).toMatchObject([{ code: "JOURNAL_DAMAGED", details: { expected: 23, found: 24 } }]);
    const own = await archivedShard(directory);
    expect(await own.spans()).toEqual([
      { generation: 1, firstSeq: 1, lastSeq: 22 },
      { generation: 1, firstSeq: 24, lastSeq: 40 },
    ]);
    expect(await own.gaps?.()).toEqual([
      { generation: 1, firstSeq: 23, lastSeq: 23 },
      { generation: 1, firstSeq: 41, lastSeq: Number.MAX_SAFE_INTEGER },
    ]);
  });

  test("goes on after records that it has already were trimmed, or were damaged since", async () => {
    shard.push(20);
    shard.snapshot();
    await archive();
    // The last record that both have is trimmed between the listing and the reading of it.
    shard.push(10);
    shard.snapshot();
    shard.onBatch = () => {
      shard.onBatch = () => undefined;
      shard.trim(1);
    };
    const trimmed = await archive();
    expect(trimmed.progress[0]?.missing).toEqual([{ generation: 1, firstSeq: 21, lastSeq: 29 }]);
    shard.lost.add(30);
    shard.push(5);
    await archive();
    expect((await (await archivedShard(directory)).spans()).at(-1)?.lastSeq).toBe(35);
  });

  test("that has lost a segment is damaged, unlike one that says what it lacks", async () => {
    shard.push(100, 1_000);
    await archive({ segmentBytes: 20_000 });
    const journal = join(directory, "shard-0", "journal");
    const [, second = ""] = readdirSync(journal).sort();
    const [, first = 0, last = 0] = second.replace(".segment", "").split("-").map(Number);
    rmSync(join(journal, second));
    const own = await archivedShard(directory);
    expect(await failureOf(recordsOf(own, { generation: 1, seq: 0 }, 100))).toMatchObject({
      ...{ code: "JOURNAL_DAMAGED", details: { expected: first, found: last + 1 } },
    });
    expect((await checkArchive(directory, signal)).damage).toMatchObject([
      { code: "BAD_ARCHIVE", details: { generation: 1, firstSeq: first, lastSeq: last } },
    ]);
  });

  test("holds a record as it is stored, also where it was damaged on its way", async () => {
    shard.push(30);
    shard.damagedOnce.add(12);
    await archive();
    expect(shard.damagedOnce.size).toBe(0);
    await expectRecords(shard, 1);
  });

  test("tells how far it is behind", async () => {
    const archiver = await openArchiver(live, directory);
    shard.push(100);
    const aborter = new AbortController();
    let batches = 0;
    shard.onBatch = () => {
      if (++batches === 3) aborter.abort();
    };
    await expect(archiver.copy(aborter.signal)).rejects.toThrow();
    expect(archiver.progress[0]?.behindRecords).toBe(100);
    shard.onBatch = () => undefined;
    await archiver.copy(signal);
    expect(archiver.progress[0]?.behindRecords).toBe(0);
    await archiver.close();
    await expectRecords(shard, 1);
  });
});

describe("an archiver that was killed", () => {
  test("is followed by one that loses and doubles nothing, wherever the file was cut", async () => {
    shard.push(20);
    shard.snapshot();
    await archive();
    const [segment = ""] = readdirSync(join(directory, "shard-0", "journal"));
    const complete = join(directory, "shard-0", "journal", segment);
    const left = join(directory, "shard-0", "journal", "1-000000000001.0.open");
    const { size } = statSync(complete);
    copyFileSync(complete, `${directory}-whole`);
    for (let bytes = size; bytes >= 0; bytes -= 61) {
      for (const name of readdirSync(join(directory, "shard-0", "journal"))) {
        rmSync(join(directory, "shard-0", "journal", name));
      }
      copyFileSync(`${directory}-whole`, left);
      truncateSync(left, bytes);
      // What a reader sees until then is a beginning of it.
      const own = await archivedShard(directory);
      for (const { lastSeq } of await own.spans()) expect(lastSeq).toBeLessThanOrEqual(20);
      await archive();
      await expectRecords(shard, 1);
      expect((await checkArchive(directory, signal)).damage).toEqual([]);
    }
  });

  test("leaves no beginning of a snapshot behind", async () => {
    shard.push(3);
    shard.snapshot();
    await archive();
    const temporary = basename(temporaryNameBeside(join(directory, "m")));
    writeFileSync(join(directory, "shard-0", "snapshots", temporary), "half");
    await archive();
    expect(filesOf(0).map((name) => basename(name))).not.toContain(temporary);
  });

  test("does not lose records behind damage: a copy stays, and the damage is reported", async () => {
    shard.push(20);
    await archive();
    const journal = join(directory, "shard-0", "journal");
    const [segment = ""] = readdirSync(journal);
    const left = join(journal, "1-000000000001.0.open");
    renameSync(join(journal, segment), left);
    const bytes = readFileSync(left);
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 1;
    writeFileSync(left, bytes);
    const told: string[] = [];
    await archive({ onDamaged: ({ code }) => told.push(code) });
    expect(told).toEqual(["BAD_ARCHIVE"]);
    expect(readFileSync(`${left}.damaged`)).toEqual(bytes);
    await expectRecords(shard, 1);
  });
});

describe("another history", () => {
  test("of a job with another name or more shards is refused", async () => {
    await archive();
    live = new MemoryHistory(3);
    const { code, message } = await failureOf(archive());
    expect(code).toBe("BAD_ARCHIVE");
    expect(message).toBe(
      `${directory}: expected job j with 3 shards, async; it is of job j with 2 shards, async`,
    );
  });

  test("with another record in the same place is refused, and nothing is added", async () => {
    shard.push(30);
    await archive();
    live = new MemoryHistory(2);
    live.shard(0).push(40, 41);
    const before = filesOf(0);
    expect(await failureOf(archive())).toMatchObject({ code: "BAD_ARCHIVE" });
    expect(filesOf(0)).toEqual(before);
  });

  test("whose journal was created at another time is refused, also where no record is in both", async () => {
    shard.push(30);
    shard.snapshot();
    await archive();
    live = new MemoryHistory(2);
    const other = live.shard(0);
    other.created = "later";
    other.push(50);
    other.snapshot();
    other.snapshot();
    other.trim(1);
    expect(await failureOf(archive())).toMatchObject({ code: "BAD_ARCHIVE" });
  });
});

describe("a job that is removed and made again while it is archived", () => {
  let archiver: Archiver;

  beforeEach(async () => {
    live = new MemoryHistory(1);
    shard = live.shard(0);
    shard.push(30);
    shard.snapshot();
    archiver = await openArchiver(live, directory);
    await archiver.copy(signal);
    shard.records.set(1, []);
    shard.manifests = [];
    shard.restart();
  });

  test("is noticed when its journal is shorter", async () => {
    shard.push(10, 41);
    expect(await failureOf(archiver.copy(signal))).toMatchObject({ code: "BAD_ARCHIVE" });
    await archiver.close();
  });

  test("is noticed by when its journal was created", async () => {
    shard.created = "later";
    shard.push(50, 41);
    shard.snapshot();
    expect(await failureOf(archiver.copy(signal))).toMatchObject({ code: "BAD_ARCHIVE" });
    await archiver.close();
    const own = await archivedShard(directory);
    expect(await own.spans()).toEqual([{ generation: 1, firstSeq: 1, lastSeq: 30 }]);
  });
});

test("a record that is missing where it is kept does not keep the rest from being archived", async () => {
  shard.push(50);
  live.shard(1).push(20);
  shard.onBatch = () => {
    throw new PserverError("JOURNAL_DAMAGED", "record 1 is missing");
  };
  const told: string[] = [];
  await archive({ onDamaged: ({ code }) => told.push(code) });
  expect(told).toEqual(["JOURNAL_DAMAGED"]);
  await expectRecords(live.shard(1), 1);
});

test("damage of any byte of any file is found, and the file named", async () => {
  live = new MemoryHistory(1);
  shard = live.shard(0);
  shard.push(3, 4);
  shard.snapshot();
  shard.push(1, 4);
  await archive();
  const files = (readdirSync(directory, { recursive: true }) as string[]).filter((name) =>
    statSync(join(directory, name)).isFile(),
  );
  expect(files).toHaveLength(3);
  const sound = new Map(
    files.map((name) => [join(directory, name), readFileSync(join(directory, name))]),
  );
  const change = (at: number): string[] =>
    [...sound].flatMap(([path, bytes]) => {
      const changed = Buffer.from(bytes);
      if (at < bytes.length) changed[at] = (bytes[at] as number) ^ (1 << (at % 8));
      writeFileSync(path, at < bytes.length ? changed : bytes.subarray(0, -1));
      return [path];
    });
  const facts = join(directory, "archive.pserver");
  for (let at = 0; at <= Math.max(...[...sound.values()].map(({ length }) => length)); at++) {
    const changed = change(at);
    expect(await damageIn(directory), `byte ${at}`).toEqual([facts]);
    writeFileSync(facts, sound.get(facts) ?? "");
    const others = changed.filter((path) => path !== facts);
    expect((await damageIn(directory)).sort(), `byte ${at}`).toEqual(others.sort());
  }
  for (const [path, bytes] of sound) writeFileSync(path, bytes);
  expect(await damageIn(directory)).toEqual([]);
});

/** Files that are damaged, as a check tells. */
async function damageIn(path: string): Promise<unknown[]> {
  try {
    return (await checkArchive(path, signal)).damage.map(({ details }) => details["path"]);
  } catch (error) {
    const { code, details } = ensureError(error);
    expect(code).toBe("BAD_ARCHIVE");
    return [details["path"]];
  }
}

function readCrcOf(bytes: Uint8Array): number {
  return Buffer.from(bytes).readUInt32BE(6);
}
