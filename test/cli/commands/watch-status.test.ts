// Proves what `pserver status --watch` shows: rates from two looks, counted anew where a shard was taken over, the time
// of the last record; looks one after the other until the command is interrupted, in place on a terminal.
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import {
  describeActivity,
  describeRates,
  ratesBetween,
  watch,
} from "../../../src/cli/commands/watch-status.ts";
import { Output } from "../../../src/cli/output/output.ts";

function shard(
  number: number,
  seq: number,
  applied: number,
  rejected: number,
  journalBytes: number,
) {
  const guarded = { reject: 0, clip: 0, "set-aside": 0 };
  const updates = { applied, rejected, guarded };
  return { shard: number, state: "serving", seq, updates, journalBytes };
}

describe("rates", () => {
  test("are per second, of all shards together", () => {
    const before = { atMs: 1_000, shards: [shard(0, 10, 5, 1, 1_000), shard(1, 0, 0, 0, 0)] };
    const now = { atMs: 3_000, shards: [shard(0, 30, 15, 1, 5_000), shard(1, 4, 2, 2, 96)] };
    const rates = ratesBetween(before, now);
    expect(rates).toEqual({
      appliedPerSecond: 6,
      rejectedPerSecond: 1,
      recordsPerSecond: 12,
      journalBytesPerSecond: 2_048,
    });
    expect(describeRates(rates)).toBe("6 applied/s, 1 rejected/s, 12 records/s, 2 KiB/s");
  });

  test("are never negative: a journal is trimmed, a new owner counts anew", () => {
    const before = { atMs: 0, shards: [shard(0, 10, 5, 9, 9_000)] };
    const now = { atMs: 1_000, shards: [shard(0, 12, 7, 0, 100), shard(1, 5, 5, 0, 50)] };
    expect(ratesBetween(before, now)).toEqual({
      appliedPerSecond: 2,
      rejectedPerSecond: 0,
      recordsPerSecond: 2,
      journalBytesPerSecond: 0,
    });
  });
});

test("the last record of any shard counts, by the broker's clock", () => {
  const shards = [
    { ...shard(0, 1, 0, 0, 0), lastRecordMs: 5_000 },
    { ...shard(1, 1, 0, 0, 0), lastRecordMs: 7_500 },
  ];
  expect(describeActivity(shards, 10_000)).toBe("last record 2.5 s ago");
  expect(describeActivity(shards, 7_000)).toBe("last record 0 ms ago");
  expect(describeActivity([shard(0, 0, 0, 0, 0)], 0)).toBeUndefined();
});

describe("watching", () => {
  async function watched(isTTY: boolean, json: boolean): Promise<string> {
    const interrupt = new AbortController();
    const stdout = Object.assign(new PassThrough(), { isTTY, columns: 80 });
    const context = { stdout, stderr: new PassThrough(), signal: interrupt.signal };
    const output = Output.open(context, {}, { json });
    let looks = 0;
    await watch(context, output, 1, async () => {
      looks += 1;
      if (looks === 2) interrupt.abort(new Error("Ctrl-C"));
      return { lines: [`look ${looks}`, "of two"], value: { looks } };
    });
    stdout.end();
    return await text(stdout);
  }

  test("draws in place on a terminal", async () => {
    expect(await watched(true, false)).toBe("look 1\nof two\n\u001b[2A\u001b[Jlook 2\nof two\n");
  });

  test("writes one look after the other elsewhere", async () => {
    expect(await watched(false, false)).toBe("look 1\nof two\n\nlook 2\nof two\n\n");
  });

  test("writes one value for each look", async () => {
    expect(await watched(false, true)).toBe('{"looks":1}\n{"looks":2}\n');
  });

  test("ends with an error that is none of an interruption", async () => {
    const context = {
      stdout: new PassThrough(),
      stderr: new PassThrough(),
      signal: new AbortController().signal,
    };
    const output = Output.open(context, {}, {});
    const failing = watch(context, output, 1, () => Promise.reject(new Error("no broker")));
    await expect(failing).rejects.toThrow("no broker");
  });
});
