// Proves that an archive holds the whole tape of a job, each message once, on histories in memory: from the
// first one, although the archive began late; after archivers that were killed anywhere; after the end of
// the tape was lost and written anew. That it is read from a time on, alone and with what came after it; and
// that damage of any byte is found.
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
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { checkArchive } from "../../../src/history/archive/check-archive.ts";
import type { Archiver, ArchiverOptions } from "../../../src/history/archive/job-archiver.ts";
import type { ShardHistory } from "../../../src/history/source.ts";
import { temporaryDirectory } from "../container/container-files.ts";
import { failureOf } from "../failure.ts";
import { archivedShard, archiveOnce, joinedShard, openArchiver } from "./archive-once.ts";
import { MemoryHistory, type MemoryShard, tapeOf } from "./memory-history.ts";

const { signal } = new AbortController();
let directory: string;
let tapeFiles: string;
let live: MemoryHistory;
let shard: MemoryShard;

beforeEach(() => {
  directory = join(temporaryDirectory(), "archive");
  tapeFiles = join(directory, "shard-0", "tape");
  live = new MemoryHistory(2);
  shard = live.shard(0);
});

/** Archives what is there now, and ends in order. */
function archive(options: Partial<ArchiverOptions> = {}): Promise<Archiver> {
  return archiveOnce(live, directory, options);
}

function archived(number = 0): Promise<ShardHistory> {
  return archivedShard(directory, number);
}

function joined(): Promise<ShardHistory> {
  return joinedShard(directory, live);
}

/** The only file of the tape. */
function onlySegment(): string {
  const names = readdirSync(tapeFiles);
  expect(names).toHaveLength(1);
  return join(tapeFiles, names[0] ?? "");
}

test("the tape is copied from its first message on, whatever was trimmed, and on from there", async () => {
  shard.push(30);
  shard.snapshot();
  shard.push(30);
  shard.snapshot();
  shard.trim(1);
  shard.writeTape(20);
  live.shard(1).writeTape(5);
  const { progress } = await archive();
  expect(progress.map(({ tapeMessages }) => tapeMessages)).toEqual([20, 5]);
  shard.writeTape(7);
  await archive();
  expect((await archive()).progress[0]?.tapeMessages).toBe(27);
  expect(await tapeOf(await archived())).toEqual(shard.tape);
  expect(await tapeOf(await archived(1))).toEqual(live.shard(1).tape);
  const { shards, damage } = await checkArchive(directory, signal);
  expect(damage).toEqual([]);
  expect(shards.map(({ tape }) => tape)).toEqual([
    { messages: 27, missing: 0 },
    { messages: 5, missing: 0 },
  ]);
});

test("an archive without a tape reads as such, and gets the whole of it from the next archiver", async () => {
  shard.push(10);
  await archive();
  expect(await tapeOf(await archived())).toEqual([]);
  shard.writeTape(4);
  expect(await tapeOf(await joined())).toEqual(shard.tape);
  await archive();
  expect(await tapeOf(await archived())).toEqual(shard.tape);
});

test("the tape is read from a time on, over several segments", async () => {
  shard.writeTape(100, 100);
  await archive({ segmentBytes: 3_000 });
  expect(readdirSync(tapeFiles).length).toBeGreaterThan(4);
  const history = await archived();
  for (const from of [0, 1, 18, 19, 20, 21, 57, 99]) {
    const timeMs = shard.tape[from]?.timeMs ?? 0;
    expect(await tapeOf(history, timeMs), `from ${from}`).toEqual(shard.tape.slice(from));
    expect(await tapeOf(history, timeMs + 0.1)).toEqual(shard.tape.slice(from + 1));
  }
});

test("an archiver that follows a job looks at the tape now and then", async () => {
  const archiver = await openArchiver(live, directory);
  await archiver.copy(signal);
  shard.writeTape(5);
  for (let round = 0; round < 10; round++) await archiver.copy(signal);
  expect(await tapeOf(await archived())).toEqual(shard.tape);
  await archiver.close();
});

test("an archiver that begins while a later one writes counts on after what that has written", async () => {
  shard.writeTape(5);
  const later = await openArchiver(live, directory, { run: 1_000 });
  await later.copy(signal);
  shard.writeTape(5);
  await archive({ run: 999 });
  expect(await tapeOf(await archived())).toEqual(shard.tape);
  expect((await checkArchive(directory, signal)).damage).toEqual([]);
  await later.close();
});

test("an archiver that was killed loses and doubles nothing, wherever its file was cut", async () => {
  shard.writeTape(20);
  await archive();
  const whole = `${directory}-whole`;
  const left = join(tapeFiles, "0-000000000001.0.open");
  copyFileSync(onlySegment(), whole);
  for (let bytes = statSync(whole).size; bytes >= 0; bytes -= 61) {
    for (const name of readdirSync(tapeFiles)) rmSync(join(tapeFiles, name));
    copyFileSync(whole, left);
    truncateSync(left, bytes);
    // What a reader sees until then is a beginning of it.
    const seen = await tapeOf(await archived());
    expect(seen).toEqual(shard.tape.slice(0, seen.length));
    await archive();
    expect(await tapeOf(await archived()), `cut at ${bytes}`).toEqual(shard.tape);
    expect((await checkArchive(directory, signal)).damage).toEqual([]);
  }
});

test("an archiver continues after a damaged segment, and reports it", async () => {
  shard.writeTape(20);
  await archive();
  const path = onlySegment();
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 1;
  writeFileSync(path, bytes);
  shard.writeTape(3);
  const told: string[] = [];
  await archive({ onDamaged: ({ code }) => told.push(code) });
  expect(told).toEqual(["BAD_ARCHIVE"]);
  expect(await failureOf(tapeOf(await archived()))).toMatchObject({ code: "BAD_ARCHIVE" });
  // What was behind the damage was copied again.
  renameSync(path, `${path}.damaged`);
  const rest = await tapeOf(await archived());
  expect(rest.length).toBeGreaterThan(3);
  expect(rest).toEqual(shard.tape.slice(-rest.length));
});

test.each([
  ["less far than it was", 3],
  ["further than it was", 7],
])(
  "an archive continues after the end of the tape was lost and written anew %s",
  async (_, more) => {
    shard.writeTape(10);
    const before = [...shard.tape];
    await archive();
    shard.tape = shard.tape.slice(0, 6);
    expect(await tapeOf(await joined())).toEqual(before);
    shard.writeTape(more);
    const anew = shard.tape.slice(6);
    expect(anew[0]?.seq).toBe(before[6]?.seq);
    expect(await tapeOf(await joined())).toEqual([...before, ...anew]);
    await archive();
    shard.writeTape(2);
    await archive();
    expect(await tapeOf(await archived())).toEqual([...before, ...shard.tape.slice(6)]);
  },
);

test("archive and broker are read as one", async () => {
  shard.writeTape(10);
  await archive();
  shard.writeTape(10);
  const history = await joined();
  expect(await tapeOf(history)).toEqual(shard.tape);
  for (const from of [4, 9, 10, 15]) {
    expect(await tapeOf(history, shard.tape[from]?.timeMs)).toEqual(shard.tape.slice(from));
  }
});

test("damage of any byte of the tape is found, by a check and by any reader", async () => {
  live = new MemoryHistory(1);
  shard = live.shard(0);
  shard.writeTape(2, 4);
  await archive();
  const path = onlySegment();
  const sound = readFileSync(path);
  for (let at = 0; at <= sound.length; at++) {
    const changed = Buffer.from(sound);
    if (at < sound.length) changed[at] = (sound[at] as number) ^ (1 << (at % 8));
    writeFileSync(path, at < sound.length ? changed : sound.subarray(0, -1));
    const { damage } = await checkArchive(directory, signal);
    expect(
      damage.map(({ code, details }) => [code, details["path"]]),
      `byte ${at}`,
    ).toEqual([["BAD_ARCHIVE", path]]);
    expect((await failureOf(tapeOf(await archived()))).code, `byte ${at}`).toBe("BAD_ARCHIVE");
  }
  writeFileSync(path, sound);
  expect((await checkArchive(directory, signal)).damage).toEqual([]);
});

test("segments of another shard, or of a journal, are refused in the place of the tape's", async () => {
  shard.push(3);
  shard.writeTape(3);
  live.shard(1).writeTape(3);
  await archive();
  const path = onlySegment();
  const others = [
    join(directory, "shard-1", "tape", "0-000000000001-000000000003.segment"),
    join(directory, "shard-0", "journal", "1-000000000001-000000000003.segment"),
  ];
  for (const other of others) {
    copyFileSync(other, path);
    const { code, message } = await failureOf(tapeOf(await archived()));
    expect(code).toBe("BAD_ARCHIVE");
    expect(message).toContain("expected message 1 of the tape of shard 0; received");
  }
});
