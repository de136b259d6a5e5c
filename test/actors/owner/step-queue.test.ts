// Proves which requests about steps are answered at once, which wait, how waiting ends, and that a request
// that waited in vain is told for whom.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { StepTable } from "../../../src/actors/fold/step-table.ts";
import { StepQueue, type WantedStep } from "../../../src/actors/owner/pending-reads.ts";
import { PserverError, toSynchronization } from "../../../src/protocol/index.ts";

const SHARD = 5;

let queue: StepQueue;
let table: StepTable;
let heard: string[];
let refused: PserverError | undefined;

beforeEach(() => {
  vi.useFakeTimers();
  queue = new StepQueue(SHARD);
  table = new StepTable();
  table.synchronization = toSynchronization({ mode: "sync", trainers: 2 });
  heard = [];
  refused = undefined;
});

afterEach(() => {
  vi.useRealTimers();
});

/** What is asked for: by a trainer that keeps step, or else as a read of "reader". */
type Asked = Pick<WantedStep, "revision" | "step"> & Partial<WantedStep>;

function ask(asked: Asked): void {
  const { trainer = "reader", isRead = asked.trainer === undefined } = asked;
  queue.at(table, {
    from: trainer,
    wanted: { ...asked, trainer, isRead },
    waitMs: 100,
    run: () => heard.push("run"),
    refuse: (error) => {
      heard.push(error.code);
      refused = error;
    },
  });
}

function members(revision: number, trainers: readonly string[], started = true): void {
  table.takeMembers({ verb: "members", revision, started, trainers });
}

function end(trainer: string, step: number): void {
  table.takeClock(trainer, step, 1_024);
  table.close();
}

/** What a request is told when its time has passed. */
function complaint(asked: Asked): PserverError {
  ask(asked);
  vi.advanceTimersByTime(100);
  expect(heard).toEqual(["TIMEOUT"]);
  return refused as PserverError;
}

describe("a request", () => {
  test("for members and a step that are reached already runs at once", () => {
    ask({ revision: 0, step: 0 });
    members(3, ["a", "b"]);
    ask({ revision: 3, step: 0, trainer: "z" });
    end("a", 1);
    end("b", 1);
    ask({ revision: 2, step: 1, trainer: "z" });
    expect(heard).toEqual(["run", "run", "run"]);
  });

  test("waits for the members of its revision, then for its step", () => {
    ask({ revision: 2, step: 1, trainer: "a" });
    queue.advance();
    members(2, ["a", "b"]);
    end("a", 1);
    queue.advance();
    expect(heard).toEqual([]);
    end("b", 1);
    queue.advance();
    queue.advance();
    expect(heard).toEqual(["run"]);
  });

  test("of a trainer that is no member, or ceases to be one, does not wait for a step", () => {
    members(1, ["a", "b"]);
    end("a", 1);
    ask({ revision: 1, step: 1, trainer: "c" });
    ask({ revision: 1, step: 1, trainer: "a" });
    ask({ revision: 1, step: 1 });
    expect(heard).toEqual(["NOT_MEMBER"]);
    members(2, []);
    queue.advance();
    expect(heard).toEqual(["NOT_MEMBER", "NOT_MEMBER"]);
    expect(refused?.message).toContain('"a"');
  });

  test.each([false, true])(
    "of a trainer that was removed and came back without knowing does not wait for its own steps",
    (isRead) => {
      members(1, ["a", "b"]);
      end("a", 1);
      ask({ revision: 1, step: 1, trainer: "a", isRead });
      expect(heard).toEqual([]);
      members(2, ["b"]);
      members(3, ["a", "b"]);
      queue.advance();
      expect(heard).toEqual(["NOT_MEMBER"]);
      expect(refused?.message).toContain("anew");
      expect(refused?.details).toEqual({ trainer: "a", expected: 1, received: 0 });
      // Once it has told how far it is, it may wait again.
      end("a", 1);
      ask({ revision: 1, step: 1, trainer: "a", isRead });
      expect(heard).toEqual(["NOT_MEMBER"]);
      end("b", 1);
      queue.advance();
      expect(heard).toEqual(["NOT_MEMBER", "run"]);
    },
  );

  test("is refused in a job without steps", () => {
    table.synchronization = { mode: "async" };
    ask({ revision: 0, step: 0, trainer: "a" });
    expect(heard).toEqual(["UNSUPPORTED"]);
  });

  test("is refused when the shard is handed over, once", () => {
    members(1, ["a"]);
    ask({ revision: 1, step: 1 });
    queue.refuseAll(new PserverError("NOT_OWNER", "gone"));
    vi.advanceTimersByTime(1_000);
    expect(heard).toEqual(["NOT_OWNER"]);
  });

  test("is refused when too many of its trainer wait; those of others wait", () => {
    members(1, ["a"]);
    members(2, ["a", "b"]);
    end("a", 1);
    for (let i = 0; i < 2_048; i++) ask({ revision: 1, step: 1 });
    expect(heard).toEqual([]);
    ask({ revision: 1, step: 1 });
    expect(heard).toEqual(["BUSY"]);
    ask({ revision: 1, step: 1, trainer: "a" });
    expect(heard).toEqual(["BUSY"]);
  });
});

describe("a request that times out is told", () => {
  test("that its members are not known", () => {
    members(1, ["a"]);
    expect(complaint({ revision: 4, step: 0 }).message).toMatch(/revision 4 .* only those of 1/);
  });

  test("how many trainers have entered", () => {
    members(1, ["a"], false);
    expect(complaint({ revision: 1, step: 1 }).message).toContain("1 of 2 trainers have entered");
  });

  test("whom it waits for", () => {
    members(1, ["a", "b", "c"]);
    end("b", 1);
    const { message, details } = complaint({ revision: 1, step: 1, trainer: "b" });
    expect(message).toMatch(/shard 5: .* waits for "a", "c"; waited 100 ms/);
    expect(details).toEqual({
      shard: SHARD,
      expected: { revision: 1, step: 1 },
      received: { revision: 1, step: 0 },
      waitingFor: ["a", "c"],
    });
  });

  test("a few of many that it waits for", () => {
    members(
      1,
      Array.from({ length: 40 }, (_, i) => `t-${i}`),
    );
    const { message, details } = complaint({ revision: 1, step: 1 });
    expect(details["waitingFor"]).toHaveLength(16);
    expect(message).toContain("perhaps others");
  });

  test("that nobody is left", () => {
    members(1, ["a"]);
    members(2, []);
    expect(complaint({ revision: 1, step: 1 }).message).toContain(
      "no trainer is a member any more",
    );
  });
});
