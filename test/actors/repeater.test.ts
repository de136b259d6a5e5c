// Proves when rounds run: one at a time, with the pauses that they ask for, and none after the end.
import { expect, test } from "vitest";
import { Repeater } from "../../src/actors/concurrent.ts";
import { FakeClock } from "../support/fake-clock.ts";

const PAUSE_MS = 100;

/** Rounds that note when they begin; each lasts until `end` is called if `isSlow`. */
class Rig {
  readonly clock = new FakeClock();
  readonly begunMs: number[] = [];
  isSlow = false;
  end: () => void = () => undefined;
  readonly rounds = new Repeater(async () => {
    this.begunMs.push(this.clock.now());
    if (this.isSlow) {
      await new Promise<void>((resolve) => {
        this.end = resolve;
      });
    }
    return PAUSE_MS;
  }, this.clock);
}

test("a round begins at once, and each further one after the pause that the last asked for", async () => {
  const { clock, rounds, begunMs } = new Rig();
  await rounds.start();
  expect(begunMs).toEqual([0]);
  await clock.advance(250);
  expect(begunMs).toEqual([0, 100, 200]);
});

test("the first round can wait", async () => {
  const { clock, rounds, begunMs } = new Rig();
  await rounds.start(30);
  await clock.advance(130);
  expect(begunMs).toEqual([30, 130]);
});

test("a round that is wanted soon ends the pause, or follows the one under way, once", async () => {
  const rig = new Rig();
  const { clock, rounds, begunMs } = rig;
  void rounds.soon();
  await clock.advance(0);
  expect(begunMs).toEqual([]);
  await rounds.start();
  await clock.advance(10);
  rig.isSlow = true;
  void rounds.soon();
  await clock.advance(5);
  expect(begunMs).toEqual([0, 10]);
  void rounds.soon();
  void rounds.soon();
  await clock.advance(0);
  expect(begunMs).toEqual([0, 10]);
  rig.isSlow = false;
  rig.end();
  await clock.advance(PAUSE_MS);
  expect(begunMs).toEqual([0, 10, 15, 15 + PAUSE_MS]);
});

test("stopping waits for the round under way, and no round follows, not even by another start", async () => {
  const rig = new Rig();
  const { clock, rounds, begunMs } = rig;
  rig.isSlow = true;
  void rounds.start();
  await clock.advance(0);
  let isStopped = false;
  const stopped = rounds.stop().then(() => {
    isStopped = true;
  });
  void rounds.soon();
  await clock.advance(PAUSE_MS);
  expect(isStopped).toBe(false);
  rig.end();
  await stopped;
  await rounds.start();
  await clock.advance(PAUSE_MS);
  expect(begunMs).toEqual([0]);
  expect(clock.waiting).toBe(0);

  const unstarted = new Rig();
  await unstarted.rounds.stop();
  await unstarted.rounds.start();
  expect(unstarted.begunMs).toEqual([]);
});
