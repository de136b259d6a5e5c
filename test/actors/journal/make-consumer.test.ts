// Proves that a consumer is made though a cluster gives it to a broker that has died: another one is tried while no
// answer comes, the first that is made counts, and an error ends it. The broker is a list of requests, and time is
// faked.
import type { ConsumerConfig, ConsumerInfo, JetStreamManager } from "@nats-io/jetstream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { makeConsumer } from "../../../src/actors/journal/streams.ts";

interface Asked {
  readonly config: Partial<ConsumerConfig>;
  readonly answer: () => void;
  readonly fail: (error: Error) => void;
}

let asked: Asked[];

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
});

afterEach(() => {
  vi.useRealTimers();
});

function make(): Promise<ConsumerInfo> {
  const add = (_stream: string, config: Partial<ConsumerConfig>): Promise<ConsumerInfo> =>
    new Promise((resolve, fail) => {
      asked.push({ config, fail, answer: () => resolve({ name: config.name } as ConsumerInfo) });
    });
  const manager = { consumers: { add } } as unknown as JetStreamManager;
  return makeConsumer(manager, "S", () => ({ name: `c${asked.length}` }));
}

test("one that is made at once is the only one, and is kept once", async () => {
  const made = make();
  asked[0]?.answer();
  expect((await made).name).toBe("c0");
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked.map(({ config }) => config)).toEqual([
    { name: "c0", mem_storage: true, num_replicas: 1 },
  ]);
  expect(vi.getTimerCount()).toBe(0);
});

test("while there is no answer two others are tried, and the first answer counts", async () => {
  const made = make();
  await vi.advanceTimersByTimeAsync(999);
  expect(asked).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(asked).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(asked.map(({ config }) => config.name)).toEqual(["c0", "c1", "c2"]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked).toHaveLength(3);
  asked[1]?.answer();
  expect((await made).name).toBe("c1");
});

test("an error ends it, and no other is tried", async () => {
  const made = make();
  asked[0]?.fail(new Error("no stream"));
  await expect(made).rejects.toThrow("no stream");
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked).toHaveLength(1);
});
