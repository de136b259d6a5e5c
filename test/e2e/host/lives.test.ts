// Proves that trainers which are gone leave room for others: more lives than a shard remembers
// trainers, some left in order and some simply dead, each with one record, under a trainer that lives
// through all of it. Every record counts once, the job takes new trainers, and an ended session stays so.
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { type Fields, type LifecycleVerb, TRAINERS_MAX } from "../../../src/protocol/index.ts";
import { TestJob } from "../../support/host.ts";
import { MORTAL_LEASE_MS } from "../../support/limits.ts";
import { askRaw, outcomeOfAddition, rememberedTrainers, storeAddition } from "./raw-trainer.ts";

const LIVES = TRAINERS_MAX + 200;
const AT_ONCE = 32;

/** Every so many lives one does not leave. */
const DIES_EVERY = 16;

let job: TestJob;
let raw: NatsConnection;

const ask = (trainer: string, verb: LifecycleVerb, fields: Fields): Promise<Fields> =>
  askRaw(raw, trainer, verb, fields);
const push = (trainer: string, session: number, n: number): Promise<void> =>
  storeAddition(raw, trainer, session, n);

afterAll(async () => {
  await raw.close();
  await job.remove();
});

async function live(life: number): Promise<void> {
  const trainer = `life-${life}`;
  let session: unknown;
  let rejection: string | undefined;
  // On a busy machine a life's session may have ended before its record is folded, which then counts nothing.
  do {
    ({ session } = await ask(trainer, "join", { token: `${trainer}-${Math.random()}` }));
    rejection = await outcomeOfAddition(raw, trainer, Number(session), 1);
  } while (rejection === "REJOIN");
  expect(rejection, trainer).toBeUndefined();
  if (life % DIES_EVERY !== 0) await ask(trainer, "leave", { session });
}

test("more sessions than a shard remembers leave places for others", async () => {
  // On a busy machine a life may take longer than the usual second from its session to its record.
  job = await TestJob.start({ shards: 1, leaseMs: MORTAL_LEASE_MS });
  await job.host();
  raw = await connect({ servers: job.broker.url });
  const long = await job.trainer("long");
  await long.beginInit();
  await long.initParam("count", new BigInt64Array(1));
  await long.finishInit();
  await long.pushFull("count", BigInt64Array.of(1n), 1, 1);

  const first = await ask("early", "join", { token: "early" });
  await push("early", Number(first["session"]), 1);
  await ask("early", "leave", { session: first["session"] });

  let next = 0;
  const lives = async (): Promise<void> => {
    while (next < LIVES) await live(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lives));

  const added = 1 + 1 + LIVES;
  expect((await long.pullFull("count")).data).toEqual(BigInt64Array.of(BigInt(added)));
  expect(await rememberedTrainers(job)).toBeLessThan(TRAINERS_MAX);
  await long.pushFull("count", BigInt64Array.of(1n), 1, 1);
  const newest = await job.trainer("newest");
  await newest.pushFull("count", BigInt64Array.of(1n), 1, 1);
  // A record of a session that has ended, sent again or for the first time, counts no more.
  await push("early", Number(first["session"]), 1);
  await push("early", Number(first["session"]), 2);
  await expect(ask("early", "renew", first)).rejects.toMatchObject({ code: "REJOIN" });
  expect((await newest.pullFull("count")).data).toEqual(BigInt64Array.of(BigInt(added + 2)));
});
