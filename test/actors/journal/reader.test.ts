// Proves that a reader delivers a journal in order from where it is told to begin: what it asks the
// broker for and when, what it makes of gaps, repeats, statuses and silence, and how it ends. The broker
// is a connection that only notes and delivers; its silence is that of faked timers.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Credit, JournalReader } from "../../../src/actors/journal/journal-reader.ts";

import { PserverError } from "../../../src/protocol/index.ts";
import { JournalLine } from "../../support/journal-line.ts";
import { withoutPauses } from "../../support/without-pauses.ts";

const WINDOW = 10;

let line: JournalLine;
let reader: JournalReader;
let delivered: number[];
let failed: string[];
let located: number;
let start: () => Promise<void>;
let locate: () => Promise<{ stream: string; startSeq: number }>;

beforeEach(() => {
  vi.useFakeTimers();
  line = new JournalLine();
  [delivered, failed, located] = [[], [], 0];
  let next = 5;
  locate = () => Promise.resolve({ stream: "PS_j_3", startSeq: next });
  reader = new JournalReader({
    connection: line.connection,
    manager: line.manager,
    inboxPrefix: "_INBOX_j.=host.h",
    isReplicated: false,
    credit: new Credit(WINDOW * 100, 100),
  });
  start = () =>
    reader.start({
      locate: () => {
        located += 1;
        return locate();
      },
      onRecord: ({ seq }) => {
        delivered.push(seq);
        next = seq + 1;
      },
      onFailure: ({ code }) => failed.push(code),
    });
});

afterEach(() => {
  reader.stop();
  vi.useRealTimers();
});

/** Lets what can run run. */
async function settle(ms = 0): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

const RECORD = new Uint8Array(100);

describe("a record at which the connection ends", () => {
  test.each([
    ["a space", "ps.j.log.3.trainer.a.push w"],
    ["a line feed", "ps.j.log.3.trainer.a\n"],
    ["more than the broker takes", `ps.j.log.3.${"x".repeat(5_000)}`],
  ])("is damage if its subject has %s", async (_what, subject) => {
    line.stored.set(6, subject);
    await start();
    line.record(5, RECORD);
    // Once it is read from there, and once more.
    await reader.reconnected();
    expect([failed, line.consumers.at(-1)?.config.opt_start_seq]).toEqual([[], 6]);
    await reader.reconnected();
    expect([failed, line.consumers.length, line.open]).toEqual([["JOURNAL_DAMAGED"], 2, 0]);
  });

  test("is read again if a sender can have named it so, and if there is none", async () => {
    line.stored.set(5, "ps.j.log.3.\u00ff.junk");
    await start();
    await reader.reconnected();
    line.record(5, RECORD);
    await reader.reconnected();
    await reader.reconnected();
    expect([failed, line.consumers.length]).toEqual([[], 4]);
  });
});

describe("reading", () => {
  test("begins where it is told to, unfiltered and without acknowledgements", async () => {
    await start();
    const [made] = line.consumers;
    expect(made?.stream).toBe("PS_j_3");
    expect(made?.config).toMatchObject({
      ack_policy: "none",
      deliver_policy: "by_start_sequence",
      opt_start_seq: 5,
      replay_policy: "instant",
      num_replicas: 1,
      mem_storage: true,
    });
    expect(made?.config).not.toHaveProperty("filter_subject");
    const { name } = made?.config ?? {};
    expect(line.requests).toMatchObject([
      { subject: `$JS.API.CONSUMER.MSG.NEXT.PS_j_3.${name}`, batch: WINDOW },
    ]);
  });

  test("asks for more when half of what may be under way is folded, and not before", async () => {
    await start();
    for (let seq = 5; seq < 15; seq++) line.record(seq, RECORD);
    expect(delivered).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    reader.taken(4);
    expect(line.requests).toHaveLength(1);
    reader.taken(1);
    expect(line.requests.map(({ batch }) => batch)).toEqual([WINDOW, 5]);
  });

  test("asks anew for all that may be under way after a reset, whatever was not folded before", async () => {
    await start();
    for (let seq = 5; seq < 14; seq++) line.record(seq, RECORD);
    await reader.reset();
    expect(line.requests.map(({ batch }) => batch)).toEqual([WINDOW, WINDOW]);
  });

  test("gives each record once: an older one is left out", async () => {
    await start();
    line.record(5, RECORD);
    line.record(6, RECORD);
    line.record(5, RECORD);
    line.record(6, RECORD);
    line.record(7, RECORD);
    expect(delivered).toEqual([5, 6, 7]);
    expect(line.consumers).toHaveLength(1);
  });

  test("asks again for a record that was lost on the way", async () => {
    await start();
    line.record(5, RECORD);
    line.record(7, RECORD);
    await settle();
    expect(delivered).toEqual([5]);
    expect(line.consumers.map(({ config }) => config.opt_start_seq)).toEqual([5, 6]);
    line.record(6, RECORD);
    line.record(7, RECORD);
    expect(delivered).toEqual([5, 6, 7]);
  });

  test("reports a gap that is there the second time, too, and asks again at the next gap", async () => {
    await start();
    line.record(7, RECORD);
    await settle();
    expect([delivered, line.consumers.length]).toEqual([[], 2]);
    line.record(7, RECORD);
    line.record(8, RECORD);
    expect(delivered).toEqual([7, 8]);
    line.record(11, RECORD);
    await settle();
    expect([delivered, line.consumers.length]).toEqual([[7, 8], 3]);
    line.record(11, RECORD);
    expect(delivered).toEqual([7, 8, 11]);
  });
});

describe("the end of a request", () => {
  test("by its timeout is followed by another request, for what did not come", async () => {
    await start();
    line.record(5, RECORD);
    line.record(6, RECORD);
    reader.taken(2);
    line.status(408, 8);
    expect(line.requests.map(({ batch }) => batch)).toEqual([WINDOW, WINDOW]);
    expect(line.consumers).toHaveLength(1);
  });

  test("by any other status has the journal read anew; a heartbeat does not", async () => {
    await start();
    line.status(100);
    await settle();
    expect(line.consumers).toHaveLength(1);
    line.status(409);
    // After a pause: a consumer that was just made may have no leader.
    await settle(50);
    expect(line.consumers).toHaveLength(2);
    expect(line.open).toBe(1);
  });

  test("by one status after the other is followed by growing pauses", async () => {
    await start();
    for (const [i, pauseMs] of [50, 100, 200].entries()) {
      line.status(503);
      await settle(pauseMs - 1);
      expect(line.consumers).toHaveLength(i + 1);
      await settle(1);
      expect(line.consumers).toHaveLength(i + 2);
    }
  });

  test("without a word for two and a half heartbeats has the journal read anew", async () => {
    await start();
    await settle(2_000);
    line.status(100);
    await settle(2_500);
    expect(line.consumers).toHaveLength(1);
    await settle(500);
    expect(line.consumers).toHaveLength(2);
  });
});

describe("an error", () => {
  test("that can pass is followed by retries until it has passed", async () => {
    const there = locate;
    locate = () => {
      if (located === 3) locate = there;
      return Promise.reject(new PserverError("TIMEOUT", "the broker did not answer"));
    };
    await start();
    line.record(5, RECORD);
    expect([delivered, located, failed]).toEqual([[5], 4, []]);
  });

  test.each([
    "JOURNAL_LOST",
    "JOURNAL_DAMAGED",
    "SNAPSHOT_DAMAGED",
    "NOT_OWNER",
    "UNKNOWN_RULES",
    "TOO_LARGE",
    "CLOSED",
    "DENIED",
  ] as const)("that cannot pass, %s, ends it, once", async (code) => {
    locate = () => Promise.reject(new PserverError(code, "for good"));
    await start();
    await reader.reset();
    await settle(60_000);
    expect(failed).toEqual([code]);
    expect(located).toBe(1);
  });

  test.each(["INTERNAL", "BAD_MESSAGE"] as const)(
    "that nothing explains, %s, ends it when ten attempts in a row have ended so",
    async (code) => {
      withoutPauses();
      const defect = new PserverError(code, "x is undefined");
      const failures = [...Array(9).fill(defect), new PserverError("TIMEOUT", "no answer")];
      locate = () => Promise.reject(failures.shift() ?? defect);
      await start();
      expect([located, failed]).toEqual([20, [code]]);
    },
  );

  test("that nothing explains is forgotten once the journal is read", async () => {
    withoutPauses();
    const failing = (times: number) => {
      const failures = Array(times).fill(new PserverError("INTERNAL", "x is undefined"));
      return () =>
        failures.length > 0
          ? Promise.reject(failures.pop())
          : Promise.resolve({ stream: "PS_j_3", startSeq: 5 });
    };
    for (const times of [9, 9]) {
      locate = failing(times);
      await start();
    }
    line.record(5, RECORD);
    expect([delivered, failed]).toEqual([[5], []]);
  });

  test("of the broker as it makes the consumer is tried again, too", async () => {
    let failures = 1;
    line.beforeAdd = async () => {
      if (failures-- > 0) throw new PserverError("NO_BROKER", "away");
    };
    await start();
    line.record(5, RECORD);
    expect([delivered, line.open]).toEqual([[5], 1]);
  });
});

describe("a reset", () => {
  test("during another has the journal located once more at its end", async () => {
    let go: () => void = () => undefined;
    line.beforeAdd = () =>
      new Promise((resolve) => {
        go = resolve;
      });
    const first = start();
    await settle();
    const second = reader.reset();
    const third = reader.reset();
    line.beforeAdd = () => Promise.resolve();
    go();
    await Promise.all([first, second, third]);
    expect([located, line.consumers.length, line.open]).toEqual([2, 2, 1]);
  });

  test("after a reconnect does not wait for an answer that never comes", async () => {
    line.beforeAdd = () => new Promise(() => undefined);
    void start();
    await settle();
    line.beforeAdd = () => Promise.resolve();
    await reader.reconnected();
    line.record(5, RECORD);
    expect([delivered, line.open]).toEqual([[5], 1]);
  });

  test("that was overtaken ignores its answer when it comes at last", async () => {
    let late: () => void = () => undefined;
    line.beforeAdd = () =>
      new Promise((resolve) => {
        late = resolve;
      });
    void start();
    await settle();
    line.beforeAdd = () => Promise.resolve();
    await reader.reconnected();
    late();
    await settle();
    expect([line.open, line.requests.length]).toEqual([1, 1]);
  });
});

test("nothing is delivered, asked for or reported once it has stopped", async () => {
  await start();
  reader.stop();
  line.record(5, RECORD);
  reader.taken(WINDOW);
  locate = () => Promise.reject(new PserverError("JOURNAL_LOST", "gone"));
  await reader.reset();
  await settle(60_000);
  expect([delivered, line.requests.length, line.open]).toEqual([[], 1, 0]);
  expect([failed, located]).toEqual([[], 1]);
});
