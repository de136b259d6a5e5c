// Proves that a note changes nothing but the trainer's own place in its numbers: it has one outcome, which a
// repeat gets again, and no block, step or declaration tells of it.
import { expect, test } from "vitest";
import { Folded } from "./folded.ts";
import { SHARD, SUBJECTS } from "./journal-writer.ts";

test("is applied and changes no block", () => {
  const folded = new Folded();
  folded.journal.init(Float32Array.of(1, 2), { config: { learningRate: 1 } });
  folded.apply();
  const before = folded.content();
  folded.journal.note({ loss: 0.25, step: 3 });
  expect(folded.run()).toEqual([{ n: 2, seq: folded.shard.seq, version: 0 }]);
  expect(folded.content()).toBe(before);
});

test("a repeat gets the first outcome", () => {
  const folded = new Folded();
  folded.journal.note({ loss: 0.25 }, { n: 1 });
  folded.journal.note({ loss: 0.25 }, { n: 1 });
  const [first, second] = folded.run();
  expect(second).toEqual(first);
});

test("its outcome survives a snapshot", () => {
  const folded = new Folded();
  folded.journal.note({ loss: 0.25 }, { n: 1 });
  folded.apply();
  const restored = folded.restored();
  expect(restored.outcomes("alice", { session: 1, numbers: [1] })).toEqual([
    { n: 1, seq: 2, version: 0 },
  ]);
  expect(restored.digest()).toBe(folded.shard.digest());
});

test("a note that wants its answer elsewhere than in the trainer's inbox is rejected", () => {
  const folded = new Folded();
  folded.journal.note({ loss: 1 }, { reply: SUBJECTS.inbox("bob") });
  expect(folded.run()).toMatchObject([{ code: "BAD_REPLY" }]);
});

test("the subject names nothing but the trainer", () => {
  expect(SUBJECTS.parseLog(SUBJECTS.note(SHARD, "a.b"))).toEqual({
    by: "note",
    shard: SHARD,
    trainer: "a.b",
  });
});
