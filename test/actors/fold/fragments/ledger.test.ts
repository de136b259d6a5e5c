// Proves that the accounts of contributions are bounded: of those who are gone there is one, and nothing is lost of it.
import { expect, test } from "vitest";
import { limitedRules } from "../folded.ts";
import { FragmentJob } from "./fragment-job.ts";

test("accounts of trainers that are gone join one, and everything still adds up", () => {
  const knownRules = limitedRules({ trainersMax: 4 });
  const job = new FragmentJob({}, undefined, { knownRules });
  const { ledger } = job.shard.fragments;
  for (let i = 0; i < 9; i++) {
    const trainer = `t${i}`;
    job.members([trainer]);
    // Hosts forget sessions that have ended, too.
    job.journal.host({
      verb: "forget",
      trainers: [
        ["init", 1],
        [`t${i - 1}`, 1],
      ],
    });
    job.run();
    expect(job.contribute(trainer, 1, 1, { base: job.version }).code).toBeUndefined();
    if (i % 3 === 2) job.close(3);
  }
  expect(ledger.size).toBeLessThanOrEqual(5);
  expect(ledger.total.processed.contributions).toBe(9);
  expect(ledger.total.merged.contributions).toBe(9);
  expect(job.account("t8")).toEqual([1, 1, 0, 0]);
  expect(job.restored().digest()).toBe(job.shard.digest());
});
