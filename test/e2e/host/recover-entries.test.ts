// Proves what an operator can do about damaged entries of a job's bucket, with the compiled command and hosts as
// processes: settings are written again from their copy, whether they are damaged, lost, or gone with their bucket, and
// everything else from the shards; a shard that has stopped although a parameter's entry is damaged, or because its mark
// is, goes on; and a job whose settings are damaged is listed, and can be removed. The damage is done through the
// broker's API.

import { jetstreamManager } from "@nats-io/jetstream";
import { connect as connectNats, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parameterKey } from "../../../src/actors/lifecycle/lock.ts";
import { connect } from "../../../src/client/index.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS, QUICK_LEASE_MS, TEST_MS } from "../../support/limits.ts";
import { untilWatermarkReached } from "./control.ts";
import { failureOf } from "./damage.ts";

const UPDATES = 20;

let job: TestJob;
let raw: NatsConnection;

beforeEach(async () => {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: 1 });
  raw = await connectNats({ servers: job.broker.url });
});

afterEach(async () => {
  await raw.close();
  await job.remove();
});

function pserver(...args: string[]): Promise<Finished> {
  return run(args, { environment: { PSERVER_URL: job.broker.url } });
}

function recover(...args: string[]): Promise<Finished> {
  return pserver("recover", "--job", "j", ...args);
}

/** Trains a job, and stops its host. */
async function train(): Promise<void> {
  const host = await job.host();
  const client = await job.trainer("t");
  await client.beginInit();
  await client.initParam("w", Float32Array.of(1), { learningRate: 1 });
  await client.finishInit();
  for (let i = 1; i < UPDATES; i++) await client.pushFull("w", Float32Array.of(1), 1, 1);
  await client.close();
  await untilWatermarkReached(job);
  await host.kill();
}

/** What the same trainer finds when it starts again. */
async function value(): Promise<number | bigint | undefined> {
  const client = await connect({
    ...{ url: job.broker.url, job: "j", trainer: "t", timeoutMs: HANG_MS },
  });
  try {
    expect(await client.beginInit()).toBe(false);
    return (await client.pullFull("w")).data[0];
  } finally {
    await client.close();
  }
}

/** Puts a text in the place of an entry. */
async function hurt(key: string): Promise<void> {
  await raw.request(`$KV.PS_j.${key}`, '{"format":1,"crc":7}');
}

async function failed(): Promise<{ host: TestHost; code: string | undefined }> {
  const host = job.spawnHost();
  await host.line(({ type }) => type === "started" || type === "refused");
  return { host, code: await failureOf(host, 0) };
}

test.each([
  ["damaged", () => hurt("settings")],
  [
    "lost",
    () =>
      manager().then(({ streams }) => streams.purge("KV_PS_j", { filter: "$KV.PS_j.settings" })),
  ],
  ["lost with all other entries", () => manager().then(({ streams }) => streams.purge("KV_PS_j"))],
  ["lost with their bucket", () => manager().then(({ streams }) => streams.delete("KV_PS_j"))],
])(
  "settings that are %s are written again from their copy, and the rest from the shards",
  async (_what, befall) => {
    await train();
    await befall();
    const refused = await job.spawnHost().line(({ type }) => type === "refused");
    expect(refused.error).toMatchObject({ code: "JOB_DAMAGED", details: { key: "settings" } });
    const shown = await recover();
    expect(shown.code).toBe(1);
    expect(`${shown.stdout}${shown.stderr}`).toMatch(/settings.*damaged/);
    const written = await recover("--entries", "--yes");
    expect(written).toMatchObject({ code: 0, stderr: expect.stringContaining("start a host") });
    await job.host({ shards: 1 });
    const rest = await recover("--entries", "--yes");
    expect(rest.code, rest.stderr).toBe(0);
    expect(await value()).toBe(UPDATES);
    expect((await pserver("verify", "--job", "j")).code).toBe(0);
  },
  TEST_MS,
);

test("a job with damaged settings is listed as damaged, and can be removed", async () => {
  await train();
  await hurt("settings");
  const listed = await pserver("jobs", "--json");
  expect(JSON.parse(listed.stdout)).toMatchObject([{ job: "j", state: "damaged", shards: 1 }]);
  expect((await pserver("jobs")).stdout).toMatch(/^j +damaged/m);
  await expect
    .poll(() => pserver("remove", "j", "--yes"), { timeout: HANG_MS })
    .toMatchObject({
      code: 0,
    });
  expect(JSON.parse((await pserver("jobs", "--json")).stdout)).toEqual([]);
});

test("a stopped shard goes on although a parameter's entry is damaged, which is then written again", async () => {
  await train();
  const { streams } = await manager();
  const { state } = await streams.info("PS_j_0");
  await streams.deleteMessage("PS_j_0", state.last_seq - 2);
  await hurt(parameterKey("w"));
  const { host, code } = await failed();
  expect(code).toBe("JOURNAL_DAMAGED");
  const { stdout } = await recover("--json");
  expect(JSON.parse(stdout)).toMatchObject({
    shards: [{ condition: "stopped", choices: [{ from: "prefix" }, expect.anything()] }],
    entries: { problems: [{ key: parameterKey("w") }], unasked: [0] },
  });
  const recovered = await recover("--from", "prefix", "--entries", "--yes");
  expect(recovered.code, recovered.stderr).toBe(0);
  expect(await value()).toBe(UPDATES - 3);
  await host.stop();
});

test("a shard that has stopped at its damaged mark goes on with all its records", async () => {
  await train();
  await hurt("head.0");
  const { host, code } = await failed();
  expect(code).toBe("JOB_DAMAGED");
  const recovered = await recover("--from", "prefix", "--yes");
  expect(recovered.code, recovered.stderr).toBe(0);
  expect(await value()).toBe(UPDATES);
  expect((await recover()).code).toBe(0);
  await host.stop();
});

function manager() {
  return jetstreamManager(raw);
}
