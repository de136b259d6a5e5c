// Proves that nobody fills the tables of trainers for good where the broker has no permissions: more invented
// trainers than a shard remembers, with numbers of sessions that no host has given, or with those of a
// trainer that is live, again and again. Live trainers continue all the time, and a new trainer is accepted.
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test, vi } from "vitest";
import { TRAINERS_MAX } from "../../../src/protocol/index.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, TEST_MS } from "../../support/limits.ts";
import { addition, additionSubject, rememberedTrainers } from "./raw-trainer.ts";

const INVENTED = TRAINERS_MAX + 900;
const ONE = BigInt64Array.of(1n);

/** Numbers of sessions by what they are; the first that has joined has the first number. */
const NUMBERS: readonly (readonly [what: string, number: (i: number) => number])[] = [
  ["huge", (i) => Number.MAX_SAFE_INTEGER - i],
  ["of-another", () => 1],
  ["huge-again", (i) => Number.MAX_SAFE_INTEGER - i],
];

test(
  "tables full of invented trainers are emptied, and take new trainers",
  async () => {
    const job = await TestJob.start({ shards: 1 });
    onTestFinished(() => job.remove());
    const host = await job.host();
    const raw = await connect({ servers: job.broker.url });
    onTestFinished(() => raw.close());
    const honest = await job.trainer("honest");
    await honest.beginInit();
    await honest.initParam("count", new BigInt64Array(1));
    await honest.finishInit();

    for (const [what, number] of NUMBERS) {
      for (let i = 0; i < INVENTED; i++) {
        raw.publish(additionSubject(`${what}-${i}`), addition(number(i), 1));
      }
      await raw.flush();
      // It is remembered already, so that a full table is no matter.
      await honest.pushFull("count", ONE, 1, 1);
      await vi.waitFor(
        async () => expect(await rememberedTrainers(job), what).toBeLessThan(TRAINERS_MAX / 4),
        { timeout: HANG_MS, interval: 100 },
      );
    }
    const newest = await job.trainer("newest");
    const { data: before } = await newest.pullFull("count");
    await newest.pushFull("count", ONE, 1, 1);
    await honest.pushFull("count", ONE, 1, 1);
    const { data: after } = await newest.pullFull("count");
    expect((after[0] as bigint) - (before[0] as bigint)).toBe(2n);
    expect(host.lines.filter(({ type }) => type !== "serving" && type !== "started")).toEqual([]);
  },
  TEST_MS,
);
