// Proves that nothing acknowledged is lost and nothing is applied twice when hosts and brokers are
// killed while trainers push: integers count every update, and floats, whose sum depends on the
// order, are compared bit for bit with a fold of the journal that no host took part in.
import { afterEach, describe, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { TestJob } from "../../support/host.ts";
import { QUICK_LEASE_MS } from "../../support/limits.ts";
import { checkValues, initialize, Training, train } from "./training.ts";

let job: TestJob;

afterEach(async () => {
  await job.remove();
});

describe("killed and started again", () => {
  test("a host has every value that it had", async () => {
    job = await TestJob.start({ leaseMs: QUICK_LEASE_MS });
    const first = await job.host();
    const client = await job.trainer("a");
    await initialize(client, 1);
    let rounds = 0;
    const done = train(client, 0, 1, () => ++rounds > 5);
    const counts = [await done];
    await checkValues(job, client, counts);
    await first.kill();
    await job.host();
    await checkValues(job, client, counts);
  });

  test("a broker and then both have every value that they had", async () => {
    job = await TestJob.start({ leaseMs: QUICK_LEASE_MS });
    const host = await job.host();
    const client = await job.trainer("a");
    await initialize(client, 1);
    let rounds = 0;
    const counts = [await train(client, 0, 1, () => ++rounds > 5)];
    await job.broker.kill();
    await job.broker.start();
    await checkValues(job, client, counts);
    await Promise.all([job.broker.kill(), host.kill()]);
    await job.broker.start();
    await job.host();
    await checkValues(job, client, counts);
  });
});

test("under load, whichever process is killed, three trainers lose nothing and nothing counts twice", async () => {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, snapshotBytes: 300_000 });
  let host = await job.host();
  const clients = await Promise.all(["a", "b", "c"].map((name) => job.trainer(name)));
  const [first] = clients as [Client, Client, Client];
  await initialize(first, 3);
  const training = new Training(clients);
  for (let round = 0; round < 4; round++) {
    await training.progress();
    if (round % 2 === 0) {
      await host.kill();
      host = await job.host();
    } else {
      await job.broker.kill();
      await job.broker.start();
    }
  }
  await training.progress();
  await checkValues(job, first, await training.end());
});
