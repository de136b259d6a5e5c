// Proves that many parameters are initialized in one call: with their values, in few records, all checked
// before anything is sent, and again after attempts that ended too early to know what they had stored.
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { JobSubjects, PserverError } from "../../../src/protocol/index.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, LASTING_LEASE_MS } from "../../support/limits.ts";
import { askRaw } from "../host/raw-trainer.ts";

const SHARDS = 4;
const CALL = { timeoutMs: HANG_MS };

let job: TestJob;

afterEach(async () => {
  await job.remove();
});

/** Parameters of 1 to 8 elements, each with values of its own. */
function tensors(count: number): Map<string, Float32Array> {
  return new Map(
    Array.from({ length: count }, (_, i) => [`p/${i}`, new Float32Array((i % 8) + 1).fill(i)]),
  );
}

/** Records of trainers in all journals. */
async function trainerRecords(): Promise<number> {
  const connection = await connect({ servers: job.broker.url });
  try {
    const manager = await jetstreamManager(connection);
    let records = 0;
    for (let shard = 0; shard < SHARDS; shard++) {
      const stream = new JobSubjects(job.job).journalStream(shard, 1);
      const { state } = await manager.streams.info(stream, {
        subjects_filter: "*.*.log.*.trainer.>",
      });
      for (const count of Object.values(state.subjects ?? {})) records += count;
    }
    return records;
  } finally {
    await connection.close();
  }
}

test("a thousand parameters, in a few records", async () => {
  job = await TestJob.start({ shards: SHARDS });
  await job.host();
  const client = await job.trainer("a");
  const values = tensors(1_000);
  await client.beginInit(CALL);
  const config = (name: string) => ({ learningRate: name === "p/7" ? 0.5 : 1 });
  await client.initParams(values, config, CALL);
  await client.finishInit(CALL);
  expect(await trainerRecords()).toBeLessThan(3 * SHARDS);
  const read = await client.getParams([...values.keys()], CALL);
  expect(read.map(({ data }) => data)).toEqual([...values.values()]);
  const infos = await client.listParams(CALL);
  const rates = infos.map(({ name, config }) => [name, config.learningRate]);
  expect(
    rates.filter(([, rate]) => JSON.stringify(rate) !== JSON.stringify(rates[0]?.[1])),
  ).toHaveLength(1);
});

test("nothing is declared if one of them cannot be", async () => {
  job = await TestJob.start({ shards: SHARDS });
  await job.host();
  const client = await job.trainer("a");
  await client.beginInit(CALL);
  const bad = { ok: Float32Array.of(1), bad: Float32Array.of(Number.NaN) };
  await expect(client.initParams(bad, {}, CALL)).rejects.toMatchObject({
    code: "NON_FINITE",
    message: expect.stringContaining('"bad"'),
  });
  await expect(client.initParams({}, {}, CALL)).rejects.toMatchObject({ code: "EMPTY" });
  expect(await client.listParams(CALL)).toEqual([]);
});

test("attempts that end too early are completed by one that does not", async () => {
  job = await TestJob.start({ shards: SHARDS, leaseMs: LASTING_LEASE_MS });
  await job.host();
  const client = await job.trainer("a");
  const values = tensors(300);
  await client.beginInit(CALL);
  let failed = 0;
  for (let timeoutMs = 1; ; timeoutMs *= 2) {
    try {
      await client.initParams(values, {}, { timeoutMs: Math.min(timeoutMs, HANG_MS) });
      break;
    } catch (error) {
      const code = error instanceof PserverError ? error.code : String(error);
      expect(["NO_HOST", "TIMEOUT", "OUTCOME_UNKNOWN"]).toContain(code);
      failed += 1;
    }
  }
  expect(failed).toBeGreaterThan(0);
  await client.finishInit(CALL);
  const read = await client.getParams([...values.keys()], CALL);
  expect(read.map(({ data }) => data)).toEqual([...values.values()]);
});

test("parameters of long configurations, where the broker takes no message of all of them", async () => {
  job = await TestJob.start({ shards: SHARDS }, { extraConfig: "max_payload: 256KB" });
  const host = await job.host();
  const client = await job.trainer("a");
  // Names, configurations and layouts of 256 of them are more than the broker takes.
  const names = Array.from({ length: 400 }, (_, i) => `${"n".repeat(190)}${i}`);
  const values = new Map(names.map((name, i) => [name, new Float32Array(2).fill(i)]));
  const table = Array.from({ length: 32 }, (_, row) => [row && 2 ** 40 + row, 0.1 / (row + 1)]);
  const learningRate = { schedule: "step", table: table as [number, number][] } as const;
  await client.beginInit(CALL);
  await client.initParams(values, () => ({ optimizer: "adam", learningRate }), CALL);
  await client.finishInit(CALL);
  const reader = await job.trainer("b");
  const read = await reader.getParams(names, CALL);
  expect(read.map(({ data }) => data)).toEqual([...values.values()]);
  expect((await reader.listParams(CALL)).map(({ name }) => name)).toEqual([...names].sort());
  // A client that does not know how large a reply may be.
  const raw = await connect({ servers: job.broker.url });
  onTestFinished(() => raw.close());
  const all = askRaw(raw, "c", "status", { session: 1, names: names.slice(0, 256) });
  await expect(all).rejects.toMatchObject({ code: "TOO_LARGE" });
  expect(host.hasEnded).toBe(false);
});
