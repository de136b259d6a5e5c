// Proves that placement is fair, does not depend on the order of hosts, and moves a shard only to a
// host that joins or from one that leaves.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { placeShard } from "../../../src/actors/host/shard-claims.ts";

const hosts = fc.uniqueArray(fc.stringMatching(/^[a-z0-9-]{1,12}$/), {
  minLength: 1,
  maxLength: 8,
});

describe("placeShard", () => {
  test("gives nothing without hosts, and everything to the only one", () => {
    expect(placeShard("j", 0, [])).toBeUndefined();
    expect(placeShard("j", 7, ["one"])).toBe("one");
  });

  test("does not depend on the order of the hosts", () => {
    fc.assert(
      fc.property(hosts, fc.nat(255), (all, shard) => {
        expect(placeShard("j", shard, [...all].reverse())).toBe(placeShard("j", shard, all));
      }),
    );
  });

  test("moves a shard only to a host that joins", () => {
    fc.assert(
      fc.property(hosts, fc.nat(255), (all, shard) => {
        const [joining = "", ...rest] = all;
        const after = placeShard("j", shard, all);
        expect([joining, placeShard("j", shard, rest)]).toContain(after);
      }),
    );
  });

  test("is fair: of many shards each of four hosts gets about a quarter", () => {
    const counts = new Map<string | undefined, number>();
    for (let shard = 0; shard < 4_000; shard++) {
      const host = placeShard("j", shard, ["host-1", "host-2", "host-3", "host-4"]);
      counts.set(host, (counts.get(host) ?? 0) + 1);
    }
    for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(120);
  });
});
