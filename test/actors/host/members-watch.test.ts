// Proves when a host looks after the members of its job: three times in a lease time, at once when a
// shard is served, one look at a time; which of its shards are told; and that errors end nothing.
import { beforeEach, describe, expect, test } from "vitest";
import { MembersWatch } from "../../../src/actors/host/watches.ts";
import type { Members } from "../../../src/actors/lifecycle/members.ts";
import { type Fields, PserverError } from "../../../src/protocol/index.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const LEASE_MS = 3_000;

let clock: FakeClock;
let watch: MembersWatch;
let statuses: Fields[];
let revision: number;
let looks: number;
let told: (readonly number[])[];
let errors: PserverError[];
let failing: PserverError | undefined;

beforeEach(() => {
  clock = new FakeClock();
  [statuses, revision, looks, told, errors, failing] = [[], 1, 0, [], [], undefined];
  watch = new MembersWatch({
    service: {
      async expelLost(): Promise<Members> {
        looks += 1;
        if (failing !== undefined) throw failing;
        return { revision, started: true, members: [] };
      },
      async tellMembers(shards) {
        told.push(shards);
      },
    },
    statuses: () => statuses,
    leaseMs: LEASE_MS,
    onError: (error) => void errors.push(error),
    clock,
  });
});

function shard(number: number, revision: number, state = "serving"): Fields {
  return { shard: number, state, steps: { revision, members: 2, closed: 0 } };
}

describe("a host", () => {
  test("looks three times in a lease time, until it is stopped", async () => {
    watch.start();
    await clock.advance(LEASE_MS);
    expect(looks).toBe(4);
    await watch.stop();
    await clock.advance(LEASE_MS);
    expect(looks).toBe(4);
    expect(clock.waiting).toBe(0);
  });

  test("tells a shard that is still behind at the next look, because it may be about to be told", async () => {
    statuses = [shard(1, 0), shard(2, 1), shard(3, 0, "catching-up")];
    watch.start();
    await clock.advance(0);
    expect(told).toEqual([]);
    await clock.advance(LEASE_MS / 3);
    expect(told).toEqual([[1]]);
    statuses = [shard(1, 1)];
    await clock.advance(LEASE_MS);
    expect(told).toEqual([[1]]);
  });

  test("tells a shard that begins to be served at once what it lacks", async () => {
    statuses = [shard(1, 0), shard(2, 1)];
    watch.start();
    await clock.advance(0);
    watch.serving(1);
    watch.serving(2);
    await clock.advance(0);
    expect(looks).toBe(2);
    expect(told).toEqual([[1]]);
  });

  test("reports an error, continues, and does not forget the new shard", async () => {
    failing = new PserverError("TIMEOUT", "no answer");
    statuses = [shard(1, 0)];
    watch.serving(1);
    watch.start();
    await clock.advance(0);
    expect(errors).toEqual([failing]);
    failing = undefined;
    await clock.advance(LEASE_MS / 3);
    expect(told).toEqual([[1]]);
  });
});
