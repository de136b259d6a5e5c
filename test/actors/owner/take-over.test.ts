// Proves that what takes a shard over is waited for as long as it progresses: the owner says how far it has come until
// it answers, and those who wait give up only when that stays the same.
import type { NatsConnection } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { TakeOvers } from "../../../src/actors/host/take-overs.ts";
import { OwnersClient } from "../../../src/actors/job/owners-client.ts";
import {
  readTakeOver,
  type TakeOverProgress,
  TakeOverWatch,
  takingOver,
} from "../../../src/actors/owner/take-over.ts";
import { encodeError, encodeMessage, type Fields } from "../../../src/protocol/index.ts";
import { withoutPauses } from "../../support/without-pauses.ts";
import { SUBJECTS } from "../fold/journal-writer.ts";

/** How long each question, or look, takes. */
const STEP_MS = 1_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
  withoutPauses();
});

afterEach(() => {
  vi.useRealTimers();
});

function folded(records: number): TakeOverProgress {
  return { shard: 3, loadedBytes: 10, folded: records, records: 1_000_000 };
}

test("what an owner says of a take-over is read again from its answer and its status", () => {
  const error = takingOver(folded(5));
  expect(error).toMatchObject({ code: "NO_OWNER", retryable: true });
  expect(error.message).toMatch(/shard 3: .* folded 5 of 1,000,000 records/);
  expect(readTakeOver(error.details)).toEqual(folded(5));
  expect(readTakeOver({ shard: 3 })).toBeUndefined();
});

test("progress is a change, and nothing else", () => {
  let nowMs = 0;
  const watch = new TakeOverWatch(() => nowMs);
  const stalled: number[] = [];
  for (const records of [1, 1, 2, 2, 2]) {
    nowMs += STEP_MS;
    watch.note([folded(records)]);
    stalled.push(watch.stalledMs);
  }
  expect(stalled).toEqual([0, 1_000, 0, 1_000, 2_000]);
});

describe("a host that starts", () => {
  /** Waits for shard 3, whose status is looked at each second; returns how often that was. */
  async function start(statusOf: (look: number) => Fields, servedAt: number): Promise<number> {
    let looks = 0;
    const takeOvers = new TakeOvers({
      host: "h",
      statuses: () => [statusOf(looks)],
      onProgress: () => undefined,
    });
    await takeOvers.until(() => {
      vi.advanceTimersByTime(STEP_MS);
      looks += 1;
      return looks === servedAt;
    }, 60_000);
    return looks;
  }

  const statusOf = (records: number): Fields => {
    const { shard, ...takeOver } = folded(records);
    return { shard, takeOver };
  };

  test("folds a backlog of any length", async () => {
    expect(await start((look) => statusOf(look), 1_000)).toBe(1_000);
  });

  test("gives up a minute after the last progress, and says how far it came", async () => {
    const started = start((look) => statusOf(Math.min(look, 200)), 1_000);
    await expect(started).rejects.toMatchObject({
      code: "TIMEOUT",
      message: expect.stringMatching(/60000 ms; shard 3: folded 200 of 1,000,000 records/),
    });
  });
});

describe("who asks the owner", () => {
  /** Asks shard 3, whose owner answers each second; returns the number of answers and what came of it. */
  async function ask(answerOf: (asked: number) => Uint8Array): Promise<[number, string]> {
    let asked = 0;
    const request = (): Promise<{ data: Uint8Array }> => {
      vi.advanceTimersByTime(STEP_MS);
      asked += 1;
      return Promise.resolve({ data: answerOf(asked) });
    };
    const connection = { request } as unknown as NatsConnection;
    const settings = { journalBytesMax: 1, shards: 1 };
    const deps = { connection, subjects: SUBJECTS, settings, host: "h" };
    const owners = new OwnersClient({ ...deps, manager: {} as never, journalOf: () => never() });
    try {
      await owners.ask(3, "status", {});
      return [asked, "answered"];
    } catch (error) {
      return [asked, String((error as Error).message)];
    }
  }

  test("waits while the take-over progresses, however long that is", async () => {
    const answers = (asked: number): Uint8Array =>
      asked < 500 ? encodeError(takingOver(folded(asked))) : encodeMessage({ ok: true });
    expect(await ask(answers)).toEqual([500, "answered"]);
  });

  test("gives up when it has stopped for the grace time", async () => {
    const [asked, text] = await ask((n) => encodeError(takingOver(folded(Math.min(n, 100)))));
    expect(asked).toBe(120);
    expect(text).toMatch(/folded 100 of 1,000,000 records, without progress for 20000 ms/);
  });
});

function never(): never {
  throw new Error("not asked for");
}
