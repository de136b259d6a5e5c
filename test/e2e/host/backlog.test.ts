// Proves that a trainer which sends far ahead of the fold, past its client, makes nobody else wait for long: its session
// is ended, and another trainer's pushes are applied. A host that starts on such a backlog folds it, serves, and ends
// nobody for what was sent while no host was there. To be behind, the host is paused, or stopped.
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { freeze, thaw } from "../../support/freeze.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { additionOf, additionSubject, askRaw, outcomeOfAddition } from "./raw-trainer.ts";

const ONE = BigInt64Array.of(1n);
/** Elements of each record, 1 MiB in all: far more than the parameter has, so that it is rejected. */
const ELEMENTS = 2 ** 17;
const RECORDS = 64;
/** The number of the first one. */
const FIRST = 2;
/** A pause of the host must not cost its leases. */
const LEASE_MS = 30_000;

let job: TestJob;
let host: TestHost;
let honest: Client;
let raw: NatsConnection;
let session: number;

beforeEach(async () => {
  job = await TestJob.start({ shards: 1, leaseMs: LEASE_MS });
  host = await job.host();
  honest = await job.trainer("honest");
  await honest.beginInit();
  await honest.initParam("count", new BigInt64Array(1));
  await honest.finishInit();
  raw = await connect({ servers: job.broker.url });
  const joined = await askRaw(raw, "hasty", "join", { token: "hasty" });
  session = Number(joined["session"]);
  expect(await outcomeOfAddition(raw, "hasty", session, 1)).toBeUndefined();
});

afterEach(async () => {
  await raw.close();
  await job.remove();
});

/** Publishes records that are of no use, and waits for no outcome. */
async function hurry(): Promise<void> {
  const subject = additionSubject("hasty");
  const elements = new BigInt64Array(ELEMENTS);
  for (let i = 0; i < RECORDS; i++) {
    raw.publish(subject, additionOf(elements, session, FIRST + i));
  }
  await raw.flush();
}

async function countOf(client: Client): Promise<bigint> {
  return (await client.pullFull("count")).data[0] as bigint;
}

test("the session of a trainer that is far ahead of the fold is ended, and others go on", async () => {
  await freeze(host.pid);
  await hurry();
  const pushed = honest.pushFull("count", ONE, 1, 1);
  thaw(host.pid);
  await pushed;
  const line = await host.line(({ type }) => type === "flooded");
  expect(line.error).toMatchObject({ code: "QUOTA", details: { trainer: "hasty", session } });
  expect(await outcomeOfAddition(raw, "hasty", session, FIRST + RECORDS)).toBe("REJOIN");
  expect(await countOf(honest)).toBe(2n);
});

test("a host that starts folds what was sent while there was none, and ends nobody for it", async () => {
  await host.stop();
  await hurry();
  const second = await job.host({ id: "second" });
  await honest.pushFull("count", ONE, 1, 1);
  expect(await outcomeOfAddition(raw, "hasty", session, FIRST + RECORDS)).toBeUndefined();
  expect(await countOf(honest)).toBe(3n);
  expect(second.lines.filter(({ type }) => type === "flooded")).toEqual([]);
});
