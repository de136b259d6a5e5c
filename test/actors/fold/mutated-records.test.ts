// Proves that no record of a trainer can damage a shard, whatever it contains: sound records of every kind,
// with entries changed, added and left out, and bytes cut, added and overwritten, under a checksum that is
// right, are applied or rejected or ignored. A record that is not applied changes no block; the shard
// continues, and can be restored from its saved state.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { SynchronizationInput } from "../../../src/protocol/config/index.ts";
import { folded, mutant, samples } from "./mutants.ts";

/** How many records are changed: MUTATIONS, or as many as usual. */
const MUTATIONS = Number(process.env["MUTATIONS"] ?? 750);

test.each<[string, SynchronizationInput | undefined]>([
  ["async", undefined],
  ["sync", { mode: "sync", trainers: 2 }],
])("no mutated record hurts a shard of an %s job", (_mode, synchronization) => {
  const records = fc.array(mutant(samples()), { minLength: 1, maxLength: 8 });
  const seen = new Set<string>();
  fc.assert(
    fc.property(records, (mutants) => {
      const target = folded(synchronization);
      for (const { subject, payload } of mutants) {
        const before = target.content();
        target.journal.append(subject, payload);
        const [outcome] = target.run();
        const what = outcome === undefined ? "ignored" : (outcome.code ?? "applied");
        seen.add(what);
        if (what !== "applied") expect(target.content()).toBe(before);
      }
      expect(target.restored().digest()).toBe(target.shard.digest());
      // It goes on: that of a trainer whose numbers nobody has touched is applied.
      target.journal.set(BigInt64Array.of(1n, 1n), { trainer: "carol", parameter: "count" });
      expect(target.run()).toMatchObject([{ version: expect.any(Number) }]);
      expect(target.run().filter(({ code }) => code !== undefined)).toEqual([]);
    }),
    { numRuns: Math.ceil(MUTATIONS / 5) },
  );
  // The changes lead to sound records as well as to faults of many kinds.
  expect([...seen].sort()).toEqual(
    expect.arrayContaining(["BAD_LENGTH", "BAD_MESSAGE", "applied", "ignored"]),
  );
});
