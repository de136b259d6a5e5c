// Proves on a real broker that a tape has one line for every update, and no line twice, whatever moment its
// hosts are killed at: the lines of all records whose journal is kept whole are compared with a fold of that
// journal. That `pserver log` reaches back to the first update although the journal was trimmed; that a job
// can be made without a tape; and that the tape goes with its job.
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import type { UpdateEvent } from "../../../src/actors/journal/describe-record.ts";
import type { Client } from "../../../src/client/index.ts";
import { openHistory } from "../../../src/history/open-journal.ts";
import { JournalUpdates } from "../../../src/history/read-updates.ts";
import { tapeUpdates } from "../../../src/history/update-stream.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, QUICK_LEASE_MS } from "../../support/limits.ts";

const SUBJECTS = new JobSubjects("j");
const SHARDS = 2;
const BEGINNING = { generation: 0, seq: 0 };
const END = { generation: 1, seq: Number.MAX_SAFE_INTEGER };

let job: TestJob | undefined;
let connection: NatsConnection | undefined;

afterEach(async () => {
  await connection?.close();
  await job?.remove();
});

async function begin(options: Parameters<typeof TestJob.start>[0] = {}): Promise<TestJob> {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: SHARDS, ...options });
  connection = await connect({ servers: job.broker.url });
  return job;
}

function pserver(...args: string[]): Promise<Finished> {
  const environment = { PSERVER_URL: job?.broker.url ?? "" };
  return run(args, { environment });
}

async function initialize(client: Client): Promise<void> {
  await client.beginInit();
  await client.initParams(
    { big: new Float32Array(20_000), small: new Float32Array(5), other: new Float64Array(5) },
    { learningRate: 0.1 },
  );
  await client.finishInit();
}

/** What a tape keeps of an update: norms are rounded to float32, and times cut off at microseconds. */
function asKept(event: UpdateEvent): object {
  const { block, ...rest } = event;
  const timeMs = Math.floor(event.timeMs * 1000) / 1000;
  if (block === undefined) return { ...rest, timeMs };
  const { statistics, ...change } = block;
  const { norm = 0, mean = 0, ...exact } = statistics ?? {};
  return { ...rest, timeMs, ...change, ...exact, norm: Math.fround(norm), mean: Math.fround(mean) };
}

/** The updates of a shard up to its last record, from the tape alone and from the journal alone. */
async function bothOf(url: string, shard: number): Promise<{ tape: object[]; journal: object[] }> {
  const place = {
    kind: "broker",
    connection: { servers: [url], timeoutMs: HANG_MS },
    job: "j",
  } as const;
  const source = await openHistory(place);
  const { signal } = new AbortController();
  try {
    const history = source.shard(shard);
    const tape: object[] = [];
    for await (const part of tapeUpdates(history, BEGINNING, END, 0, signal)) {
      tape.push(...part.events.map(asKept));
    }
    const journal: object[] = [];
    for await (const events of new JournalUpdates(history, SUBJECTS, signal).between(
      BEGINNING,
      END,
    )) {
      journal.push(...events.map(asKept));
    }
    return { tape, journal };
  } finally {
    await source.close();
  }
}

test("killed hosts leave out no line and double none", async () => {
  const { broker } = await begin();
  if (job === undefined) throw new Error("expected a job");
  // Snapshots are frequent, so that owners crash around them; the journal keeps all.
  const options = { snapshotBytes: 200_000, retainBytes: 1024 ** 3, leaseMs: 1_000 };
  await job.host(options);
  const client = await job.trainer("t");
  await initialize(client);
  let done = false;
  let round = 0;
  const training = (async (): Promise<void> => {
    for (; !done; round++) {
      await client.sendGrads({
        big: new Float32Array(20_000).fill(round),
        small: new Float32Array(5).fill(round),
        other: new Float64Array(5).fill(round),
      });
      await client.note({ round });
    }
  })();
  for (let crash = 0; crash < 3; crash++) {
    const until = round + 7 + 4 * crash;
    while (round < until) await new Promise((resolve) => setImmediate(resolve));
    await job.hosts.at(-1)?.kill();
    await job.host(options);
  }
  const until = round + 5;
  while (round < until) await new Promise((resolve) => setImmediate(resolve));
  done = true;
  await training;
  // Snapshots cover all; they wait for the tape.
  for (let shard = 0; shard < SHARDS; shard++) {
    await expect
      .poll(async () => (await bothOf(broker.url, shard)).tape.length, {
        timeout: HANG_MS,
        interval: 500,
      })
      .toBe((await bothOf(broker.url, shard)).journal.length);
    const { tape, journal } = await bothOf(broker.url, shard);
    expect(journal.length).toBeGreaterThan(20);
    expect(tape).toEqual(journal);
  }
});

test("log reaches back to the first update of a trimmed journal", async () => {
  await begin({ snapshotBytes: 1_000_000, retainBytes: 1_000_000 });
  await job?.host();
  const client = await job?.trainer("t");
  if (client === undefined || connection === undefined) throw new Error("expected a trainer");
  await initialize(client);
  const manager = await jetstreamManager(connection);
  let rounds = 0;
  const isTrimmed = async (): Promise<boolean> => {
    const streams = [0, 1].map((shard) => SUBJECTS.journalStream(shard, 1));
    const infos = await Promise.all(streams.map((stream) => manager.streams.info(stream)));
    return infos.some(({ state }) => state.first_seq > 20);
  };
  while (!(await isTrimmed())) {
    for (let i = 0; i < 20; i++, rounds++) {
      await client.sendGrads({ big: new Float32Array(20_000).fill(rounds) });
    }
  }
  const { stdout } = await pserver("log", "--job", "j", "--json", "--param", "big");
  // The tape keeps norms as float32; a line that is not on it yet has more digits.
  const parse = (text: string) =>
    text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { max: number; op: string; norm: number })
      .map((line) => ({ ...line, norm: Math.fround(line.norm) }));
  const lines = parse(stdout);
  expect(lines[0]).toMatchObject({ op: "init" });
  expect(lines.slice(1).map(({ max }) => max)).toEqual(Array.from({ length: rounds }, (_, i) => i));

  const since = await pserver("log", "--job", "j", "--json", "--param", "big", "--since", "1h ago");
  expect(parse(since.stdout)).toEqual(lines);
});

test("a tape that cannot be made keeps no job from being served", async () => {
  await begin();
  if (job === undefined || connection === undefined) throw new Error("expected a job");
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: "other", subjects: [SUBJECTS.allTapes()] });
  const host = await job.host();
  expect(host.lines.find(({ type }) => type === "error")?.error?.message).toContain(
    "tape of job j",
  );
  const client = await job.trainer("t");
  await initialize(client);
  await client.sendGrads({ small: new Float32Array(5).fill(10) });
  expect((await client.pullFull("small")).data).toEqual(new Float32Array(5).fill(-1));
});

test("a job without a tape has no stream for one; that of another goes with its job", async () => {
  await begin();
  if (job === undefined || connection === undefined) throw new Error("expected a job");
  const manager = await jetstreamManager(connection);
  const streams = async (): Promise<string[]> => {
    const names: string[] = [];
    for await (const name of manager.streams.names()) names.push(name);
    return names.sort();
  };
  await job.host({ tape: false });
  await initialize(await job.trainer("t"));
  expect(await streams()).not.toContain("PS_j_TAPE");
  const { stdout } = await pserver("log", "--job", "j", "--json");
  expect(stdout.trim().split("\n").length).toBeGreaterThan(3);
  const differs = job.spawnHost({ tape: true });
  await differs.exited;
  expect(differs.lines.at(-1)?.error?.code).toBe("JOB_EXISTS");

  const other = job.spawnHost({ job: "k" });
  await other.line(({ type }) => type === "started");
  expect(await streams()).toContain("PS_k_TAPE");
  await other.kill();
  await expect
    .poll(async () => (await pserver("remove", "k", "--yes")).code, {
      timeout: HANG_MS,
      interval: 500,
    })
    .toBe(0);
  expect((await streams()).filter((name) => name.includes("_k"))).toEqual([]);
});
