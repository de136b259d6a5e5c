// Proves what `pserver ledger` reads from the journals: what became of every contribution and why, in which round it counts,
// and that the accounts are checked against that, also where snapshots or accounts are wrong.
import { beforeEach, describe, expect, test } from "vitest";
import type { Shard } from "../../../src/actors/fold/shard.ts";
import {
  accountFindings,
  type ContributionLedger,
  type LedgerEntry,
  readLedger,
} from "../../../src/history/ledger.ts";
import {
  type ContributionAccount,
  NO_ACCOUNT,
  sumOfAccounts,
  type Tally,
} from "../../../src/protocol/messages/contributions.ts";
import { both, FragmentJob } from "../../actors/fold/fragments/fragment-job.ts";
import { FoldedHistory } from "../folded-history.ts";

const { signal } = new AbortController();

let job: FragmentJob;

/** Two closed rounds, one that got other parameters, one that is open; and contributions that came too late. */
beforeEach(() => {
  job = new FragmentJob({ late: "rebase", lateVersions: 1 });
  job.contribute("alice", 2, 2, { steps: 5, tokens: 50 });
  job.contribute("bob", 4);
  job.close(2);
  job.contribute("alice", 2, 2, { id: 2 });
  const [u, w] = both(1, 1).map((block) => [block]);
  job.send("alice", w ?? [], { id: 3, base: 1, part: 1, parts: 2 });
  job.send("alice", u ?? [], { id: 3, base: 1, part: 0, parts: 2 });
  job.contribute("carol", 1, 1, { base: 0 });
  job.close(2);
  job.contribute("bob", 3, 3, { id: 2, base: 2 });
  job.parameter("x", new Float32Array(1));
  job.apply();
  const all = [...both(1, 1), { parameter: "x", data: Float32Array.of(1) }];
  job.send("carol", all, { id: 2, base: 2, steps: 7, tokens: 70 });
});

async function read(
  history: FoldedHistory,
  trainer?: string,
): Promise<{ ledger: ContributionLedger; entries: LedgerEntry[] }> {
  const entries: LedgerEntry[] = [];
  const until = history.cut(history.own.lastSeq);
  const onEntry = (entry: LedgerEntry): void => void entries.push(entry);
  return { ledger: await readLedger(history, { until, signal, trainer, onEntry }), entries };
}

function historyOf(): FoldedHistory {
  return new FoldedHistory(job.journal.records, job.shard.synchronization);
}

const counts = ({ receipts }: ContributionLedger) =>
  receipts.map(({ trainer, account, open, reasons, rounds }) => {
    const { processed, merged, late, dropped } = account;
    const tallies = [processed, merged, late, dropped, open];
    return [trainer, tallies.map((each) => each.contributions), [...reasons], rounds];
  });

const ALL = [
  ["alice", [3, 2, 0, 1, 0], [["LATE", 1]], [1, 2]],
  ["bob", [2, 1, 0, 1, 0], [["PARAMETERS_CHANGED", 1]], [1]],
  ["carol", [2, 0, 1, 0, 1], [], [2, 3]],
];

test("every contribution has a fate, with its reason and round", async () => {
  const { ledger, entries } = await read(historyOf());
  expect(counts(ledger)).toEqual(ALL);
  expect(ledger.findings).toEqual([]);
  expect(ledger.earlier.size).toBe(0);
  const told = entries.map(({ trainer, fate, round, base, reason }) => {
    return [trainer, fate, round, base, reason];
  });
  expect(told).toEqual([
    ["alice", "merged", 1, 0, undefined],
    ["bob", "merged", 1, 0, undefined],
    ["alice", "dropped", undefined, 0, "LATE"],
    ["alice", "merged", 2, 1, undefined],
    ["carol", "late", 2, 0, undefined],
    ["bob", "dropped", 3, 2, "PARAMETERS_CHANGED"],
    ["carol", "open", 3, 2, undefined],
  ]);
  const last = { seq: job.journal.records.length, generation: 1 };
  expect(entries.at(-1)).toMatchObject({ position: last, steps: 7, tokens: 70 });
});

test("of one trainer it has that trainer's", async () => {
  const { ledger, entries } = await read(historyOf(), "carol");
  expect(counts(ledger)).toEqual([ALL[2]]);
  expect(entries.every(({ trainer }) => trainer === "carol")).toBe(true);
});

test("is the same from the records after any snapshot, with what came before in the accounts", async () => {
  const { length } = job.journal.records;
  for (let seq = 1; seq < length; seq++) {
    const history = historyOf();
    history.own.snapshot(seq);
    history.own.firstSeq = seq + 1;
    const { ledger } = await read(history);
    expect(ledger.findings).toEqual([]);
    for (const [trainer, [, merged]] of ALL as [string, number[]][]) {
      const own = ledger.receipts.find((receipt) => receipt.trainer === trainer);
      const before = ledger.earlier.get(trainer)?.merged.contributions ?? 0;
      expect(before + (own?.account.merged.contributions ?? 0)).toBe(merged);
    }
  }
});

describe("a violation is found:", () => {
  test("a snapshot in which processed is not what became of it", async () => {
    const history = historyOf();
    history.own.snapshot(8, (shard) => {
      const state = shard.saveState();
      const [[trainer, [n = 0, ...more] = [], ...fates] = [""], ...others] =
        state.fragments?.ledger ?? [];
      const ledger = [[trainer, [n + 1, ...more], ...fates], ...others];
      const fragments = { ...state.fragments, ledger };
      Object.defineProperty(shard, "saveState", { value: () => ({ ...state, fragments }) });
    });
    history.own.firstSeq = 9;
    await expect(read(history)).rejects.toMatchObject({ code: "SNAPSHOT_DAMAGED" });
  });

  const NONE = { contributions: 0, steps: 0, tokens: 0 };

  /**
   * The findings about the shard if the contributions that were found are those of its accounts, with `open` ones of carol,
   * and `change` changes an account after its last record.
   */
  function findings(
    open: Tally,
    change: (trainer: string, account: ContributionAccount) => ContributionAccount = (_, own) =>
      own,
  ): ReturnType<typeof accountFindings> {
    const { ledger } = job.shard.fragments;
    const sorted = ledger.sorted();
    const found = new Map(
      sorted.map(([id, account]) => [id, { account, open: id === "carol" ? open : NONE }]),
    );
    const changed = new Map(sorted.map(([id, account]) => [id, change(id, account)]));
    const fragments = {
      ...job.shard.fragments,
      ledger: {
        of: (id: string) => changed.get(id) ?? NO_ACCOUNT,
        total: sumOfAccounts(changed.values()),
        sorted: () => [...changed],
        size: changed.size,
      },
    };
    return accountFindings({ fragments } as unknown as Shard, new Map(), found);
  }

  const OPEN = { contributions: 1, steps: 7, tokens: 70 };

  test("none where nothing was changed", () => {
    expect(findings(OPEN)).toEqual([]);
  });

  test("an account that has lost a contribution", () => {
    const found = findings(OPEN, (trainer, own) =>
      trainer === "bob" ? { ...own, merged: NONE } : own,
    );
    expect(found).toMatchObject([{ trainer: "bob" }]);
    expect(found[0]?.problem).toContain("merged 1 of 10 steps");
    expect(found[0]?.problem).toContain(
      "received processed 2 of 20 steps and 2000 tokens, merged 0",
    );
  });

  test("a contribution that was processed and has no fate", () => {
    const found = findings(NONE);
    expect(found).toMatchObject([{ trainer: "carol" }]);
    expect(found[0]?.problem).toContain("processed is 2 of 17 steps");
  });
});

test("a job without fragments is refused", async () => {
  await expect(read(new FoldedHistory([]))).rejects.toMatchObject({ code: "UNSUPPORTED" });
});
