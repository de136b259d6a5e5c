// Proves that where the copies of a journal differ, the sound one is used, and the broker with the other one is named:
// on three brokers that keep everything three times, one bit of one broker's copy of each journal changes while nothing
// runs, so that nats-server itself does not notice. A consumer reads the copy of a broker that the cluster chooses at
// random: each host reads many journals, so that it reads some of the damaged copies. Then the broker's store is
// replaced as the documents say, and no copy is damaged any more.
import { rm } from "node:fs/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect as connectToBroker } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { hashName, JobSubjects } from "../../../src/protocol/index.ts";
import { run } from "../../cli/spawn-command.ts";
import { TestCluster } from "../../support/cluster.ts";
import type { TestHost } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { flipBitOf, streamDirectory, updateRecord } from "./damage.ts";
import { startReplicatedHost } from "./replicated-host.ts";

const JOB = "j";
const LEASE_MS = 2_000;
const CALL = { timeoutMs: HANG_MS };

/** A host reads no damaged copy at all once in (2/3)^16, or 0.15 percent; two hosts once in 400,000. */
const SHARDS = 16;
const UPDATES = 3;

/** Number and name of the broker with the damaged copies. */
const DAMAGED = 1;
const DAMAGED_NAME = "broker-1";

const subjects = new JobSubjects(JOB);

/** A parameter on each shard. */
const names = Array.from({ length: SHARDS }, (_, shard) => nameOn(shard));

let cluster: TestCluster;
let host: TestHost;

function nameOn(shard: number): string {
  for (let i = 0; ; i++) if (hashName(`c${i}`) % SHARDS === shard) return `c${i}`;
}

/** Starts a host, and waits until it serves all shards. */
async function startHost(): Promise<void> {
  host = startReplicatedHost(cluster.urls, { shards: SHARDS, leaseMs: LEASE_MS });
  await host.until(() => host.serving.length === SHARDS);
}

/** The copies that the host has found to be damaged, by shard: their brokers. */
function damagedOf(): Map<number | undefined, unknown> {
  const told = host.lines.filter(({ type }) => type === "replica-damaged");
  return new Map(told.map(({ shard, error }) => [shard, error?.details?.["broker"]]));
}

/** All values, as a trainer that has just joined reads them. */
async function readAll(trainer: string): Promise<number[]> {
  const reader = await connect({ url: cluster.urls, job: JOB, trainer, timeoutMs: HANG_MS });
  const values: number[] = [];
  for (const name of names) values.push(Number((await reader.pullFull(name, CALL)).data[0]));
  await reader.close();
  return values;
}

const WHOLE = Array<number>(SHARDS).fill(UPDATES);

beforeAll(async () => {
  cluster = await TestCluster.start();
  await startHost();
  const options = { url: cluster.urls, job: JOB, trainer: "a", timeoutMs: HANG_MS };
  const client = await connect(options);
  for (const name of names)
    await client.createIfNotAlreadyCreated(name, Float64Array.of(0), {}, CALL);
  for (let i = 0; i < UPDATES; i++) {
    await Promise.all(names.map((name) => client.pushFull(name, Float64Array.of(1), 1, 1, CALL)));
  }
  await client.close();
  await host.kill();
  await cluster.whole();
  const connection = await connectToBroker({ servers: cluster.urls });
  const { streams } = await jetstreamManager(connection);
  const journals = names.map((_, shard) => subjects.journalStream(shard, 1));
  const hurt = await Promise.all(journals.map((journal) => updateRecord(streams, journal, 2)));
  await connection.close();
  await Promise.all([0, 1, 2].map((number) => cluster.kill(number)));
  for (const [shard, { subject, payload }] of hurt.entries()) {
    const directory = streamDirectory({ broker: cluster.broker(DAMAGED) }, journals[shard] ?? "");
    // The length of the subject, two bytes before it, which the broker's checksum leaves out.
    await flipBitOf(directory, Buffer.concat([Buffer.from(subject), payload]), -2);
  }
  await Promise.all([0, 1, 2].map((number) => cluster.restart(number)));
  await cluster.whole();
});

afterAll(async () => {
  await host?.kill();
  await cluster?.remove();
});

test("hosts one after the other serve the sound copies, and name the broker with the damaged ones", async () => {
  const named = new Set<unknown>();
  for (let round = 1; round <= 2; round++) {
    await startHost();
    expect(await readAll(`reader-${round}`)).toEqual(WHOLE);
    for (const broker of damagedOf().values()) named.add(broker);
    await host.kill();
  }
  expect([...named]).toEqual([DAMAGED_NAME]);
});

test("the job's history is read from the sound copies, too", async () => {
  await startHost();
  const at = ["--url", cluster.urls.join(","), "--job", JOB];
  const { code, stdout, stderr } = await run(["verify", ...at]);
  expect(code, stderr).toBe(0);
  expect(stdout).not.toContain("JOURNAL_DAMAGED");
});

test("doctor names the broker, and with a new store it has sound copies", async () => {
  do {
    await host.kill();
    await startHost();
  } while (damagedOf().size === 0);
  const doctor = ["doctor", "--url", cluster.urls.join(","), "--job", JOB];
  const { stdout } = await run(doctor);
  expect(stdout).toMatch(
    new RegExp(`broker ${DAMAGED_NAME} has damaged copies of journals: shard`),
  );
  await cluster.kill(DAMAGED);
  await rm(cluster.broker(DAMAGED).storeDir, { recursive: true });
  await cluster.restart(DAMAGED);
  await cluster.whole();
  for (let round = 3; round <= 4; round++) {
    await host.kill();
    await startHost();
    expect(await readAll(`reader-${round}`)).toEqual(WHOLE);
    expect([...damagedOf()]).toEqual([]);
  }
  expect((await run(doctor)).stdout).not.toContain("damaged");
});
