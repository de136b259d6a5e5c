// Proves on real hosts, with the compiled command, that versions and counts of updates are exact: after
// updates of parameters of one block and of several on all shards, after hosts were killed and others
// started, and after `set`; and that what a stopped shard holds is said to be unknown, and
// all to a user who may not ask.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { hashName, JobSubjects } from "../../../src/protocol/index.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { failureOf } from "../host/damage.ts";

/** 6 MiB of float32: six blocks, on all four shards. */
const LARGE = 6 * 256 * 1024;
const LARGE_BLOCKS = 6;

const SHARDS = 4;

/** What the command prints of a parameter. */
interface Listed {
  readonly name: string;
  readonly blocks: number;
  readonly version: { readonly least: number; readonly most: number } | null;
  readonly updates: number | null;
}

let job: TestJob;
afterEach(() => job.remove());

function pserver(...args: string[]): Promise<Finished> {
  const environment = { PSERVER_URL: job.broker.url };
  return run([...args, "--job", job.job], { environment });
}

async function json<Answer>(...args: string[]): Promise<Answer> {
  const { code, stdout, stderr } = await pserver(...args, "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout) as Answer;
}

/** What `ls` shows of versions, by name. */
async function listed(): Promise<Record<string, Pick<Listed, "version" | "updates">>> {
  const all = await json<Listed[]>("ls");
  return Object.fromEntries(all.map(({ name, version, updates }) => [name, { version, updates }]));
}

/** How `ls` shows a parameter whose blocks all have one version. */
function even(version: number, blocks: number): Pick<Listed, "version" | "updates"> {
  return { version: { least: version, most: version }, updates: (version - 1) * blocks };
}

async function updates(): Promise<number> {
  const { shards } = await json<{ shards: { updates: { applied: number } }[] }>("status");
  return shards.reduce((sum, shard) => sum + shard.updates.applied, 0);
}

async function initialize(): Promise<Client> {
  const client = await job.trainer("a");
  expect(await client.beginInit()).toBe(true);
  const config = { learningRate: 0.5, sparse: true };
  await client.initParam("large", new Float32Array(LARGE), { learningRate: 0.5 });
  await client.initParam("small", new Float32Array(4), { learningRate: 0.5 });
  await client.initParam("rows", new Float32Array(4), config);
  await client.finishInit();
  return client;
}

test("are exact after updates, after hosts were killed, and after set", async () => {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: SHARDS });
  const host = await job.host();
  const client = await initialize();
  const initial = {
    large: even(1, LARGE_BLOCKS),
    small: even(1, 1),
    rows: even(1, 1),
  };
  expect(await listed()).toEqual(initial);

  for (let i = 0; i < 5; i++) await client.sendGrads({ small: new Float32Array(4).fill(i) });
  for (let i = 0; i < 3; i++) await client.sendGrads({ large: new Float32Array(LARGE).fill(i) });
  const trained = { ...initial, small: even(6, 1), large: even(4, LARGE_BLOCKS) };
  expect(await listed()).toEqual(trained);
  expect(await updates()).toBe(5 + 3 * LARGE_BLOCKS);

  // One element, so one block of the six.
  await client.pushAsPart("large", Float32Array.of(1), [[0]], 1, 1);
  const uneven = { version: { least: 4, most: 5 }, updates: 3 * LARGE_BLOCKS + 1 };
  expect(await listed()).toEqual({ ...trained, large: uneven });

  await host.kill();
  await job.host();
  expect(await listed()).toEqual({ ...trained, large: uneven });

  const file = join(job.broker.current.storeDir, "small.json");
  await writeFile(file, "[1,2,3,4]");
  expect(await pserver("set", "small", file)).toMatchObject({ code: 0 });
  expect(await listed()).toEqual({ ...trained, large: uneven, small: even(7, 1) });
  expect(await updates()).toBe(6 + 3 * LARGE_BLOCKS + 1);

  const got = await json<Listed & { values: number[] }>("get", "small");
  expect(got).toMatchObject({ ...even(7, 1), values: [1, 2, 3, 4] });
  const shown = await pserver("get", "large");
  expect(shown.stdout).toMatch(/^large +float32 \(1572864,\) +6 MiB +version 4–5 +updates 19\n/);
  expect((await pserver("ls")).stdout).toMatch(/^small .* 7 +6 +1$/m);
  expect((await pserver("status")).stdout).toMatch(/updates +25 applied, 0 rejected/);
});

test("are unknown of what a stopped shard holds, and exact of all else", async () => {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: SHARDS });
  const host = await job.host();
  const client = await initialize();
  await client.sendGrads({ small: new Float32Array(4) });
  // A shard that holds neither of the two small parameters, which lie together, only blocks of the large one.
  const lost = (hashName("small") + 1) % SHARDS;
  await host.kill();
  const connection = await connect({ servers: job.broker.url });
  const manager = await jetstreamManager(connection);
  await manager.streams.delete(new JobSubjects(job.job).journalStream(lost, 1));
  await connection.close();
  const next = job.spawnHost();
  await failureOf(next, lost);
  await next.until(() => next.serving.length === SHARDS - 1);

  const { code, stdout, stderr } = await pserver("ls", "--json");
  expect(code).toBe(0);
  const all: Listed[] = JSON.parse(stdout);
  expect(all.find(({ name }) => name === "large")).toMatchObject({ version: null, updates: null });
  expect(all.find(({ name }) => name === "small")).toMatchObject(even(2, 1));
  expect(all.find(({ name }) => name === "rows")).toMatchObject(even(1, 1));
  expect(JSON.parse(stderr).warning).toMatch(new RegExp(`^1 shard does not answer.*: ${lost}$`));
  expect((await pserver("ls")).stdout).toMatch(/^large .* \? +\? +1$/m);
  const status = (await pserver("status")).stdout;
  expect(status).toContain(
    `1 applied, 0 rejected by the present owners; not known of shard ${lost}`,
  );
});

test("are unknown to a user who may not ask for them, and the reason is told", async () => {
  const extraConfig = `authorization { users = [
    { user: host, password: h }
    { user: reader, password: r, permissions: {
      publish: ["ps.j.lifecycle.r.status"], subscribe: ["_INBOX_j.r.>"] } } ] }`;
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: SHARDS }, { extraConfig });
  const servers = [job.broker.url];
  await job.host({ connection: { servers, timeoutMs: HANG_MS, user: "host", password: "h" } });
  const client = await job.trainer("a", { user: "host", password: "h" });
  await client.beginInit();
  await client.initParam("w", new Float32Array(4));
  await client.finishInit();
  const { code, stdout, stderr } = await pserver(
    ...["ls", "--json", "--trainer", "r", "--user", "reader", "--password", "r"],
  );
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject([{ name: "w", version: null, updates: null }]);
  expect(JSON.parse(stderr).warning).toMatch(/^versions are not known: the broker refuses /);
});
