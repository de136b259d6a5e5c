// Proves, on three brokers, that an owner learns where a journal ends from a majority: while the broker that led
// it is alone the owner that knows only that one gets no answer, and once the network is back it learns of all
// records that the others have acknowledged meanwhile, though that broker still takes itself for the leader.
import { jetstream } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import {
  Journal,
  type JournalSettings,
  majorityInfo,
  majorityLastSeq,
} from "../../../src/actors/journal/journal.ts";

import { JobSubjects } from "../../../src/protocol/index.ts";
import { TestCluster } from "../../support/cluster.ts";
import { HANG_MS } from "../../support/limits.ts";

const SUBJECTS = new JobSubjects("j");
const RULES = { verb: "rules", rules: 1 } as const;
/** Long enough for a broker with a majority to answer. */
const TIMEOUT_MS = 3_000;

let cluster: TestCluster;
let connections: NatsConnection[];
let journals: Journal[];

beforeAll(async () => {
  cluster = await TestCluster.start();
  connections = await Promise.all(cluster.urls.map((servers) => connect({ servers })));
  journals = await Promise.all(connections.map(journalOver));
  await retried(() => journals[0]?.open(1, RULES.rules));
});

afterAll(async () => {
  await Promise.all((connections ?? []).map((connection) => connection.close()));
  await cluster?.remove();
});

async function journalOver(connection: NatsConnection): Promise<Journal> {
  const client = jetstream(connection, { timeout: TIMEOUT_MS });
  const manager = await client.jetstreamManager();
  const settings: JournalSettings = {
    storage: "file",
    bytesMax: 1024 ** 2,
    replicas: 3,
    rules: RULES.rules,
    synchronization: { mode: "async" },
  };
  return new Journal({ manager, client, subjects: SUBJECTS, settings, shard: 0 });
}

/** The result of `run` as soon as the cluster has leaders that can answer. */
async function retried<Result>(run: () => Promise<Result> | undefined): Promise<Result> {
  return await vi.waitFor(async () => (await run()) as Result, {
    timeout: HANG_MS,
    interval: 100,
  });
}

test("of a journal whose leader was separated for a time", async () => {
  await cluster.whole();
  // A broker that has not yet learned where the journal's leader listens answers that nobody does.
  const { seq: before } = await retried(() => journals[0]?.append(RULES));
  const alone = await cluster.leader(SUBJECTS.journalStream(0, 1));
  const separated = journals[alone] as Journal;
  const other = journals[(alone + 1) % 3] as Journal;
  cluster.isolate(alone);
  let acknowledged = before;
  while (acknowledged < before + 5)
    ({ seq: acknowledged } = await retried(() => other.append(RULES)));
  // The leader that is alone still answers by itself.
  expect(await separated.lastSeq(1)).toBe(before);
  await expect(majorityInfo(separated, 1)).rejects.toMatchObject({ retryable: true });

  cluster.join(alone);
  const [info, lastSeq] = await retried(() =>
    Promise.all([
      majorityInfo(separated, 1),
      majorityLastSeq(separated, { generation: 1, seq: acknowledged }),
    ]),
  );
  expect(info?.lastSeq).toBeGreaterThan(acknowledged);
  expect(lastSeq).toBeGreaterThanOrEqual(acknowledged);
});
