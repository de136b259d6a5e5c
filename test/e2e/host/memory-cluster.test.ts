// Proves what is left of a job with its journals in memory in a cluster of three brokers that are all killed: the
// streams of the journals are there again, under their old creation times, and empty. What the host holds is served
// on; if the host is killed, too, its last snapshot is, and trainers are told what is lost.
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Client, connect, type ShardFallback } from "../../../src/client/index.ts";
import { TestCluster } from "../../support/cluster.ts";
import type { TestHost } from "../../support/host.ts";
import { HANG_MS, MORTAL_LEASE_MS } from "../../support/limits.ts";
import { startReplicatedHost } from "./replicated-host.ts";

const CALL = { timeoutMs: HANG_MS };

let cluster: TestCluster;
let host: TestHost;
let client: Client;
const told: ShardFallback[] = [];

async function startHost(): Promise<void> {
  host = startReplicatedHost(cluster.urls, {
    shards: 1,
    leaseMs: MORTAL_LEASE_MS,
    journal: "memory",
  });
  await host.line(({ type }) => type === "started");
}

async function killBrokers(): Promise<void> {
  await Promise.all([0, 1, 2].map((number) => cluster.kill(number)));
  await Promise.all([0, 1, 2].map((number) => cluster.restart(number)));
  await cluster.whole();
}

async function push(times: number): Promise<void> {
  for (let i = 0; i < times; i++) await client.pushFull("w", Float64Array.of(1), 1, 1, CALL);
}

async function value(): Promise<number> {
  return Number((await client.pullFull("w", CALL)).data[0]);
}

beforeAll(async () => {
  cluster = await TestCluster.start();
  await startHost();
  const options = { url: cluster.urls, job: "j", trainer: "t", timeoutMs: HANG_MS };
  client = await connect({ ...options, onFallback: (fallback) => told.push(fallback) });
  await client.beginInit();
  await client.initParam("w", Float64Array.of(0));
  await client.finishInit();
});

afterAll(async () => {
  await client?.close({ timeoutMs: 1 });
  await host?.kill();
  await cluster?.remove();
});

test("a host that lives on loses nothing, and trainers go on", async () => {
  await push(5);
  await killBrokers();
  // A record of the emptied journal may be lost with it before the host has replaced it; its call says so.
  await vi.waitFor(() => push(1), { timeout: HANG_MS });
  expect(await value()).toBe(6);
  expect(host.lines.filter(({ type }) => type === "shard-failed")).toEqual([]);
  expect(told).toEqual([]);
});

test("without its host it goes back to the last snapshot, and the trainer is told", async () => {
  await push(3);
  await host.kill();
  await killBrokers();
  await startHost();
  // What it held when it replaced the journal, not what came later.
  expect(await value()).toBe(5);
  await vi.waitFor(() => expect(told.map(({ shard }) => shard)).toContain(0), { timeout: HANG_MS });
  await push(2);
  expect(await value()).toBe(7);
});
