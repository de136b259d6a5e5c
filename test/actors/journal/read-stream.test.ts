import {
  type Consumer,
  type JetStreamClient,
  JetStreamError,
  type JetStreamManager,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { readStream, type StreamRead } from "../../../src/actors/journal/streams.ts";
import { ensureError } from "../../../src/protocol/index.ts";

// Proves that a reading gives what a stream can deliver and ends: at the last message without waiting for more, at
// the one that it was to reach, when its reader has enough, and when the rest does not come; that a message that is
// lost on its way is noticed; that one which is damaged is not waited for; and that it leaves no consumer for long, even where it may not delete one. The consumer
// is a list of messages.

/** What each fetch delivers: sequences, and how many messages are left after each. */
let batches: (readonly [seq: number, pending: number])[][];
let pendingAtFirst: number;
/** The place of the next message among those delivered. */
let delivery: number;
let fetches: object[];
/** Whether a message was waited for after the last one. */
let hasWaited: boolean;
let made: object[];
let deleted: string[];
let deleteFails: boolean;
/** Sequences of the messages that the broker can still give. */
let stored: readonly number[];
/** Called each time when it is asked for one. */
let onAsked: () => void;
/** How many times nobody answers for the consumer. */
let refusals: number;
/** Called before each message comes. */
let onDelivery: () => void;

beforeEach(() => {
  [batches, pendingAtFirst, delivery, fetches, hasWaited] = [[], 0, 1, [], false];
  [made, deleted, deleteFails] = [[], [], false];
  [stored, onAsked, onDelivery, refusals] = [[], () => undefined, () => undefined, 0];
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function* deliver(batch: readonly (readonly [number, number])[]): AsyncGenerator<unknown> {
  for (const [seq, pending] of batch) {
    onDelivery();
    const info = { pending, streamSequence: seq, deliverySequence: delivery++ };
    yield { seq, subject: `s.${seq}`, info };
  }
  hasWaited = true;
}

/** What nats.js throws where nobody answers for a consumer. */
const UNKNOWN = Object.assign(new JetStreamError("no responders"), { code: 503 });

async function* refuse(): AsyncGenerator<unknown> {
  await Promise.resolve();
  vi.advanceTimersByTime(200);
  yield* [];
  throw UNKNOWN;
}

const consumer = {
  fetch: (options: object) => {
    if (refusals > 0) {
      refusals -= 1;
      return Promise.resolve(refuse());
    }
    fetches.push(options);
    if (fetches.length > 9) throw new Error("fetches without end");
    return Promise.resolve(deliver(batches.shift() ?? []));
  },
} as unknown as Consumer;

const manager = {
  streams: {
    getMessage: (_stream: string, { seq }: { seq: number }) => {
      onAsked();
      return Promise.resolve(stored.some((each) => each >= seq) ? { seq } : null);
    },
  },
  consumers: {
    add: (stream: string, config: { name: string }) => {
      made.push({ stream, ...config });
      const delivered = { stream_seq: 3 };
      return Promise.resolve({ name: config.name, num_pending: pendingAtFirst, delivered });
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

async function read(
  options: Partial<StreamRead> = {},
  isEnough: (seq: number) => boolean = () => false,
): Promise<number[]> {
  const found: number[] = [];
  const how = { select: { filter_subject: "s.>" }, timeoutMs: 700, action: "trying", details: {} };
  for await (const batch of readStream({ manager, client, stream: "S", ...how, ...options })) {
    found.push(...batch.map(({ seq }) => seq));
    if (found.some(isEnough)) break;
  }
  return found;
}

const TWO_BATCHES: typeof batches = [
  [
    [4, 2],
    [5, 1],
  ],
  [[9, 0]],
];

test.each([
  ["fast link is asked for ever more", 1, [2, 8, 32, 64]],
  ["slow link is asked for less, so that all comes before the request expires", 700, [2, 1, 1, 1]],
  ["link in between is asked for as much as before", 300, [2, 2, 2, 2]],
])("a %s at a time", async (_name, messageMs, expected) => {
  let nowMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  onDelivery = () => {
    nowMs += messageMs;
  };
  pendingAtFirst = 4;
  const pairs = messageMs === 300 ? 2 : 1;
  batches = [4, 3, 2, 1].map((left) => {
    return Array.from({ length: pairs }, (_, i) => [10 - 2 * left + i, left - 1] as const);
  });
  if (messageMs === 700) batches[0]?.push([3, 3]);
  await read({ timeoutMs: 10_000, batchMessages: 64 });
  const wanted = fetches.map((options) => (options as { max_messages: number }).max_messages);
  expect(wanted).toEqual(expected);
});

test("all messages come in order, and none is waited for after the last", async () => {
  pendingAtFirst = 3;
  batches = [...TWO_BATCHES];
  expect(await read()).toEqual([4, 5, 9]);
  expect(fetches).toHaveLength(2);
  expect(deleted).toHaveLength(1);
  hasWaited = false;
  [pendingAtFirst, delivery, batches] = [1, 1, [[[4, 0]]]];
  await read();
  expect(hasWaited).toBe(false);
});

test("a consumer that the broker does not know yet is asked again, for the time in which messages must come", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  [pendingAtFirst, batches, refusals] = [3, [...TWO_BATCHES], 3];
  expect(await read()).toEqual([4, 5, 9]);
  [delivery, batches, refusals] = [1, [...TWO_BATCHES], 9];
  expect(ensureError(await read().catch((error) => error))).toMatchObject({
    code: "JETSTREAM_UNAVAILABLE",
  });
  expect(refusals).toBe(9 - 4);
});

test("a reading of nothing asks for nothing", async () => {
  expect([await read(), fetches]).toEqual([[], []]);
});

test("a reading up to a message waits for it where a replica lags, and goes no further", async () => {
  batches = [[[4, 0]], ...TWO_BATCHES.slice(1), [[10, 0]]];
  expect(await read({ toSeq: 9 })).toEqual([4, 9]);
  expect(fetches).toHaveLength(2);
});

test("messages that do not come within the time for them are an error, or left out where that is asked for", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  pendingAtFirst = 3;
  stored = [4, 5];
  onAsked = () => vi.advanceTimersByTime(400);
  batches = [[[4, 2]], []];
  expect(ensureError(await read().catch((error) => error))).toMatchObject({
    code: "TIMEOUT",
    message: expect.stringContaining("trying"),
  });
  expect(fetches).toHaveLength(3);
  expect(fetches[0]).toMatchObject({ expires: 700 });
  [delivery, batches] = [1, [[[4, 2]], []]];
  expect(await read({ isLossy: true })).toEqual([4]);
  expect(deleted).toHaveLength(2);
});

test("messages that the broker counts and cannot give are not waited for", async () => {
  pendingAtFirst = 3;
  stored = [4, 6];
  // Message 5 is damaged: the count of those left stays too high by one.
  batches = [
    [
      [4, 2],
      [6, 1],
    ],
    [],
  ];
  expect(await read({ timeoutMs: 30_000 })).toEqual([4, 6]);
  expect(fetches).toMatchObject([{ expires: 2_000 }, { expires: 2_000 }]);
  // All of them.
  [pendingAtFirst, stored, fetches] = [2, [3], []];
  expect(await read({ timeoutMs: 30_000 })).toEqual([]);
  expect(fetches).toHaveLength(1);
});

test("a message that is lost on its way is an error", async () => {
  pendingAtFirst = 3;
  [delivery, batches] = [2, [...TWO_BATCHES]];
  expect(ensureError(await read().catch((error) => error))).toMatchObject({
    code: "TIMEOUT",
    message: "stream S: a message was lost on its way",
  });
});

test("a reading ends when its reader has enough", async () => {
  pendingAtFirst = 3;
  batches = [...TWO_BATCHES];
  expect(await read({}, (seq) => seq === 5)).toEqual([4, 5]);
  expect([fetches.length, deleted.length]).toEqual([1, 1]);
});

test("a consumer that may not be deleted is no error: the broker removes it when twice that time has passed", async () => {
  deleteFails = true;
  expect(await read()).toEqual([]);
  expect(made).toMatchObject([
    { stream: "S", filter_subject: "s.>", inactive_threshold: nanos(1_400), mem_storage: true },
  ]);
});
