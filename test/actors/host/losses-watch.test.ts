// Proves that each shard that begins to be served is checked for lost parameters, again until that succeeds, and
// that only losses are told. Time is simulated.
import { afterEach, beforeEach, expect, test } from "vitest";
import { LossesWatch } from "../../../src/actors/host/watches.ts";
import { PserverError } from "../../../src/protocol/index.ts";
import { FakeClock } from "../../support/fake-clock.ts";

let clock: FakeClock;
let checked: number[];
let failures: PserverError[];
let told: unknown[];
let errors: string[];
let watch: LossesWatch;

beforeEach(() => {
  clock = new FakeClock();
  [checked, failures, told, errors] = [[], [], [], []];
  watch = new LossesWatch({
    service: {
      takeBackLost: async (shard) => {
        checked.push(shard);
        const failure = failures.shift();
        if (failure !== undefined) throw failure;
        return { parameters: shard === 2 ? ["w"] : [], isJob: false };
      },
    },
    leaseMs: 3_000,
    onTakenBack: (shard, taken) => told.push([shard, taken.parameters]),
    onError: ({ code }) => errors.push(code),
    clock,
  });
});

afterEach(() => watch.stop());

test("a shard is checked once each time that it begins to be served, and a loss is told", async () => {
  watch.serving(1);
  watch.start();
  await clock.advance(0);
  watch.serving(2);
  await clock.advance(10_000);
  expect(checked).toEqual([1, 2]);
  expect(told).toEqual([[2, ["w"]]]);
  watch.serving(1);
  await clock.advance(0);
  expect(checked).toEqual([1, 2, 1]);
});

test("a check that failed is reported, and repeated until it succeeds", async () => {
  failures = [new PserverError("TIMEOUT", "no answer"), new PserverError("TIMEOUT", "no answer")];
  watch.start();
  watch.serving(2);
  await clock.advance(10_000);
  expect(errors).toEqual(["TIMEOUT", "TIMEOUT"]);
  expect(checked).toEqual([2, 2, 2]);
  expect(told).toEqual([[2, ["w"]]]);
});
