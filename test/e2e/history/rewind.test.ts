// Proves that a job goes back in place, while hosts serve it and trainers push: the values are those of the
// point, trainers are told what was given up and continue, and the abandoned history stays readable and can
// be gone back to. A rewind that was killed is shown, and is completed or dropped, never executed in place of another
// one; a run that was held up meanwhile changes nothing any more. A run that is killed is a process of its own.
import { PassThrough } from "node:stream";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import type { HostOptions } from "../../../src/actors/host/host.ts";
import type { Client, ShardFallback } from "../../../src/client/index.ts";
import { rebuildFrom } from "../../../src/history/continue/fork-job.ts";
import { rewindJob } from "../../../src/history/continue/rewind-job.ts";
import { openHistory } from "../../../src/history/open-journal.ts";
import type { Cut } from "../../../src/history/points.ts";
import { hashName, JobSubjects, PserverError } from "../../../src/protocol/index.ts";
import { openConnection } from "../../../src/transport/connection.ts";
import { fullConfig } from "../../actors/fold/optimizer-configs.ts";
import { run } from "../../cli/spawn-command.ts";
import { heldConnection } from "../../support/held-connection.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { testProgram } from "../../support/test-program.ts";
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

  test("that has no room for the states says so, and is completed when there is some", async () => {
    const client = await start();
    await raise(client, 5);
    await client.note({ mark: "then" });
    await raise(client, 7);
    const connection = await connect({ servers: job.broker.url });
    onTestFinished(() => connection.close());
    const { streams } = await jetstreamManager(connection);
    const { config, state } = await streams.info("PS_j_SNAPSHOT");
    await streams.update("PS_j_SNAPSHOT", { max_bytes: state.bytes + 100 });
    const rewind = (...args: readonly string[]): ReturnType<typeof run> =>
      run(["rewind", "--url", job.broker.url, "--job", "j", "--yes", ...args]);
    const { code, stderr } = await rewind("--to", "mark:then");
    expect(code).toBe(1);
    expect(stderr).toContain("JOURNAL_FULL");
    expect(stderr).toContain("the stream PS_j_SNAPSHOT has no room for those to go back to");
    expect(stderr).toMatch(/hint: .*--max-bytes/);
    expect(await counts(client)).toEqual([12, 12]);
    await streams.update("PS_j_SNAPSHOT", { max_bytes: config.max_bytes });
    expect(await rewind("--complete")).toMatchObject({ code: 0 });
    expect(await counts(client)).toEqual([5, 5]);
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

/** Runs the command on the test's job. */
function rewind(...args: string[]): ReturnType<typeof run> {
  return run(["rewind", "--job", job.job, "--url", job.broker.url, ...args]);
}

/** The rewind that `pserver status` shows. */
async function shownRewind(): Promise<unknown> {
  const { stdout } = await run(["status", "--json", "--job", job.job, "--url", job.broker.url]);
  return (JSON.parse(stdout) as { readonly rewind?: unknown }).rewind;
}

describe("an interrupted rewind", () => {
  test("before its plan is noted has changed nothing", async () => {
    const client = await start();
    await raise(client, 2);
    const at = await cutNow(job);
    await raise(client, 2);
    expect(await branch(job, { at, killAt: "rebuilt" })).toBeUndefined();
    expect(await shownRewind()).toBeUndefined();
    expect(await branch(job, { at })).toMatchObject({ completed: false, at });
    expect(await counts(client)).toEqual([2, 2]);
  });

  test.each([
    ["begun", []],
    ["shard 0", [0]],
    ["parameters", [0, 1]],
  ] as const)(
    "after %s is shown, refuses another point, and is completed",
    async (killAt, goneBack) => {
      const client = await start();
      await raise(client, 2);
      const at = await cutNow(job);
      await raise(client, 2);
      const later = await cutNow(job);
      expect(await branch(job, { at, killAt })).toBeUndefined();
      const shown = await shownRewind();
      expect(shown).toMatchObject({ at, goneBack });
      const before = await counts(client);
      await expect(branch(job, { at: later })).rejects.toThrow("UNFINISHED");
      expect(await counts(client)).toEqual(before);
      expect(await shownRewind()).toEqual(shown);
      expect(await branch(job, {})).toMatchObject({ completed: true, at });
      expect(await counts(client)).toEqual([2, 2]);
      expect(await shownRewind()).toBeUndefined();
      await raise(client, 1);
      expect(await counts(client)).toEqual([3, 3]);
    },
  );

  test("takes a shard back that was recovered meanwhile, and no other one again", async () => {
    const client = await start();
    await raise(client, 2);
    const at = await cutNow(job);
    await raise(client, 2);
    expect(await branch(job, { at, killAt: "shard 0" })).toBeUndefined();
    await host.stop();
    host = await job.host();
    await raise(await job.trainer("b"), 2);
    await host.stop();
    // The last record of both journals is lost: shard 0 has gone back by then, shard 1 has not.
    const connection = await connect({ servers: job.broker.url });
    const { streams } = await jetstreamManager(connection);
    for (const [shard, generation] of [
      [0, 2],
      [1, 1],
    ] as const) {
      const journal = new JobSubjects(job.job).journalStream(shard, generation);
      await streams.deleteMessage(journal, (await streams.info(journal)).state.last_seq);
    }
    await connection.close();
    const url = ["--job", job.job, "--url", job.broker.url];
    expect(await run(["recover", ...url, "--from", "prefix", "--yes"])).toMatchObject({ code: 0 });
    host = await job.host();
    const [first = 0, second = 0] = await counts(await job.trainer("c"));
    expect(second).toBeGreaterThan(2);
    expect(await branch(job, {})).toMatchObject({
      completed: true,
      shards: [
        { shard: 0, generation: 3, fallbacks: [] },
        { shard: 1, generation: 3 },
      ],
    });
    expect(await counts(await job.trainer("d"))).toEqual([first, 2]);
  });

  test("of journals in memory is completed, though what its first shard left is gone", async () => {
    const client = await start({ journal: "memory" });
    await raise(client, 2);
    const at = await cutNow(job);
    await raise(client, 2);
    expect(await branch(job, { at, killAt: "shard 0" })).toBeUndefined();
    expect(await branch(job, {})).toMatchObject({ completed: true });
    expect(await counts(await job.trainer("b"))).toEqual([2, 2]);
  });

  test("whose point is trimmed can be dropped, and another one begins", async () => {
    const client = await start({ snapshotBytes: 500, retainBytes: 1 });
    await raise(client, 1);
    const at = await cutNow(job);
    expect(await branch(job, { at, killAt: "begun" })).toBeUndefined();
    const trimmed = async (): Promise<boolean> => {
      const oldest = await cutAt(job, { kind: "start" });
      return oldest.every(({ seq }, shard) => seq > (at[shard]?.seq ?? 0));
    };
    while (!(await trimmed())) await raise(client, 5);
    const refused = await rewind("--complete", "--yes");
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/HISTORY_LOST: [^\n]*pserver rewind --job j --drop/);
    const dropped = await rewind("--drop");
    expect(dropped).toMatchObject({ code: 0, stdout: "" });
    expect(dropped.stderr).toContain("job j is as if it had not begun");
    expect(await shownRewind()).toBeUndefined();
    const now = await cutNow(job);
    const values = await counts(client);
    expect(await branch(job, { at: now })).toMatchObject({ completed: false });
    expect(await counts(client)).toEqual(values);
  });

  test("that is dropped leaves shards of two times, which another rewind puts together", async () => {
    const client = await start();
    await raise(client, 2);
    const at = await cutNow(job);
    await raise(client, 2);
    expect(await branch(job, { at, killAt: "shard 0" })).toBeUndefined();
    const url = ["--job", job.job, "--url", job.broker.url];
    const checked = await run(["doctor", "--json", ...url]);
    const { checks } = JSON.parse(checked.stdout) as { readonly checks: readonly unknown[] };
    expect(checks).toContainEqual({
      ...{ name: "rewind", status: "warn" },
      message: expect.stringMatching(
        /^\S+, begun \S+, to the cut 0:\d+ 1:\d+, is not complete: shard 0 of 2/,
      ),
      advice: expect.stringContaining("pserver rewind --job j --complete"),
    });
    const dropped = await rewind("--drop", "--json");
    expect(JSON.parse(dropped.stdout)).toMatchObject({
      job: "j",
      at,
      goneBack: [0],
      unchanged: [1],
    });
    const left = await counts(await job.trainer("b"));
    expect(left.toSorted()).toEqual([2, 4]);
    // The owners go on, and make snapshots.
    await raise(client, 1);
    const snapshots = await run(["status", ...url]);
    expect(snapshots.stdout).not.toContain("rewind");
    expect(await branch(job, { at })).toMatchObject({ completed: false });
    expect(await counts(await job.trainer("c"))).toEqual([2, 2]);
    expect(await rewind("--drop")).toMatchObject({ code: 3 });
    expect(await rewind("--complete")).toMatchObject({ code: 3 });
    expect(host.hasEnded).toBe(false);
  });
});

describe("a rewind that is held up while another run goes on with it", () => {
  /** After which stage, and at its how many-th look at the bucket from then on. */
  const PLACES = [
    ["begun", 1],
    ["shard 0", 1],
    ["shard 1", 1],
    ["shard 1", 2],
    ["shard 1", 3],
  ] as const;

  async function heldUp(
    [after, look]: readonly [after: string, look: number],
    at: Cut,
    meanwhile: () => Promise<void>,
  ): Promise<unknown> {
    const reach = { servers: [job.broker.url], timeoutMs: HANG_MS };
    const source = await openHistory({ kind: "broker", connection: reach, job: job.job });
    const inboxPrefix = new JobSubjects(job.job).hostInbox("slow");
    const connection = await openConnection(reach, { name: "slow", inboxPrefix });
    const { signal } = new AbortController();
    let stage = "";
    let looks = 0;
    const held = heldConnection(connection, async (subject) => {
      if (stage !== after || subject !== `$JS.API.STREAM.MSG.GET.KV_PS_${job.job}`) return;
      if (++looks === look) await meanwhile();
    });
    try {
      await rewindJob({
        ...{ connection: held, host: "slow", job: job.job, at, signal },
        rebuild: rebuildFrom(source, signal),
        onStage: (done) => {
          stage = done;
        },
      });
      return undefined;
    } catch (error) {
      return error;
    } finally {
      expect(looks).toBeGreaterThanOrEqual(look);
      await Promise.all([source.close(), connection.close()]);
    }
  }

  test.each(PLACES)(
    "after %s, at look %i, erases nothing that was created since",
    async (...place) => {
      const client = await start();
      await raise(client, 2);
      const at = await cutNow(job);
      await client.createIfNotAlreadyCreated("late", Float32Array.of(1));
      const created = Array.from({ length: 5 }, (_, i) => `new-${i}`);
      const error = await heldUp(place, at, async () => {
        expect(await branch(job, {})).toMatchObject({ completed: true, gone: ["late"] });
        const fresh = await job.trainer("b");
        for (const name of [...created, "late"]) {
          await fresh.createIfNotAlreadyCreated(name, Float32Array.of(1));
          await fresh.pushFull(name, Float32Array.of(5), 1, 1);
        }
        await raise(fresh, 1);
      });
      expect(error).toMatchObject({ code: "BUSY" });
      const last = await job.trainer("c");
      for (const name of [...created, "late"]) expect((await last.pullFull(name)).data[0]).toBe(6);
      expect(await counts(last)).toEqual([3, 3]);
      expect(await shownRewind()).toBeUndefined();
    },
  );

  test.each([
    ["begun", 1],
    ["shard 0", 1],
  ] as const)(
    "after %s, at look %i, changes nothing once its plan is dropped",
    async (...place) => {
      const client = await start();
      await raise(client, 2);
      const at = await cutNow(job);
      await raise(client, 2);
      const error = await heldUp(place, at, async () => {
        expect(await rewind("--drop")).toMatchObject({ code: 0 });
      });
      expect(error).toMatchObject({ code: "BUSY" });
      const expected = place[0] === "begun" ? [4, 4] : [2, 4];
      expect((await counts(await job.trainer("b"))).toSorted()).toEqual(expected);
    },
  );
});

describe("the command", () => {
  test("refuses another point while a rewind is not complete, and says how to go on", async () => {
    const client = await start();
    await raise(client, 2);
    const [first] = await cutNow(job);
    await raise(client, 2);
    const at = await cutNow(job);
    await raise(client, 2);
    await branch(job, { at, killAt: "begun" });
    const refused = await rewind("--to", `0:${first?.seq}`, "--yes");
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /UNFINISHED: job j: the rewind \S+ that began at .*no shard has gone back/,
    );
    expect(refused.stderr).toContain('"pserver rewind --job j --complete"');
    expect(refused.stderr).toContain('"pserver rewind --job j --drop"');
    expect(await rewind("--complete", "--drop", "--yes")).toMatchObject({ code: 3 });
    expect(await rewind("--complete", "--yes")).toMatchObject({ code: 0 });
    expect(await counts(client)).toEqual([4, 4]);
  });

  test("that is interrupted once it has begun says how to go on", async () => {
    const client = await start();
    await raise(client, 2);
    const [first] = await cutNow(job);
    await raise(client, 2);
    const interrupt = new AbortController();
    const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    let rebuilding = NAMES.length;
    // Without progress there is nothing to be rebuilt any more: next the plan is noted.
    const tellStarter = async (message: object): Promise<void> => {
      if (!("progress" in message) || message.progress !== "") return;
      rebuilding -= 1;
      if (rebuilding === 0) interrupt.abort();
    };
    const { runCli }: typeof import("../programs/run-cli.ts") = await import(
      testProgram("run-cli")
    );
    const place = ["--job", job.job, "--url", job.broker.url];
    const code = await runCli(["rewind", ...place, "--to", `0:${first?.seq}`, "--yes"], {
      ...{ stdin, stdout, stderr, environment: {}, signal: interrupt.signal, tellStarter },
    });
    expect(code).not.toBe(0);
    expect(String(stderr.read())).toContain(
      'is not complete: complete it with "pserver rewind --job j --complete", or drop it',
    );
    expect(await shownRewind()).toMatchObject({ goneBack: [] });
    expect(await rewind("--complete", "--yes")).toMatchObject({ code: 0 });
    expect((await counts(client))[0]).toBe(2);
  });

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
    const tried = await rewind("--to", to, "--dry-run");
    expect([tried.code, tried.stderr]).toEqual([
      0,
      expect.stringMatching(/job j would go back, and give up \d+ records\n$/),
    ]);
    expect(await shownRewind()).toBeUndefined();
    expect(await counts(client)).toEqual([4, 4]);
    expect(await rewind("--drop", "--dry-run")).toMatchObject({ code: 3 });
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
