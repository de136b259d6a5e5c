// Proves on a real broker, with the compiled command and hosts as processes: `jobs` lists what a broker
// holds, a command for a job that nobody serves names those that there are, and `remove` takes a job away
// whole, but not while a host serves it, and not so that half of it could be taken for a job. A removal that was held
// up leaves alone what was made under the name meanwhile.
import { jetstream } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listJobStreams } from "../../../src/actors/job/open-job.ts";
import { JobRemoval } from "../../../src/actors/job/remove-job.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { heldConnection } from "../../support/held-connection.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";

let job: TestJob;
let connection: NatsConnection;

beforeEach(async () => {
  job = await TestJob.start();
  connection = await connect({ servers: job.broker.url });
});

afterEach(async () => {
  await connection.close();
  await job.remove();
});

function pserver(...args: string[]): Promise<Finished> {
  const environment = { PSERVER_URL: job.broker.url };
  return run(args, { environment });
}

async function streams(): Promise<string[]> {
  const manager = await jetstream(connection).jetstreamManager();
  const jobs = await listJobStreams(manager);
  return jobs.flatMap(({ streams: found }) => found.map(({ config }) => config.name));
}

test("lists a broker without a job, then with a job that is served and one that is not", async () => {
  expect(await pserver("jobs")).toMatchObject({ code: 0, stdout: "" });
  expect(JSON.parse((await pserver("jobs", "--json")).stdout)).toEqual([]);
  const host = await job.host({ id: "one" });
  const other = await job.host({ job: "other", shards: 1, journal: "memory", id: "two" });
  await other.stop();
  const client = await job.trainer("a");
  await client.createIfNotAlreadyCreated("w", new Float32Array(4));
  expect(JSON.parse((await pserver("jobs", "--json")).stdout)).toMatchObject([
    { job: "j", state: "uninitialized", shards: 4, journal: "file", hosts: ["one"], leases: "kv" },
    { job: "other", state: "uninitialized", shards: 1, journal: "memory", hosts: [] },
  ]);
  const { stdout } = await pserver("jobs");
  expect(stdout).toMatch(
    /^JOB +STATE +HOSTS +SHARDS +JOURNAL +STORED\nj +uninitialized +1 +4 +file/,
  );
  await host.stop();
});

test("a command for another job names those that the broker holds", async () => {
  await job.host();
  for (const command of [["status"], ["ls"], ["get", "w"]]) {
    const { code, stderr } = await pserver(...command, "--job", "typo");
    expect(code).toBe(2);
    expect(stderr).toContain("NO_HOST: ");
    expect(stderr).toContain("the broker holds these jobs: j");
  }
});

test("commands that change a job say alike that the broker does not hold it", async () => {
  await (await job.host()).stop();
  const ends = await Promise.all([
    pserver("remove", "typo", "--yes"),
    run(["recover", "--job", "typo"], { environment: { PSERVER_URL: job.broker.url } }),
  ]);
  for (const { code, stderr } of ends) {
    expect(stderr).toContain(
      'BAD_NAME: the broker holds no job typo: list its jobs with "pserver jobs"',
    );
    expect(code).toBe(3);
  }
});

test("a job that is served is not removed; any other is removed as a whole, and can be made anew", async () => {
  const host = await job.host({ id: "one" });
  const before = await streams();
  const refused = await pserver("remove", "j", "--yes");
  expect(refused).toMatchObject({ code: 3, stdout: "" });
  expect(refused.stderr).toContain("JOB_EXISTS: hosts of job j are alive: one");
  expect(await streams()).toEqual(before);
  await host.stop();

  const unasked = await pserver("remove", "j");
  expect(unasked).toMatchObject({ code: 3, stderr: expect.stringContaining("give --yes") });
  expect(await streams()).toEqual(before);

  const { stdout } = await pserver("remove", "j", "--yes", "--json");
  const { removed } = JSON.parse(stdout) as { readonly removed: string[] };
  expect(removed.toSorted()).toEqual(before.toSorted());
  expect(removed.at(-1)).toBe("KV_PS_j");
  expect(await streams()).toEqual([]);
  expect(await pserver("remove", "j", "--yes")).toMatchObject({
    code: 3,
    stderr: expect.stringContaining("holds no job j"),
  });
  await job.host({ shards: 2 });
  const client = await job.trainer("a");
  await client.createIfNotAlreadyCreated("w", new Float32Array(4));
  expect((await client.pullFull("w")).data).toEqual(new Float32Array(4));
});

test("hosts refuse the rest of a job whose removal was interrupted, until another removal completes it", async () => {
  await (await job.host()).stop();
  const removal = new JobRemoval({ connection, job: "j", etcd: undefined, timeoutMs: HANG_MS });
  const cutOff = removal.run((name) => {
    throw new Error(`cut off after ${name}`);
  });
  await expect(cutOff).rejects.toThrow(/^cut off after KV_PS_j_LEASE$/);
  expect(JSON.parse((await pserver("jobs", "--json")).stdout)).toMatchObject([
    { job: "j", state: "removing" },
  ]);
  const refused = await job.spawnHost().line(({ type }) => type === "refused");
  expect(refused.error).toMatchObject({
    code: "JOB_EXISTS",
    message: expect.stringContaining("being removed"),
  });
  expect(await pserver("remove", "j", "--yes")).toMatchObject({ code: 0 });
  expect(await streams()).toEqual([]);
  await job.host();
});

test("a removal that goes on late leaves alone a job that was made under the name meanwhile", async () => {
  await (await job.host({ shards: 2 })).stop();
  let looks = 0;
  let made: string[] = [];
  // It looks at each stream directly before it removes it.
  const held = heldConnection(connection, async (subject) => {
    if (!subject.startsWith("$JS.API.STREAM.DELETE.") || ++looks !== 2) return;
    expect(await pserver("remove", "j", "--yes")).toMatchObject({ code: 0 });
    await job.host({ shards: 2 });
    const client = await job.trainer("a");
    await client.createIfNotAlreadyCreated("w", Float32Array.of(5));
    made = await streams();
  });
  const removal = new JobRemoval({
    connection: held,
    job: "j",
    etcd: undefined,
    timeoutMs: HANG_MS,
  });
  await expect(removal.run(() => undefined)).rejects.toMatchObject({ code: "BUSY" });
  expect(await streams()).toEqual(made);
  const client = await job.trainer("b");
  expect((await client.pullFull("w")).data).toEqual(Float32Array.of(5));
});

test("a removal does not remove another job than the one that was planned to be removed", async () => {
  await (await job.host({ shards: 2 })).stop();
  const removal = new JobRemoval({ connection, job: "j", etcd: undefined, timeoutMs: HANG_MS });
  await removal.plan();
  expect(await pserver("remove", "j", "--yes")).toMatchObject({ code: 0 });
  await (await job.host({ shards: 2 })).stop();
  const made = await streams();
  await expect(removal.run(() => undefined)).rejects.toMatchObject({ code: "BUSY" });
  expect(await streams()).toEqual(made);
});

test("streams of others stay", async () => {
  const manager = await jetstream(connection).jetstreamManager();
  await (await job.host()).stop();
  await manager.streams.add({ name: "PS", subjects: ["mine.>"] });
  await manager.streams.add({ name: "KV_other", subjects: ["theirs.>"] });
  await (await job.host({ job: "j-2", shards: 1 })).stop();
  expect(await pserver("remove", "j", "--yes")).toMatchObject({ code: 0 });
  const names: string[] = [];
  for await (const name of manager.streams.names()) names.push(name);
  expect(names.filter((name) => !/^(KV_)?PS_j-2(_|$)/.test(name)).sort()).toEqual([
    "KV_other",
    "PS",
  ]);
});
