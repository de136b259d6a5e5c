// Proves that a verification finds every snapshot that is not the fold of the records before it, whether it
// was changed or damaged, and continues behind damage of the journal; that records which are known to be missing are
// no damage; and that it compares what a host holds.
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { blockDigest, Shard, stateDigest } from "../../../src/actors/fold/shard.ts";
import { replayShard } from "../../../src/history/replay/replay-shard.ts";
import { LocalReplayedShard } from "../../../src/history/replay/replayed-model.ts";
import {
  isSound,
  type VerifiedPlace,
  verifyServed,
  verifyShard,
} from "../../../src/history/verify.ts";
import { type Fields, type Message, PserverError } from "../../../src/protocol/index.ts";
import { SHARD, SUBJECTS } from "../../actors/fold/journal-writer.ts";
import { failureOf } from "../failure.ts";
import type { FoldedHistory } from "../folded-history.ts";
import { historyOf } from "../written-training.ts";

const { signal } = new AbortController();
const OPTIONS = { subjects: SUBJECTS, signal };

const { apply: APPLY } = Shard.prototype;

/** Lets the fold fail at a record, as it does for a defect; what it returns ends that, as does the test. */
function failAt(seq: number): () => void {
  const spy = vi.spyOn(Shard.prototype, "apply").mockImplementation(function (this: Shard, record) {
    if (record.seq === seq) throw new PserverError("FOLD_FAILED", "a defect", { seq });
    return APPLY.call(this, record);
  });
  const restore = (): void => spy.mockRestore();
  onTestFinished(restore);
  return restore;
}

/** Some thirty records with snapshots at 10 and 20. */
function someHistory(): FoldedHistory {
  const values = [1, 2, 3, 4, 5, 6];
  const acts = Array.from({ length: 25 }, (_, i) => {
    const parameter = i % 2 === 0 ? "w" : "b";
    return { trainer: "alice", parameter, kind: "gradient", values } as const;
  });
  const history = historyOf({ mode: "async", optimizer: "adam", acts });
  history.own.snapshot(10);
  return history;
}

function kindsOf(places: readonly { readonly seq: number; readonly kind: string }[]): unknown[] {
  return places.map(({ seq, kind }) => [seq, kind]);
}

describe("a kept history", () => {
  test("is sound if every snapshot is the fold", async () => {
    const { own } = someHistory();
    own.snapshot(20);
    const { verification, end } = await verifyShard(own, OPTIONS);
    expect(kindsOf(verification.places)).toEqual([
      [0, "first"],
      [10, "equal"],
      [20, "equal"],
    ]);
    expect(isSound(verification)).toBe(true);
    expect(verification.records).toBe(own.lastSeq);
    expect(end?.shard.digest()).toBe(own.folded(own.lastSeq).digest());
  });

  test("is verified from the snapshot before a point", async () => {
    const { own } = someHistory();
    own.snapshot(20);
    const from = { generation: 1, seq: 15 };
    const { verification } = await verifyShard(own, { ...OPTIONS, from });
    expect(kindsOf(verification.places)).toEqual([
      [10, "first"],
      [20, "equal"],
    ]);
  });

  test("that goes on without a record that was put aside is compared without it", async () => {
    const { own } = someHistory();
    own.continueWithout(13);
    const { verification } = await verifyShard(own, OPTIONS);
    expect(verification.places.at(-1)).toEqual({ generation: 2, seq: 0, kind: "equal" });
    expect(isSound(verification)).toBe(true);
  });

  test("with a record that cannot be folded goes on, and is sound if it was put aside", async () => {
    const { own } = someHistory();
    const restore = failAt(13);
    const { verification } = await verifyShard(own, OPTIONS);
    expect(verification.places.at(-1)).toMatchObject({
      ...{ seq: 12, kind: "unreadable" },
      error: { code: "FOLD_FAILED" },
    });
    expect(isSound(verification)).toBe(false);
    restore();
    own.continueWithout(13);
    failAt(13);
    const after = await verifyShard(own, OPTIONS);
    expect(kindsOf(after.verification.places).slice(-2)).toEqual([
      [12, "given-up"],
      [0, "equal"],
    ]);
    expect(isSound(after.verification)).toBe(true);
  });

  test.each([
    ["a value", (shard: Shard) => shard.block("w", 0)?.values().fill(1, 3, 4)],
    ["a slot of the optimizer", (shard: Shard) => shard.block("b", 0)?.slotBytes(1).fill(1, 3, 4)],
    ["a skipped record", (shard: Shard) => shard.skipTo(21)],
  ])("with %s changed in a snapshot is not sound", async (_name, change) => {
    const { own } = someHistory();
    own.snapshot(20, change);
    const { verification } = await verifyShard(own, OPTIONS);
    expect(kindsOf(verification.places).at(-1)).toEqual([20, "different"]);
    expect(isSound(verification)).toBe(false);
  });

  test("with a snapshot that cannot be read is not sound, and the rest is compared", async () => {
    const { own } = someHistory();
    own.damageNewestPiece();
    own.snapshot(20);
    const { verification } = await verifyShard(own, OPTIONS);
    expect(kindsOf(verification.places)).toEqual([
      [0, "first"],
      [10, "damaged"],
      [20, "equal"],
    ]);
    expect(isSound(verification)).toBe(false);
  });

  test("with a record that cannot be read continues from the next snapshot", async () => {
    const { own } = someHistory();
    own.snapshot(20);
    own.damaged.add(13);
    const { verification, end } = await verifyShard(own, OPTIONS);
    expect(kindsOf(verification.places)).toEqual([
      [0, "first"],
      [10, "equal"],
      [12, "unreadable"],
      [20, "first"],
    ]);
    expect(isSound(verification)).toBe(false);
    expect(end?.shard.seq).toBe(own.lastSeq);
  });

  test.each([
    [
      "before a snapshot",
      13,
      [
        [12, "unreadable"],
        [20, "first"],
      ],
    ],
    [
      "before the watermark of the owner",
      23,
      [
        [20, "equal"],
        [22, "unreadable"],
      ],
    ],
  ] as const)(
    "with a record %s that is another than was folded names it, and goes on",
    async (_where, seq, rest) => {
      const { own } = someHistory();
      own.snapshot(20);
      own.watermarkSeq = 23;
      own.changed.set(seq, own.written(seq - 2));
      const { verification } = await verifyShard(own, OPTIONS);
      expect(kindsOf(verification.places)).toEqual([[0, "first"], [10, "equal"], ...rest]);
      const found = verification.places.find(({ kind }) => kind === "unreadable");
      expect(found).toMatchObject({ error: { code: "JOURNAL_DAMAGED", details: { seq } } });
      expect(isSound(verification)).toBe(false);
    },
  );

  test.each([
    [
      "at its end, with no snapshot behind",
      22,
      [
        [0, "first"],
        [10, "equal"],
        [20, "equal"],
        [21, "unreadable"],
      ],
      false,
    ],
    [
      "that no snapshot covers exactly",
      14,
      [
        [0, "first"],
        [10, "equal"],
        [13, "unreadable"],
        [20, "first"],
      ],
      false,
    ],
    [
      "right before a snapshot",
      20,
      [
        [0, "first"],
        [10, "equal"],
        [20, "first"],
      ],
      true,
    ],
  ] as const)("with a gap %s", async (_name, seq, places, sound) => {
    const { own } = someHistory();
    own.snapshot(20);
    own.missing.add(seq);
    const { verification } = await verifyShard(own, OPTIONS);
    expect(kindsOf(verification.places)).toEqual(places);
    expect(isSound(verification)).toBe(sound);
  });
});

describe("records that are known to be missing", () => {
  test("are told once, with whatever snapshots there are of them, and are no damage", async () => {
    const { own } = someHistory();
    for (const seq of [13, 16, 20]) own.snapshot(seq);
    for (const seq of [12, 13, 14, 15, 16, 17, 18]) own.missing.add(seq);
    own.gapList = [{ generation: 1, firstSeq: 12, lastSeq: 18 }];
    const { verification } = await verifyShard(own, OPTIONS);
    expect(kindsOf(verification.places)).toEqual([
      ...[
        [0, "first"],
        [10, "equal"],
        [11, "not-kept"],
      ],
      ...[
        [13, "first"],
        [16, "first"],
        [20, "first"],
      ],
    ]);
    expect(verification.places[2]).toMatchObject({
      error: { code: "HISTORY_LOST", details: { shard: SHARD, from: 12, to: 18 } },
    });
    expect(isSound(verification)).toBe(true);
    const replayed = replayShard(own, { generation: 1, seq: 15 }, OPTIONS);
    expect(await failureOf(replayed)).toMatchObject({ code: "HISTORY_LOST" });
  });

  test("are told where they are trimmed while they are read; a snapshot removed meanwhile is none", async () => {
    const { own } = someHistory();
    const removed = [...own.pieces.keys()];
    own.snapshot(20);
    vi.spyOn(own, "read").mockImplementationOnce(() => {
      own.snapshotList.shift();
      for (const seq of removed) own.pieces.delete(seq);
      throw new PserverError("HISTORY_LOST", "record 1 was trimmed");
    });
    const { verification } = await verifyShard(own, OPTIONS);
    expect(kindsOf(verification.places)).toEqual([
      [0, "first"],
      [0, "not-kept"],
      [20, "first"],
    ]);
    expect(isSound(verification)).toBe(true);
  });
});

describe("a journal that was left for one of the next generation", () => {
  function placesOf(places: readonly VerifiedPlace[]): unknown[] {
    return places.map(({ generation, seq, kind }) => [generation, seq, kind]);
  }

  test("is folded to its end, and its state at the cut is what the next one began with", async () => {
    const { own } = someHistory();
    own.continueFrom(15);
    const { verification, end } = await verifyShard(own, OPTIONS);
    expect(placesOf(verification.places)).toEqual([
      [1, 0, "first"],
      [1, 10, "equal"],
      [2, 0, "equal"],
    ]);
    expect(verification.records).toBe(own.lastSeq);
    expect([end?.generation, end?.shard.seq]).toEqual([2, 0]);
  });

  test("differs from the state with which the next one began if that was changed", async () => {
    const { own } = someHistory();
    own.continueFrom(15, (shard) => shard.block("b", 0)?.slotBytes(1).fill(1, 3, 4));
    const { verification } = await verifyShard(own, OPTIONS);
    expect(placesOf(verification.places).at(-1)).toEqual([2, 0, "different"]);
    expect(isSound(verification)).toBe(false);
  });

  test("with a record behind the cut that cannot be read is not sound; the beginning is compared", async () => {
    const { own } = someHistory();
    own.continueFrom(15);
    own.damaged.add(22);
    const { verification } = await verifyShard(own, OPTIONS);
    expect(placesOf(verification.places).slice(1)).toEqual([
      [1, 10, "equal"],
      [1, 21, "unreadable"],
      [2, 0, "equal"],
    ]);
    expect(isSound(verification)).toBe(false);
  });

  test("with a record before the cut that cannot be read leaves the beginning uncompared", async () => {
    const { own } = someHistory();
    own.continueFrom(15);
    own.damaged.add(12);
    const { verification } = await verifyShard(own, OPTIONS);
    expect(placesOf(verification.places).slice(2)).toEqual([
      [1, 11, "unreadable"],
      [2, 0, "first"],
    ]);
  });
});

describe("a host", () => {
  /** A host that holds the fold at a record, and answers as owners do. */
  function hostAt(
    history: FoldedHistory,
    seq: number,
    change: (shard: Shard) => void = () => undefined,
  ) {
    const held = history.own.folded(seq);
    change(held);
    return {
      askOwner: async (shard: number, verb: string, fields: Fields): Promise<Message> => {
        expect([shard, verb]).toEqual([SHARD, "digest"]);
        const { parameter, index } = fields;
        const block = held.block(String(parameter), Number(index));
        const digest = parameter === undefined ? stateDigest(held) : block && blockDigest(block);
        return { fields: { generation: 1, seq, digest: digest ?? null }, data: new Uint8Array(0) };
      },
    };
  }

  function replayedAt(history: FoldedHistory, seq: number): LocalReplayedShard {
    return new LocalReplayedShard(history.own.folded(seq), 1, history.own, signal);
  }

  test("that is ahead is followed and compared there", async () => {
    const history = someHistory();
    const found = await verifyServed(hostAt(history, 25), replayedAt(history, 20));
    expect(found).toEqual({ kind: "equal", position: { generation: 1, seq: 25 }, blocks: 2 });
  });

  test("with a changed block, or another state, is told", async () => {
    const history = someHistory();
    const changed = hostAt(history, 20, (shard) => shard.block("b", 0)?.slotBytes(1).fill(7, 0, 1));
    expect(await verifyServed(changed, replayedAt(history, 20))).toMatchObject({
      kind: "different",
      what: ['"b" block 0'],
    });
    const other = hostAt(history, 20, (shard) => shard.restartJournal());
    expect(await verifyServed(other, replayedAt(history, 20))).toMatchObject({ what: ["state"] });
  });

  test("that does not answer is unknown, and so is one that does not know the question", async () => {
    const history = someHistory();
    for (const code of ["NO_OWNER", "BAD_MESSAGE"] as const) {
      const askOwner = () => Promise.reject(new PserverError(code, "no"));
      expect(await verifyServed({ askOwner }, replayedAt(history, 20))).toMatchObject({
        kind: "unknown",
        error: { code },
      });
    }
  });
});
