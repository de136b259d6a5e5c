// Proves that of several trainers, whatever overtakes what, exactly one initializes the job and
// the others end up with the same one: trainers run whole programs over two hosts while the order
// of all effects on the records is shuffled (seeded generator, and fast-check's scheduler), some
// answers are lost, and some trainers die and come back.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Fields, PserverError } from "../../../src/protocol/index.ts";
import { type BucketCall, MemoryBucket } from "../../support/memory-bucket.ts";
import { withoutPauses } from "../../support/without-pauses.ts";
import { LEASE_MS, Rig, weights } from "./rig.ts";

/** What one trainer ended up with. */
interface Result {
  readonly trainer: string;
  readonly selected: boolean;
  readonly epoch: number;
  readonly by: string;
}

/** Repeats a request as clients do, over both hosts, while its failure is one that may pass. */
async function persist<Reply>(attempt: (host: number) => Promise<Reply>): Promise<Reply> {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt(tries % 2);
    } catch (error) {
      if (!(error instanceof PserverError) || !error.retryable || tries > 20) throw error;
    }
  }
}

/** A trainer's program: join, begin, and initialize if selected. */
async function train(rig: Rig, trainer: string): Promise<Result> {
  const token = `${trainer} token`;
  const session = await persist((host) => rig.join(trainer, token, host));
  const { selected, epoch, by } = await persist((host) => rig.begin(trainer, session, host));
  if (!selected) return { trainer, selected, epoch, by };
  const infos = await persist((host) =>
    rig.declare(trainer, session, epoch, [weights("v"), weights("w")], host),
  );
  for (const info of infos) rig.owners.initialize(info);
  const fields = { session, epoch, at: [] };
  await persist((host) => rig.ask(trainer, "finish", fields, host));
  return { trainer, selected, epoch, by };
}

async function expectOneWinner(rig: Rig, results: readonly Result[]): Promise<void> {
  const winners = results.filter(({ selected }) => selected);
  expect(winners).toHaveLength(1);
  for (const { by, epoch } of results) {
    expect({ by, epoch }).toEqual({ by: winners[0]?.trainer, epoch: 1 });
  }
  const status = await rig.status({ limit: 10 });
  expect(status).toMatchObject({ state: "ready", epoch: 1, by: winners[0]?.trainer });
  expect(status.parameters.map((info) => info?.ready)).toEqual([true, true]);
}

/** Lets the waiting calls go on one at a time, in an order that a seed decides. */
class Shuffle {
  readonly #waiting: (() => void)[] = [];
  #state: number;
  #idle = true;

  constructor(seed: number) {
    this.#state = seed * 2654435761;
  }

  /** The next number of 0..below-1. */
  next(below: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * below);
  }

  readonly between = (_call: BucketCall): Promise<void> =>
    new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#idle) {
        this.#idle = false;
        setImmediate(() => this.#release());
      }
    });

  #release(): void {
    const [resolve] = this.#waiting.splice(this.next(this.#waiting.length), 1);
    resolve?.();
    if (this.#waiting.length > 0) setImmediate(() => this.#release());
    else this.#idle = true;
  }
}

describe("three trainers at once and a late one", () => {
  test("elect exactly one, 200 times in random orders, with answers lost", async () => {
    const winners = new Set<string>();
    for (let seed = 1; seed <= 200; seed++) {
      const shuffle = new Shuffle(seed);
      const bucket = new MemoryBucket({ between: shuffle.between });
      const losses = seed % 2 === 0 ? 0 : 6;
      let lost = 0;
      bucket.losesAnswer = () => lost < losses && shuffle.next(8) === 0 && lost++ < losses;
      const rig = new Rig({ bucket });
      const early = await Promise.all(["a", "b", "c"].map((trainer) => train(rig, trainer)));
      const late = await train(rig, "late");
      expect(late.selected, `seed ${seed}`).toBe(false);
      bucket.losesAnswer = () => false;
      await expectOneWinner(rig, [...early, late]);
      winners.add(late.by);
    }
    // Else the orders would not have been random.
    expect(winners.size).toBe(3);
  });

  test("elect exactly one in 1,000 orders that the scheduler chooses", async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), async (scheduler) => {
        const between = (): Promise<unknown> => scheduler.schedule(Promise.resolve());
        const rig = new Rig({ bucket: new MemoryBucket({ between }) });
        const elected = Promise.all(
          ["a", "b", "c"].map(async (trainer) => {
            const session = await rig.join(trainer, trainer);
            return { trainer, ...(await rig.begin(trainer, session, session % 2)) };
          }),
        );
        const results = await scheduler.waitFor(elected);
        const winners = results.filter(({ selected }) => selected);
        expect(winners).toHaveLength(1);
        for (const { by, epoch } of results) {
          expect({ by, epoch }).toEqual({ by: winners[0]?.trainer, epoch: 1 });
        }
      }),
      { numRuns: 1000 },
    );
  });
});

test("a selected trainer that dies anywhere is replaced, and the job becomes ready once", async () => {
  // Real pauses before a contended lease is asked for again would decide the race instead of the seed.
  withoutPauses();
  const endings = new Set<boolean>();
  for (let seed = 1; seed <= 240; seed++) {
    const shuffle = new Shuffle(seed);
    const bucket = new MemoryBucket({ between: shuffle.between });
    const rig = new Rig({ bucket });
    const dying = await rig.join("a");
    await rig.begin("a", dying);
    // It dies after some part of its initialization.
    const part = seed % 3;
    if (part > 0) {
      const infos = await rig.declare("a", dying, 1, [weights("v"), weights("dead")]);
      if (part > 1) for (const info of infos) rig.owners.initialize(info);
    }
    const sessions = [await rig.join("b"), await rig.join("c")];
    const [b = 0, c = 0] = sessions;
    await rig.watch();
    await rig.clock.advance(2 * LEASE_MS);
    // The dead one comes back late and finishes, while two others want its place.
    const replies = await Promise.all([
      rig.begin("b", b, 0),
      rig.begin("c", c, 1),
      finishLate(rig, dying, shuffle).catch((error: unknown) => error),
    ]);
    const selected = replies.slice(0, 2).filter((reply) => (reply as Result).selected);
    const { state, epoch } = await rig.status();
    const finished = !(replies[2] instanceof PserverError);
    // Either the late finish came first and nobody is selected, or one of the two has replaced it.
    expect(selected, `seed ${seed}`).toHaveLength(finished ? 0 : 1);
    expect({ state, epoch }).toEqual(
      finished ? { state: "ready", epoch: 1 } : { state: "initializing", epoch: 2 },
    );
    if (part < 2) expect(finished).toBe(false);
    else endings.add(finished);
  }
  // Both ways of the race have been seen.
  expect(endings.size).toBe(2);
});

/** Finishes after some of the others' steps, as many as the seed says. */
async function finishLate(rig: Rig, session: number, shuffle: Shuffle): Promise<Fields> {
  for (let left = shuffle.next(12); left > 0; left--) await rig.bucket.read("another");
  return await rig.finish("a", session, 1);
}

test("of many creators of one parameter exactly one is selected, in random orders", async () => {
  for (let seed = 1; seed <= 50; seed++) {
    const shuffle = new Shuffle(seed);
    const rig = new Rig({ bucket: new MemoryBucket({ between: shuffle.between }) });
    const trainers = ["a", "b", "c", "d"];
    const sessions = await Promise.all(trainers.map((trainer) => rig.join(trainer)));
    const replies = await Promise.all(
      trainers.map((trainer, i) =>
        persist((host) => rig.create(trainer, sessions[i] ?? 0, weights("w"), (host + i) % 2)),
      ),
    );
    const winners = trainers.filter((_, i) => replies[i]?.selected);
    expect(winners, `seed ${seed}`).toHaveLength(1);
    for (const { by, epoch } of replies)
      expect({ by, epoch }).toEqual({ by: winners[0], epoch: 1 });
  }
});
