// Proves that nobody waits for the leases of a host whose connections are closed: when its process is killed, another host
// serves its shards before the leases can have ended, with one broker and with three; a host that is started again
// under the same id starts, too. And that a host which is alive and was only parted from the broker does not answer with what it had,
// once it is connected again, although its lease would still last: the other host may have acknowledged more.
import { connect as connectToBroker } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import { placeShard } from "../../../src/actors/host/shard-claims.ts";
import { type Client, connect } from "../../../src/client/index.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { isNoResponders } from "../../../src/transport/broker-error.ts";
import { TestAuth } from "../../support/auth.ts";
import { TestCluster } from "../../support/cluster.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { SilentLine } from "../../support/silent-line.ts";
import { BROKER_TIMEOUT_MS, startReplicatedHost } from "./replicated-host.ts";

const SHARD = 0;
const IDS = ["a", "b"] as const;
/** The host to which the shard falls whenever it is there, and the other one. */
const OWNER = placeShard("j", SHARD, new Set(IDS)) ?? "";
const OTHER = IDS.find((id) => id !== OWNER) ?? "";

/** Renewed three times in its time, a lease that has not been given up lasts for longer than a call. */
const LEASE_MS = 240_000;
const CALL = { timeoutMs: 150_000 };
const RECONNECT_MS = 2_000;

let job: TestJob | undefined;

afterEach(async () => {
  await job?.remove();
  job = undefined;
});

async function initialize(trainer: Client): Promise<void> {
  await trainer.beginInit();
  await trainer.initParam("steps", Float32Array.of(0));
  await trainer.finishInit();
}

async function addOne(trainer: Client): Promise<number> {
  await trainer.pushFull("steps", Float32Array.of(1), 1, 1, CALL);
  return Number((await trainer.pullFull("steps", CALL)).data[0]);
}

test("the shards of a host that is killed are served by another one", async () => {
  job = await TestJob.start({ shards: 1, workers: 1, leaseMs: LEASE_MS });
  const first = await job.host({ id: OWNER });
  const second = await job.host({ id: OTHER });
  const trainer = await job.trainer("t");
  await initialize(trainer);
  expect(await addOne(trainer)).toBe(1);
  expect([first.serving, second.serving]).toEqual([[SHARD], []]);
  await first.kill();
  expect(await addOne(trainer)).toBe(2);
  expect(second.serving).toEqual([SHARD]);
});

test("a host that was killed is started again under its id", async () => {
  job = await TestJob.start({ shards: 1, workers: 1, leaseMs: LEASE_MS });
  const first = await job.host({ id: OWNER });
  const trainer = await job.trainer("t");
  await initialize(trainer);
  const twin = job.spawnHost({ id: OWNER });
  expect(await twin.line(({ type }) => type === "refused")).toMatchObject({
    error: { code: "JOB_EXISTS" },
  });
  await first.kill();
  const again = await job.host({ id: OWNER });
  expect(again.serving).toEqual([SHARD]);
  expect(await addOne(trainer)).toBe(1);
});

test("the shards of a host that is killed in a cluster are served by another one", async () => {
  const auth = await TestAuth.make("j", ["t"]);
  const cluster = await TestCluster.start(3, auth);
  const hosts: TestHost[] = [];
  try {
    const start = async (id: string): Promise<TestHost> => {
      const users = auth.host(cluster.urls, BROKER_TIMEOUT_MS);
      const host = startReplicatedHost(cluster.urls, {
        id,
        shards: 1,
        leaseMs: LEASE_MS,
        ...users,
      });
      hosts.push(host);
      await host.line(({ type }) => type === "started");
      return host;
    };
    const first = await start(OWNER);
    const second = await start(OTHER);
    const options = { url: cluster.urls, job: "j", trainer: "t", timeoutMs: HANG_MS };
    const trainer = await connect({ ...options, ...auth.trainer("t") });
    await initialize(trainer);
    expect(await addOne(trainer)).toBe(1);
    await first.kill();
    expect(await addOne(trainer)).toBe(2);
    expect(second.serving).toEqual([SHARD]);
    await trainer.close();
  } finally {
    await Promise.all(hosts.map((host) => host.kill()));
    await cluster.remove();
    await auth.remove();
  }
});

test("a host that was parted from the broker answers nothing until its lease is renewed", async () => {
  job = await TestJob.start({ shards: 1, workers: 1, leaseMs: LEASE_MS });
  const { broker } = job;
  await using line = await SilentLine.open(Number(new URL(broker.url).port));
  // Bounds an attempt to connect on a line that is silent.
  const connection = { servers: [line.url], timeoutMs: RECONNECT_MS };
  const first = await job.host({ id: OWNER, connection });
  const second = await job.host({ id: OTHER });
  const trainer = await job.trainer("t");
  await initialize(trainer);
  expect(first.serving).toEqual([SHARD]);

  const reader = await job.trainer("r");
  expect([...(await reader.pullFull("steps", CALL)).data]).toEqual([0]);

  // All its connections are closed, and no new one gets through.
  line.restore(/^/);
  for (let i = 1; i <= 5; i++) expect(await addOne(trainer)).toBe(i);
  expect(second.serving).toEqual([SHARD]);
  await job.crash(second);

  // It hears requests again; neither its leases nor the journal can be reached.
  line.restore(/ (control|journal)$/);
  const subjects = new JobSubjects("j");
  const asked = await connectToBroker({ servers: broker.url });
  const isHeard = async (): Promise<boolean> => {
    const pull = asked.request(subjects.pull("steps", 0, "nobody"), "", { timeout: 500 });
    return !isNoResponders(await pull.catch((error: unknown) => error));
  };
  await expect.poll(isHeard, { timeout: HANG_MS, interval: 50 }).toBe(true);
  const pulls = asked.subscribe(subjects.allPulls(), { max: 3 });
  const read = reader.pullFull("steps", CALL);
  // Asked again, so the first request is not answered; or it is, with an outdated value.
  const askedAgain = (async (): Promise<void> => {
    for await (const _ of pulls);
  })();
  await Promise.race([askedAgain, read]);
  line.restore();
  expect([...(await read).data]).toEqual([5]);
  await asked.close();
});
