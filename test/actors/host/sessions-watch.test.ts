// Proves when a host makes room in the tables of its shards: once a shard remembers many trainers, again
// once many have come since, and now and then while the table is full; never before the shard has
// folded what it was told. And that a host says at its start if the job's counter has fallen back.
import { expect, onTestFinished, test } from "vitest";
import { SessionsWatch } from "../../../src/actors/host/watches.ts";
import { PserverError, TRAINERS_MAX } from "../../../src/protocol/index.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const LOOK_MS = 500;
const FULL_AGAIN_MS = 10_000;

/** A host with one shard, which is told to make room at record 10, and what it was told. */
class Watched {
  readonly clock: FakeClock = new FakeClock();
  readonly asked: number[][] = [];
  readonly errors: PserverError[] = [];
  trainers = 0;
  checks = 0;
  seq = 1;
  live = 0;
  failure: PserverError | undefined;

  /** A host that has looked twice, at no trainer. `damage`: what it finds at its start. */
  static async start(damage?: PserverError): Promise<Watched> {
    const watched = new Watched(damage);
    await watched.looks(0);
    return watched;
  }

  private constructor(damage: PserverError | undefined) {
    const watch = new SessionsWatch({
      clock: this.clock,
      onError: (error) => void this.errors.push(error),
      statuses: () => [
        {
          shard: 3,
          state: "serving",
          generation: 1,
          seq: this.seq,
          senders: { trainers: this.trainers },
        },
      ],
      service: {
        checkEntries: async () => {
          this.checks += 1;
          if (damage !== undefined) throw damage;
          return true;
        },
        endSessions: async (shards) => {
          this.asked.push([...shards]);
          if (this.failure !== undefined) throw this.failure;
          const at = new Map(shards.map((shard) => [shard, { generation: 1, seq: 10 }]));
          return { live: this.live, at };
        },
      },
    });
    watch.start();
    onTestFinished(() => watch.stop());
  }

  /** How often the shard is told to make room in a look at so many trainers and this record. */
  async looks(trainers: number, seq = 10): Promise<number> {
    this.trainers = trainers;
    this.seq = seq;
    const before = this.asked.length;
    await this.clock.advance(LOOK_MS);
    return this.asked.length - before;
  }
}

test("a shard with many trainers is told, and again once many more have come", async () => {
  const watched = await Watched.start();
  watched.live = 100;
  expect(await watched.looks(TRAINERS_MAX / 4 - 1)).toBe(0);
  expect(await watched.looks(TRAINERS_MAX / 4)).toBe(1);
  expect(watched.asked).toEqual([[3]]);
  expect(await watched.looks(TRAINERS_MAX, 9)).toBe(0);
  expect(await watched.looks(100 + TRAINERS_MAX / 8)).toBe(0);
  expect(await watched.looks(TRAINERS_MAX / 4)).toBe(1);
});

test("a full table is looked at again after some time, however many sessions are live", async () => {
  const watched = await Watched.start();
  watched.live = 2 * TRAINERS_MAX;
  expect(await watched.looks(TRAINERS_MAX)).toBe(1);
  expect(await watched.looks(TRAINERS_MAX)).toBe(0);
  await watched.clock.advance(FULL_AGAIN_MS - 2 * LOOK_MS);
  expect(watched.asked).toHaveLength(1);
  expect(await watched.looks(TRAINERS_MAX - 1)).toBe(0);
  expect(await watched.looks(TRAINERS_MAX)).toBe(1);
});

test("a look that failed is reported and repeated", async () => {
  const watched = await Watched.start();
  watched.failure = new PserverError("NO_OWNER", "nobody answers");
  expect(await watched.looks(TRAINERS_MAX)).toBe(1);
  expect(watched.errors).toEqual([watched.failure]);
  expect(await watched.looks(TRAINERS_MAX)).toBe(1);
});

test("a counter that cannot be read yet is looked at again, and nothing is reported", async () => {
  const watched = await Watched.start(new PserverError("TIMEOUT", "the broker does not answer"));
  expect(watched.checks).toBe(2);
  await watched.looks(0);
  expect(watched.checks).toBe(3);
  expect(await watched.looks(TRAINERS_MAX)).toBe(1);
  expect(watched.errors).toEqual([]);
});

test("a counter that has fallen back is reported once, at the start", async () => {
  const damage = new PserverError("JOB_DAMAGED", "the counter has fallen back");
  const watched = await Watched.start(damage);
  await watched.looks(1);
  expect(watched.checks).toBe(1);
  expect(watched.errors).toEqual([damage]);
});
