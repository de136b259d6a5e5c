// Proves that an archive and a history that continues are read as one, on histories in memory: the archive's
// part first, then the rest, also where either of them lacks something; that what is trimmed while it is read
// is taken from the archive; and that two which contradict each other are refused.
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import type { ShardHistory, TimedRecord } from "../../../src/history/source.ts";
import { ensureError, readCrc } from "../../../src/protocol/index.ts";
import { temporaryDirectory } from "../container/container-files.ts";
import { archiveOnce, joinedShard } from "./archive-once.ts";
import { MemoryHistory, type MemoryShard, positionOf, recordsOf } from "./memory-history.ts";

let directory: string;
let live: MemoryHistory;
let shard: MemoryShard;
let all: TimedRecord[];

function joined(): Promise<ShardHistory> {
  return joinedShard(directory, live);
}

function at(seq: number) {
  return { generation: 1, seq };
}

beforeEach(async () => {
  directory = join(temporaryDirectory(), "archive");
  live = new MemoryHistory(1);
  shard = live.shard(0);
  shard.push(50);
  shard.snapshot();
  await archiveOnce(live, directory);
  shard.push(50);
  shard.snapshot();
  all = await recordsOf(shard, at(0), 100);
});

describe("an archive and what came after it", () => {
  test("are read as one", async () => {
    const history = await joined();
    expect(await history.spans()).toEqual([{ generation: 1, firstSeq: 1, lastSeq: 100 }]);
    expect(await history.snapshots()).toEqual(shard.manifests);
    for (const after of [0, 20, 50, 70]) {
      expect(await recordsOf(history, at(after), 100)).toEqual(all.slice(after));
    }
    for (const seq of [1, 50, 51, 100]) {
      expect(await positionOf(history, shard.timeOf(seq))).toEqual(at(seq));
    }
    for (const [seq, bytes] of shard.pieces) {
      expect(await history.piece({ seq, crc: readCrc(bytes) })).toEqual(bytes);
    }
  });

  test("are read as one after the beginning was trimmed", async () => {
    const snapshots = [...shard.manifests];
    await archiveOnce(live, directory);
    shard.push(10);
    shard.trim(1);
    const history = await joined();
    expect(await history.spans()).toEqual([{ generation: 1, firstSeq: 1, lastSeq: 110 }]);
    expect(await history.snapshots()).toEqual(snapshots);
    expect((await recordsOf(history, at(0), 100)).slice(0, 100)).toEqual(all);
    expect(await positionOf(history, shard.timeOf(30))).toEqual(at(30));
  });

  test("what is trimmed while it is read is read from the archive", async () => {
    const history = await joined();
    await history.spans();
    // After it was decided to read the second half from the broker.
    let isTrimmed = false;
    shard.onBatch = async () => {
      if (isTrimmed) return;
      isTrimmed = true;
      await archiveOnce(live, directory);
      shard.trim(1);
    };
    expect(await recordsOf(history, at(0), 100)).toEqual(all);
    expect(isTrimmed).toBe(true);
  });

  test("records that both lack are reported, and no position lies among them", async () => {
    shard.push(5);
    shard.trim(1);
    const history = await joined();
    expect(await history.spans()).toEqual([
      { generation: 1, firstSeq: 1, lastSeq: 50 },
      { generation: 1, firstSeq: 100, lastSeq: 105 },
    ]);
    // The archive ends before them, and the broker begins after them.
    expect(await history.gaps?.()).toEqual([{ generation: 1, firstSeq: 51, lastSeq: 99 }]);
    const { code } = ensureError(await recordsOf(history, at(40), 105).catch((error) => error));
    expect(code).toBe("HISTORY_LOST");
    expect(await positionOf(history, shard.timeOf(70))).toBeUndefined();
    expect(await positionOf(history, shard.timeOf(30))).toEqual(at(30));
  });
});

describe("two that contradict each other are refused", () => {
  test("as a record is another", async () => {
    live = new MemoryHistory(1);
    live.shard(0).push(60, 41);
    const { code, message } = ensureError(
      await (await joined()).spans().catch((error: unknown) => error),
    );
    expect(code).toBe("BAD_ARCHIVE");
    expect(message).toContain("record 50 of shard 0 is another than in the broker");
  });

  test("as they are of different jobs", async () => {
    live = new MemoryHistory(2);
    await expect(joined()).rejects.toThrow("expected job j with 2 shards, async; it is of job j");
  });
});
