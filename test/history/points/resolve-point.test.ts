// Proves which cut each point means, and which points are refused: those before what is kept, after the end,
// of other shards and of updates or notes that nobody has sent.
import { describe, expect, test } from "vitest";
import { formatTime, parsePoint } from "../../../src/history/points.ts";
import { findStep, resolvePoint } from "../../../src/history/resolve-point.ts";

import { takeInventory } from "../../../src/history/source.ts";
import { failureOf } from "../failure.ts";
import type { FoldedHistory } from "../folded-history.ts";
import { historyOf, type Training } from "../written-training.ts";

const { signal } = new AbortController();

function act(trainer: "alice" | "bob", kind: "gradient" | "clock") {
  return { trainer, parameter: "w", kind, values: [1, 2, 3, 4, 5, 6] } as const;
}

const ASYNC: Training = {
  mode: "async",
  optimizer: "sgd",
  acts: [act("alice", "gradient"), act("bob", "gradient"), act("alice", "gradient")],
};

const SYNC: Training = {
  mode: { mode: "sync", trainers: 2 },
  optimizer: "sgd",
  acts: Array.from({ length: 3 }, () => [act("alice", "clock"), act("bob", "clock")]).flat(),
};

/** The sequence at which a point cuts the shard with records. */
async function seqAt(history: FoldedHistory, text: string): Promise<number | undefined> {
  const { cut } = await resolvePoint(history, parsePoint(text, Date.now()), signal);
  expect(cut.slice(0, 3).map(({ seq }) => seq)).toEqual([0, 0, 0]);
  return cut[3]?.seq;
}

describe("a point", () => {
  test("of both ends is what is kept", async () => {
    const history = historyOf(ASYNC);
    const { lastSeq } = history.own;
    expect([await seqAt(history, "start"), await seqAt(history, "now")]).toEqual([0, lastSeq]);
    history.own.snapshot(4);
    history.own.firstSeq = 5;
    expect(await seqAt(history, "start")).toBe(4);
  });

  test("of a time is the last record stored by then", async () => {
    const history = historyOf(ASYNC);
    expect(await seqAt(history, formatTime(history.own.timeOf(4)))).toBe(4);
    expect(await seqAt(history, formatTime(history.own.timeOf(4) - 1))).toBe(3);
    expect(await seqAt(history, "1s ago")).toBe(history.own.lastSeq);
    const before = seqAt(history, formatTime(history.own.timeOf(1) - 1));
    expect((await failureOf(before)).code).toBe("HISTORY_LOST");
  });

  test("of a position cuts there, and is refused where no record is", async () => {
    const history = historyOf(ASYNC);
    const { lastSeq } = history.own;
    expect(await seqAt(history, "3:4")).toBe(4);
    expect(await seqAt(history, `3:${lastSeq}@1`)).toBe(lastSeq);
    for (const text of [`3:${lastSeq + 1}`, "3:1@2", "4:1"]) {
      expect((await failureOf(seqAt(history, text))).code, text).toBe("BAD_VALUE");
    }
  });

  test("of an update cuts right after its record", async () => {
    const history = historyOf(ASYNC);
    const { lastSeq } = history.own;
    // The first two numbers of alice are those of the inits.
    expect(await seqAt(history, "alice/1:4")).toBe(lastSeq);
    expect(await seqAt(history, "bob/1:1@3")).toBe(lastSeq - 1);
    for (const text of ["alice/1:5", "alice/2:1", "carol/1:1", "bob/1:1@0", "mark:none"]) {
      expect((await failureOf(seqAt(history, text))).code, text).toBe("BAD_VALUE");
    }
    history.own.snapshot(4);
    history.own.firstSeq = 5;
    expect((await failureOf(seqAt(history, "carol/1:1"))).code).toBe("HISTORY_LOST");
  });

  test("of a step cuts a shard right after it closed there", async () => {
    const { own } = historyOf(SYNC);
    const find = async (step: number): Promise<number> => {
      const { seq } = await findStep(own, await takeInventory(own), "test", step, signal);
      return seq;
    };
    for (const snapshots of [[], [own.lastSeq - 3], [own.lastSeq]]) {
      for (const seq of snapshots) own.snapshot(seq);
      for (const step of [1, 2, 3]) {
        const seq = await find(step);
        expect(own.folded(seq).steps.closed).toBe(step);
        expect(own.folded(seq - 1).steps.closed).toBe(step - 1);
      }
    }
    expect((await failureOf(find(4))).code).toBe("BAD_VALUE");
    own.firstSeq = own.lastSeq - 2;
    expect(await find(2)).toBe(own.lastSeq - 2);
    expect((await failureOf(find(1))).code).toBe("HISTORY_LOST");
  });

  test("of a step is refused in a job without steps", async () => {
    expect((await failureOf(seqAt(historyOf(ASYNC), "step:1"))).code).toBe("UNSUPPORTED");
  });
});
