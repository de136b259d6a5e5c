// Proves that a job of rules version 1 continues under hosts of this version: its settings are those of a job
// made before there were others. Parameters are initialized and created, updates count, snapshots are made
// and another host takes over; and its journals hold nothing that version 1 does not know.
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import { openBucket } from "../../../src/actors/journal/kv-bucket.ts";
import { decodeMessage } from "../../../src/protocol/index.ts";
import { TestJob } from "../../support/host.ts";
import { snapshotAll } from "./control.ts";
import { Archive } from "./journal-fold.ts";

/** As a host of before wrote them. */
const SETTINGS = {
  format: 1,
  shards: 2,
  journal: "file",
  leaseMs: 1_000,
  leases: "kv",
  journalBytesMax: 64 * 1024 ** 2,
  replicas: 1,
  synchronization: { mode: "async" },
};

const KNOWN_VERBS = ["rules", "members", "drop", "floor"];

let job: TestJob;
let connection: NatsConnection;

afterEach(async () => {
  await connection.close();
  await job.remove();
});

test("a job of version 1 continues under this version's hosts", async () => {
  job = await TestJob.start({ shards: 2 });
  connection = await connect({ servers: job.broker.url });
  const records = await openBucket({ connection, bucket: "PS_j", storage: "file" });
  await records.create("settings", SETTINGS);

  const first = await job.host();
  const client = await job.trainer("a");
  await client.beginInit();
  for (const name of ["v", "w", "x"]) {
    await client.initParam(name, new Float32Array(4), { learningRate: 1 });
  }
  await client.finishInit();
  const gradient = Float32Array.of(-1, -2, -3, -4);
  const all = { v: gradient, w: gradient, x: gradient };
  await client.sendGrads(all);
  await snapshotAll(job);
  await client.sendGrads(all);
  await first.kill();
  await job.host();
  await client.sendGrads(all);
  for (const name of ["v", "w", "x"]) {
    expect((await client.pullFull(name)).data).toEqual(Float32Array.of(3, 6, 9, 12));
  }
  await client.close({ timeoutMs: 1 });

  await using archive = await Archive.open(job.broker.url, job.job);
  for (const shard of [0, 1]) {
    const hosts = (await archive.records(shard)).filter(({ subject }) =>
      subject.includes(".host."),
    );
    const [rules] = hosts;
    expect(rules && decodeMessage(rules.payload).fields).toMatchObject({ rules: 1 });
    const verbs = hosts.map(({ subject }) => subject.split(".").at(-1));
    expect(verbs.filter((verb) => !KNOWN_VERBS.includes(String(verb)))).toEqual([]);
    expect((await archive.fold(shard)).saveState()).toMatchObject({ rules: 1, unreadable: 0 });
  }
});
