// Proves how long a publisher waits for the broker to store a message: a stated time for which the broker has the message
// and has not answered, however long the message was on the link before. The connection notes what is asked of it, and
// time is faked.
import { type NatsConnection, TimeoutError } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { StreamPublisher } from "../../src/transport/jetstream.ts";

const TIMEOUT_MS = 10_000;

let pongs: (() => void)[];
let replies: string[];
let error: unknown;
let seq: number | undefined;
let answer: (subject: string, data: string) => void;

beforeEach(() => {
  vi.useFakeTimers();
  [pongs, replies, error, seq] = [[], [], undefined, undefined];
  const connection: Partial<NatsConnection> = {
    subscribe: ((_subject: string, { callback }: { callback: (...args: unknown[]) => void }) => {
      answer = (subject, data) => callback(null, { subject, data: Buffer.from(data) });
    }) as never,
    publish: (_subject, _payload, { reply } = {}) => void replies.push(reply ?? ""),
    flush: () => new Promise((resolve) => void pongs.push(resolve)),
  };
  const publisher = StreamPublisher.open(connection as NatsConnection, "_INBOX.p");
  publisher.swap("s", "text", {}, TIMEOUT_MS).then(
    (stored) => {
      seq = stored;
    },
    (thrown: unknown) => {
      error = thrown;
    },
  );
});

afterEach(() => {
  vi.useRealTimers();
});

test("a message that is on a slow link for a minute is stored", async () => {
  await vi.advanceTimersByTimeAsync(60_000);
  expect([pongs.length, error]).toEqual([1, undefined]);
  pongs[0]?.();
  answer(replies[0] ?? "", `{"stream":"S","seq":7}`);
  await vi.advanceTimersByTimeAsync(TIMEOUT_MS);
  expect([seq, error, replies.length]).toEqual([7, undefined, 1]);
});

test("a message that the broker has read and does not answer fails when its time is over", async () => {
  await vi.advanceTimersByTimeAsync(30_000);
  for (let passedMs = 0; passedMs < TIMEOUT_MS - 1_000; passedMs += 100) {
    for (const come of pongs.splice(0)) come();
    expect(error).toBeUndefined();
    await vi.advanceTimersByTimeAsync(100);
  }
  for (const come of pongs.splice(0)) come();
  await vi.advanceTimersByTimeAsync(0);
  expect(error).toBeInstanceOf(TimeoutError);
});
