// Proves that a history can be folded with other guards, or with a guard's decision about a record unguarded, and that the
// records before the change are folded as they were.
import { expect, test } from "vitest";
import { type FoldChanges, foldWhatIf } from "../../../src/history/what-if.ts";
import { type GuardAction, toGuard } from "../../../src/protocol/config/index.ts";
import { elementsOf, Folded } from "../../actors/fold/folded.ts";
import { SHARD, SUBJECTS } from "../../actors/fold/journal-writer.ts";
import { FoldedHistory } from "../folded-history.ts";

const { signal } = new AbortController();

/** A history whose fifth and sixth gradients, of norm 5 and 7, are above the limit of 2. */
function guarded(action: GuardAction): FoldedHistory {
  const job = new Folded();
  const guard = { factor: 2, window: 4, warmup: 2, action };
  job.journal.init(new Float32Array(1), { config: { optimizer: "none", guard } });
  for (const norm of [1, 1, 1, 1, 5, 7]) job.journal.push(Float32Array.of(norm), { op: "grad" });
  return new FoldedHistory(job.journal.records);
}

async function valueAfter(
  { own }: FoldedHistory,
  changes: Partial<FoldChanges>,
  from?: number,
): Promise<number | undefined> {
  const all = { withoutTrainers: [], withoutRecords: [], ...changes };
  const { shard } = await foldWhatIf(
    own,
    { generation: 1, seq: own.lastSeq },
    {
      ...{ subjects: SUBJECTS, signal, changes: all },
      ...(from === undefined ? {} : { from: { generation: 1, seq: from } }),
    },
  );
  const block = shard.block("w", 0);
  return block && elementsOf(block.values(), Float32Array)[0];
}

test.each([
  ["reject", 4, 9],
  ["clip", 8, 11],
  ["set-aside", 4, 9],
] as const)(
  "the decision about one record can be unguarded: %s",
  async (action, real, unguarded) => {
    const history = guarded(action);
    const seq = history.own.lastSeq - 1;
    expect(await valueAfter(history, {})).toBe(real);
    expect(
      await valueAfter(history, { withoutGuard: [{ shard: SHARD, generation: 1, seq }] }),
    ).toBe(unguarded);
    expect(await valueAfter(history, { withoutGuard: [{ shard: 0, generation: 1, seq }] })).toBe(
      real,
    );
    expect(
      await valueAfter(history, { withoutGuard: [{ shard: SHARD, generation: 2, seq }] }),
    ).toBe(real);
  },
);

test("no guard, and one with other numbers, judge in place of that of the parameter", async () => {
  const history = guarded("reject");
  expect(await valueAfter(history, { guard: "off" })).toBe(16);
  const milder = toGuard({ factor: 6, window: 4, warmup: 2 });
  expect(await valueAfter(history, { guard: milder })).toBe(9);
  const clipping = toGuard({ factor: 3, window: 4, warmup: 2, action: "clip" });
  expect(await valueAfter(history, { guard: clipping })).toBe(10);
});

test("what comes before the change is judged as it was, and the norms of it are known", async () => {
  const history = guarded("reject");
  const last = history.own.lastSeq;
  expect(await valueAfter(history, { guard: "off" }, last - 1)).toBe(11);
  history.own.snapshot(last - 2);
  const milder = toGuard({ factor: 4, window: 4, warmup: 4, action: "clip" });
  expect(await valueAfter(history, { guard: milder }, last - 2)).toBe(12);
});
