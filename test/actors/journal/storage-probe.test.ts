import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { TimeoutError } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { probeStorage } from "../../../src/actors/journal/streams.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";

// Proves that a probe which the broker could not make while it removed another one is made again, and
// that a broker which never makes it, or never answers, is not taken for one that is full.

const SUBJECTS = new JobSubjects("j");

/** A broker that fails to make a store so often; the race that does it cannot be had at will. */
function brokerFailing(times: number): { manager: JetStreamManager; attempts: () => number } {
  let attempts = 0;
  const streams = {
    add: async () => {
      attempts += 1;
      if (attempts > times) return;
      const description = "error creating store for stream";
      throw new JetStreamApiError({ code: 500, err_code: 10049, description });
    },
    delete: async () => true,
  };
  return { manager: { streams } as unknown as JetStreamManager, attempts: () => attempts };
}

test("a probe that could not be made is made again", async () => {
  const { manager, attempts } = brokerFailing(3);
  expect(await probeStorage(manager, SUBJECTS, "file", 1)).toBe(true);
  expect(attempts()).toBe(4);
});

test("a probe of which the broker says nothing is removed: it may be made later", async () => {
  const removed: string[] = [];
  const streams = {
    add: () => Promise.reject(new TimeoutError()),
    delete: async (name: string) => removed.push(name) > 0,
  };
  const manager = { streams } as unknown as JetStreamManager;
  await expect(probeStorage(manager, SUBJECTS, "file", 1)).rejects.toMatchObject({
    code: "TIMEOUT",
  });
  expect(removed).toEqual([SUBJECTS.storageProbeStream()]);
});

test("a probe that can never be made ends with the broker's error", async () => {
  const { manager } = brokerFailing(Number.POSITIVE_INFINITY);
  const asked = probeStorage(manager, SUBJECTS, "file", 1, 100);
  await expect(asked).rejects.toMatchObject({
    code: "JETSTREAM_UNAVAILABLE",
    message: "asking the broker for space: error creating store for stream",
  });
});
