// Proves on a real broker that a replay gives what trainers pulled: while clients train with several
// optimizers, hosts are killed and snapshots are made, an observer pulls blocks at random moments with the
// positions that they are of; each of them equals the replay to that position, byte for byte, from
// whichever snapshot it begins.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { HostOptions } from "../../../src/actors/host/host.ts";
import type { Client } from "../../../src/client/index.ts";
import { openHistory } from "../../../src/history/open-journal.ts";
import { replayShard } from "../../../src/history/replay/replay-shard.ts";
import type { HistoryPlace, HistorySource } from "../../../src/history/source.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { snapshotAll } from "../host/control.ts";
import { digestOf, Observer, type PulledBlock } from "./pulled.ts";

const SHARDS = 3;
const NO_ABORT = new AbortController().signal;

/** Elements of a parameter of 5 blocks, on all shards. */
const LARGE = 1_300_000;

let job: TestJob;
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-replay-"));
});

afterEach(async () => {
  await job.remove();
  await rm(directory, { recursive: true });
});

async function start(options: Partial<HostOptions> = {}): Promise<void> {
  job = await TestJob.start({
    leaseMs: QUICK_LEASE_MS,
    shards: SHARDS,
    snapshotBytes: 4_000_000,
    ...options,
  });
  await job.host();
}

/** Parameters of several optimizers, and one without. */
async function initialize(client: Client): Promise<void> {
  await client.beginInit();
  await client.initParam("plain", new Float32Array(3_000).fill(0.5), { learningRate: 0.1 });
  await client.initParam("heavy", new Float32Array(5_000).fill(1), {
    optimizer: { name: "momentum", momentum: 0.9 },
    learningRate: 0.01,
  });
  await client.initParam("large", new Float32Array(LARGE).fill(0.1), {
    optimizer: "adam",
    learningRate: 0.001,
  });
  await client.initParam("counts", new BigInt64Array(16));
  await client.finishInit();
}

function gradients(at: number, round: number): Record<string, Float32Array> {
  const wave = (count: number): Float32Array =>
    Float32Array.from({ length: count }, (_, i) => Math.sin(i * (at + 1) + round));
  return { plain: wave(3_000), heavy: wave(5_000), large: wave(LARGE) };
}

/** Trains for so many rounds; after some of them a host is killed and replaced, or all is snapshotted. */
async function train(clients: readonly Client[], rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const killed = round % 6 === 2 ? job.hosts.at(-1)?.kill() : undefined;
    if (killed !== undefined) job.spawnHost();
    await Promise.all(clients.map((client, at) => client.sendGrads(gradients(at, round))));
    const [first] = clients;
    await first?.pushFull("counts", new BigInt64Array(16).fill(1n), 1, 1);
    if (round % 4 === 3) await snapshotAll(job);
  }
}

/** Pulls all parameters again and again until `work` ends. */
async function observe(client: Client, work: Promise<void>): Promise<PulledBlock[]> {
  const infos = await client.listParams();
  const observer = await Observer.open(job);
  const pulled: PulledBlock[] = [];
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  // Its failure is told by the last line.
  ended.catch(() => undefined);
  while (!isOver) for (const info of infos) pulled.push(...(await observer.pull(info)));
  for (const info of infos) pulled.push(...(await observer.pull(info)));
  await observer.close();
  await ended;
  return pulled;
}

function place(): HistoryPlace {
  const connection = { servers: [job.broker.url], timeoutMs: HANG_MS };
  return { kind: "broker", connection, job: job.job };
}

/** Compares every pulled block with the replay to its position. */
async function checkReplays(source: HistorySource, pulled: readonly PulledBlock[]): Promise<void> {
  const subjects = new JobSubjects(source.job);
  const moments = new Map<string, PulledBlock[]>();
  for (const block of pulled) {
    const key = `${block.shard}:${block.position.generation}:${block.position.seq}`;
    moments.set(key, [...(moments.get(key) ?? []), block]);
  }
  for (const blocks of moments.values()) {
    const [first] = blocks;
    if (first === undefined) continue;
    const history = source.shard(first.shard);
    const replayed = await replayShard(history, first.position, { subjects, signal: NO_ABORT });
    expect(replayed.seq).toBe(first.position.seq);
    for (const { parameter, index, version, digest } of blocks) {
      const block = replayed.block(parameter, index);
      const at = `${parameter} block ${index} at ${first.shard}:${first.position.seq}`;
      expect(block?.version, at).toBe(version);
      expect(digestOf(block?.values() ?? Buffer.of()), at).toBe(digest);
    }
  }
}

function pserver(...args: string[]): Promise<Finished> {
  const environment = { PSERVER_URL: job.broker.url, PSERVER_JOB: job.job };
  return run(args, { environment });
}

/** A few of the pulled blocks: one of the small parameters at each of some moments. */
function some(pulled: readonly PulledBlock[], count: number): PulledBlock[] {
  const small = pulled.filter(({ parameter }) => parameter === "heavy");
  return Array.from(
    { length: count },
    (_, i) => small[Math.floor((i * (small.length - 1)) / Math.max(1, count - 1))],
  ).filter((block) => block !== undefined);
}

test.each([
  ["async", {}],
  // A trainer whose lease ends would leave the steps.
  ["sync", { synchronization: { mode: "sync", trainers: 2 }, leaseMs: 10_000 } as const],
])("pulled values of an %s job are those of the replay", async (_name, options) => {
  await start(options);
  const clients = [await job.trainer("a"), await job.trainer("b")];
  const [client] = clients;
  if (client === undefined) throw new Error("no client");
  await initialize(client);
  const pulled = await observe(client, train(clients, 8));
  expect(new Set(pulled.map(({ position }) => position.seq)).size).toBeGreaterThan(10);
  const source = await openHistory(place());
  try {
    // Not all begin with the empty shard.
    expect((await source.shard(0).snapshots()).length).toBeGreaterThan(1);
    await checkReplays(source, pulled);
  } finally {
    await source.close();
  }
  // The command does so on threads of its own, without hosts.
  await Promise.all(job.hosts.map((host) => host.kill()));
  for (const { shard, position, parameter, digest } of some(pulled, 3)) {
    const out = join(directory, "values.bin");
    const to = `${shard}:${position.seq}`;
    const { code, stderr } = await pserver(
      "replay",
      "--to",
      to,
      "--param",
      parameter,
      "--out",
      out,
    );
    expect(stderr).toContain(`the cut`);
    expect(code).toBe(0);
    expect(digestOf(await readFile(out)), to).toBe(digest);
  }
});
