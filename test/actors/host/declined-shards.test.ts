// Proves that a host declines a shard by a lease until the shard fits, and that the keys of these leases
// tell which hosts have declined which shard.
import { describe, expect, test } from "vitest";
import { DeclinedShards, declinedBy } from "../../../src/actors/host/shard-claims.ts";
import { KvLeases } from "../../../src/actors/job/leases.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";

describe("a declined shard", () => {
  test("is said to be declined until it fits", async () => {
    const leases = new KvLeases(new MemoryBucket());
    const value = () => ({ owner: "life 1", host: "a.b" });
    const declined = new DeclinedShards({ host: "a.b", value, leases, leaseMs: 60_000 });
    let fits = false;
    declined.decline(3, () => fits);
    await declined.review();
    await declined.review();
    const keys = async () => declinedBy(await leases.keys("declined."));
    expect(await keys()).toEqual(new Map([[3, new Set(["a.b"])]]));
    expect([declined.has(3), declined.has(2)]).toEqual([true, false]);
    fits = true;
    await declined.review();
    expect([await keys(), declined.has(3)]).toEqual([new Map(), false]);
    declined.decline(4, () => false);
    await declined.review();
    await declined.close();
    expect(await keys()).toEqual(new Map());
  });

  test("may be declined by many", () => {
    const keys = ["declined.1.a", "declined.1.b=2E", "declined.12.a"];
    expect(declinedBy(keys)).toEqual(
      new Map([
        [1, new Set(["a", "b."])],
        [12, new Set(["a"])],
      ]),
    );
  });
});
