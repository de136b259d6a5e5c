// Proves that a job goes back in place, while hosts serve it and trainers push: the values are those of the
// point, trainers are told what was given up and continue, and the abandoned history stays readable and can
// be gone back to. A rewind that was killed is completed by the next one. The program is a process of its
// own.
import { afterEach, describe, expect, test } from "vitest";
import type { HostOptions } from "../../../src/actors/host/host.ts";
import type { Client, ShardFallback } from "../../../src/client/index.ts";
import { hashName, PserverError } from "../../../src/protocol/index.ts";
import { fullConfig } from "../../actors/fold/optimizer-configs.ts";
import { run } from "../../cli/spawn-command.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { branch, cutAt, cutNow } from "./forks.ts";

let job: TestJob;
let host: TestHost;
/** What the trainer was told. */
let told: ShardFallback[];

afterEach(() => job.remove());

/** A counter on each of two shards: the names differ in their hash. */
const NAMES = [0, 1].map((shard) => {
  const names = Array.from({ length: 100 }, (_, i) => `count-${i}`);
  return names.find((name) => hashName(name) % 2 === shard) ?? "";
});

async function start(options: Partial<HostOptions> = {}): Promise<Client> {
  job = await TestJob.start({ shards: 2, ...options });
  host = await job.host();
  told = [];
  const client = await job.trainer("a", { onFallback: (fallback) => told.push(fallback) });
  // One by one: small parameters of one initialization are placed together.
  for (const name of NAMES) {
    await client.createIfNotAlreadyCreated(name, BigInt64Array.of(0n), { optimizer: "none" });
  }
  return client;
}

/** Adds one to each counter, so many times. */
async function raise(client: Client, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    for (const name of NAMES) await client.pushFull(name, BigInt64Array.of(1n), 1, 1);
  }
}

/** An update that was on its way while its journal was left is given up, and its call says so. */
function unlessGivenUp(error: unknown): void {
  if (!(error instanceof PserverError) || error.code !== "JOURNAL_REPLACED") throw error;
}

async function counts(client: Client): Promise<number[]> {
  const parameters = await client.getParams(NAMES);
  return parameters.map(({ data }) => Number(data[0]));
}

describe("a rewind", () => {
  test("restores the values of the point, and trainers are told and continue", async () => {
    const client = await start();
    await raise(client, 5);
    const at = await cutNow(job);
    await raise(client, 7);
    expect(await counts(client)).toEqual([12, 12]);
    const rewound = await branch(job, { at });
    const served = [0, 1].map((shard) => ({ shard, generation: 2, seq: 0, served: true }));
    expect(rewound).toMatchObject({ completed: false, shards: served, gone: [] });
    expect(await counts(client)).toEqual([5, 5]);
    await raise(client, 1);
    expect(await counts(client)).toEqual([6, 6]);
    expect(told.map(({ shard }) => shard).sort()).toEqual([0, 1]);
    const fresh = await job.trainer("b");
    expect(await counts(fresh)).toEqual([6, 6]);
  });

  test("has the optimizer's state of the point: the same gradients lead to the same values again", async () => {
    const client = await start();
    await client.createIfNotAlreadyCreated("w", Float64Array.of(1, -2), fullConfig("adam"));
    const train = async (from: number, to: number): Promise<unknown> => {
      for (let i = from; i < to; i++) await client.sendGrads({ w: Float64Array.of(i, 1) });
      const [w] = await client.getParams(["w"]);
      return { version: w?.version, data: w?.data };
    };
    await train(0, 3);
    const at = await cutNow(job);
    const later = await train(3, 6);
    await branch(job, { at });
    expect(await train(3, 6)).toEqual(later);
  });

  test("while a trainer pushes gives up what came after the point, and nothing else", async () => {
    // The owner makes snapshots all the time, and with each one it removes what a rewind has stored.
    const client = await start({ snapshotBytes: 500 });
    await raise(client, 5);
    const at = await cutNow(job);
    let stopped = false;
    const pushing = (async () => {
      let pushed = 0;
      for (; !stopped; pushed++) await raise(client, 1).catch(unlessGivenUp);
      return pushed;
    })();
    await branch(job, { at });
    const [middle = 0] = await counts(await job.trainer("b"));
    stopped = true;
    const pushed = await pushing;
    const [now = 0] = await counts(client);
    expect(middle).toBeGreaterThanOrEqual(5);
    expect(now).toBeLessThanOrEqual(5 + pushed);
    await raise(client, 1);
    const [next = 0] = await counts(client);
    expect(next).toBe(now + 1);
    expect(host.hasEnded).toBe(false);
  });

  test("is followed by another one, to before it and back into the history that was left", async () => {
    const client = await start();
    await raise(client, 3);
    const early = await cutNow(job);
    await raise(client, 3);
    const late = await cutNow(job);
    await branch(job, { at: early });
    await raise(client, 1);
    expect(await counts(client)).toEqual([4, 4]);
    await branch(job, { at: late });
    expect(await counts(client)).toEqual([6, 6]);
    await raise(client, 1);
    expect(await counts(client)).toEqual([7, 7]);
    await host.stop();
    await job.host();
    expect(await counts(client)).toEqual([7, 7]);
  });

  test("leaves the times before it in the journal that was left, though the new one is empty", async () => {
    const client = await start();
    const at = await cutNow(job);
    await raise(client, 3);
    const late = await cutNow(job);
    const time = { kind: "time", timeMs: Date.now() } as const;
    await branch(job, { at });
    expect(await cutAt(job, time)).toEqual(late);
  });

  test("takes away parameters that were created later, and brings them back", async () => {
    const client = await start();
    await raise(client, 1);
    const before = await cutNow(job);
    await client.createIfNotAlreadyCreated("later", Float32Array.of(8));
    const after = await cutNow(job);
    expect(await branch(job, { at: before })).toMatchObject({ gone: ["later"] });
    const fresh = await job.trainer("b");
    expect((await fresh.listParams()).map(({ name }) => name).sort()).toEqual([...NAMES].sort());
    const made = await fresh.createIfNotAlreadyCreated("later", Float32Array.of(9));
    expect(made.data[0]).toBe(9);
    expect(await branch(job, { at: after })).toMatchObject({ gone: [] });
    expect((await fresh.pullFull("later")).data[0]).toBe(8);
  });

  test("of journals in memory gives up the history that was left", async () => {
    const client = await start({ journal: "memory" });
    await raise(client, 3);
    const at = await cutNow(job);
    await raise(client, 3);
    const late = await cutNow(job);
    await branch(job, { at });
    expect(await counts(client)).toEqual([3, 3]);
    await raise(client, 1);
    expect(await counts(client)).toEqual([4, 4]);
    await expect(branch(job, { at: late })).rejects.toThrow("HISTORY_LOST");
    expect(await counts(client)).toEqual([4, 4]);
  });

  test("of steps undoes them, and they close again", async () => {
    job = await TestJob.start({ shards: 2, synchronization: { mode: "sync", trainers: 2 } });
    await job.host();
    const onFallback = (): void => undefined;
    const [a, b] = await Promise.all(["a", "b"].map((id) => job.trainer(id, { onFallback })));
    if (a === undefined || b === undefined) throw new Error("expected two trainers");
    await a.beginInit();
    await a.initParam("w", Float64Array.of(0), { learningRate: 1 });
    await a.finishInit();
    const step = (): Promise<unknown> =>
      Promise.all([a, b].map((each) => each.sendGrads({ w: Float64Array.of(-1) })));
    const w = async (): Promise<unknown> => (await a.pullFull("w")).data[0];
    await step();
    expect(await w()).toBe(1);
    const at = await cutNow(job);
    await step();
    await step();
    expect(await w()).toBe(3);
    await branch(job, { at });
    await step();
    expect(await w()).toBe(2);
    await step();
    expect(await w()).toBe(3);
  });

  test("of a job that nobody serves holds for the hosts that come", async () => {
    const client = await start();
    await raise(client, 2);
    const at = await cutNow(job);
    await raise(client, 2);
    await host.stop();
    const shards = [0, 1].map((shard) => ({ shard, served: false }));
    expect(await branch(job, { at })).toMatchObject({ shards });
    await job.host();
    expect(await counts(client)).toEqual([2, 2]);
  });
});

describe("an interrupted rewind", () => {
  for (const killAt of ["rebuilt", "shard 0", "parameters"]) {
    test(`after "${killAt}" is completed by the next one`, async () => {
      const client = await start();
      await raise(client, 2);
      const at = await cutNow(job);
      await raise(client, 2);
      const later = await cutNow(job);
      expect(await branch(job, { at, killAt })).toBeUndefined();
      const begun = killAt !== "rebuilt";
      expect(await branch(job, { at: begun ? later : at })).toMatchObject({ completed: begun, at });
      expect(await counts(client)).toEqual([2, 2]);
      await raise(client, 1);
      expect(await counts(client)).toEqual([3, 3]);
    });
  }
});

describe("the command", () => {
  function rewind(...args: string[]): ReturnType<typeof run> {
    return run(["rewind", "--job", job.job, "--url", job.broker.url, ...args]);
  }

  test("asks for confirmation, says what it understood and what was given up", async () => {
    const client = await start();
    await raise(client, 2);
    const [first] = await cutNow(job);
    await raise(client, 2);
    const to = `0:${first?.seq}`;
    const unsure = await rewind("--to", to);
    expect(unsure.code).toBe(3);
    expect(unsure.stderr).toContain("give up");
    expect(unsure.stderr).toContain("--yes");
    expect(await counts(client)).toEqual([4, 4]);
    const { code, stderr } = await rewind("--to", to, "--yes");
    expect([code, stderr]).toEqual([0, expect.stringContaining(`the cut 0:${first?.seq}`)]);
    expect(stderr).toContain("shard 1 goes on under generation 2: records");
    expect((await counts(client))[0]).toBe(2);
    // The history of an element begins anew; where the rest of it is is said.
    const blame = await run(["blame", `${NAMES[0]}[0]`, "--job", job.job, "--url", job.broker.url]);
    expect(blame.stderr).toContain(
      "of generation 2 of shard 0; for those before it: --until 0:SEQ@1",
    );
  });
});
