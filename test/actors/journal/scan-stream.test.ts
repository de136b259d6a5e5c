import type { Consumer, JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { beforeEach, expect, test } from "vitest";
import { scanStream } from "../../../src/actors/journal/streams.ts";

// Proves that a scan reports what a stream can deliver and ends: at the last message without waiting for more,
// when its reader has enough, and when the rest does not come; and that it leaves no consumer for long, even
// where it may not delete one. The consumer is a list of messages.

/** What each fetch delivers: sequences, and how many messages are left after each. */
let batches: (readonly [seq: number, pending: number][])[];
let pendingAtFirst: number;
let fetches: object[];
/** Whether a message was waited for after the last one. */
let hasWaited: boolean;
let made: object[];
let deleted: string[];
let deleteFails: boolean;

beforeEach(() => {
  [batches, pendingAtFirst, fetches, hasWaited] = [[], 0, [], false];
  [made, deleted, deleteFails] = [[], [], false];
});

async function* deliver(batch: readonly [number, number][]): AsyncGenerator<unknown> {
  for (const [seq, pending] of batch) yield { seq, subject: `s.${seq}`, info: { pending } };
  hasWaited = true;
}

const consumer = {
  fetch: (options: object) => {
    fetches.push(options);
    if (fetches.length > 9) throw new Error("fetches without end");
    return Promise.resolve(deliver(batches.shift() ?? []));
  },
} as unknown as Consumer;

const manager = {
  consumers: {
    add: (stream: string, config: { name: string }) => {
      made.push({ stream, ...config });
      return Promise.resolve({ name: config.name, num_pending: pendingAtFirst });
    },
    delete: (_stream: string, name: string) => {
      deleted.push(name);
      return deleteFails ? Promise.reject(new Error("not permitted")) : Promise.resolve(true);
    },
  },
} as unknown as JetStreamManager;

const client = {
  consumers: { getConsumerFromInfo: () => consumer },
} as unknown as JetStreamClient;

async function scan(isEnough: (seq: number) => boolean = () => false): Promise<number[]> {
  const found: number[] = [];
  const start = { filter_subject: "s.>" };
  await scanStream({ manager, client, stream: "S", start, graceMs: 700 }, (seq) => {
    found.push(seq);
    return !isEnough(seq);
  });
  return found;
}

test("a scan reports all messages in order, and does not wait for more after the last", async () => {
  pendingAtFirst = 3;
  batches = [
    [
      [4, 2],
      [5, 1],
    ],
    [[9, 0]],
  ];
  expect(await scan()).toEqual([4, 5, 9]);
  expect(fetches).toHaveLength(2);
  hasWaited = false;
  [pendingAtFirst, batches] = [1, [[[4, 0]]]];
  await scan();
  expect(hasWaited).toBe(false);
});

test("a scan of nothing asks for nothing", async () => {
  expect([await scan(), fetches]).toEqual([[], []]);
});

test("a scan skips messages that do not come within the time for them", async () => {
  pendingAtFirst = 3;
  batches = [[[4, 2]], []];
  expect(await scan()).toEqual([4]);
  expect(fetches).toMatchObject([{ expires: 700 }, { expires: 700 }]);
});

test("a scan ends when its reader has enough", async () => {
  pendingAtFirst = 3;
  batches = [
    [
      [4, 2],
      [5, 1],
      [6, 0],
    ],
  ];
  expect(await scan((seq) => seq === 5)).toEqual([4, 5]);
  expect(deleted).toHaveLength(1);
});

test("a consumer that may not be deleted is no error: the broker removes it when twice that time has passed", async () => {
  deleteFails = true;
  expect(await scan()).toEqual([]);
  expect(made).toMatchObject([
    { stream: "S", filter_subject: "s.>", inactive_threshold: nanos(1_400), mem_storage: true },
  ]);
});
