// Proves that purging below the first record asks for nothing: for the broker, "below 0" is all; and
// that the state of a journal names the sequences without a record.
import { JetStreamApiError, type JetStreamClient, type JetStreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { Journal } from "../../../src/actors/journal/journal.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";

const NOT_FOUND = { code: 404, err_code: 10059, description: "stream not found" };

function journalOn(streams: object): Journal {
  return new Journal({
    manager: { streams } as unknown as JetStreamManager,
    client: {} as unknown as JetStreamClient,
    subjects: new JobSubjects("j"),
    settings: { storage: "file", bytesMax: 1, replicas: 1, synchronization: { mode: "async" } },
    shard: 3,
  });
}

test("a purge below record 0 or 1 is none", async () => {
  const purged: unknown[] = [];
  const streams = {
    purge: (stream: string, options: unknown) => {
      purged.push([stream, options]);
      return Promise.resolve();
    },
  };
  const journal = journalOn(streams);
  await journal.purgeBelow(1, 0);
  await journal.purgeBelow(1, 1);
  await journal.purgeBelow(2, 7);
  expect(purged).toEqual([["PS_j_3_2", { seq: 7 }]]);
});

test("the state of a journal names the sequences that hold no record, and what the broker has lost", async () => {
  const asked: unknown[] = [];
  const state = { first_seq: 2, last_seq: 9, bytes: 70 };
  const deleted = { num_deleted: 2, deleted: [4, 5] };
  const states = [
    { ...state, ...deleted, lost: { msgs: [4] } },
    { ...state, lost: { msgs: null } },
    state,
  ];
  const journal = journalOn({
    info: (stream: string, options: unknown) => {
      asked.push([stream, options]);
      return Promise.resolve({ created: "now", config: { max_bytes: 99 }, state: states.shift() });
    },
  });
  const expected = { created: "now", firstSeq: 2, lastSeq: 9, bytes: 70, bytesMax: 99 };
  expect(await journal.info(1)).toEqual({ ...expected, missing: [4, 5], lost: [4] });
  expect(await journal.info(1)).toEqual({ ...expected, missing: [], lost: [] });
  expect(await journal.info(1)).toEqual({ ...expected, missing: [], lost: undefined });
  // Without the option the broker only counts them.
  expect(asked).toEqual(Array(3).fill(["PS_j_3", { deleted_details: true }]));
});

test("the last sequence is asked for without the sequences that hold no record", async () => {
  const asked: unknown[][] = [];
  const journal = journalOn({
    info: (...question: unknown[]) => {
      asked.push(question);
      if (question[0] === "PS_j_3") return Promise.resolve({ state: { last_seq: 9 } });
      return Promise.reject(new JetStreamApiError(NOT_FOUND));
    },
  });
  expect(await journal.lastSeq(1)).toBe(9);
  expect(await journal.lastSeq(2)).toBeUndefined();
  expect(await journal.info(2)).toBeUndefined();
  expect(asked.slice(0, 2)).toEqual([["PS_j_3"], ["PS_j_3_2"]]);
});
