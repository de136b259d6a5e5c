// Proves that a fork goes on as its job would have gone on: its values are those that were pulled at the point,
// and the same gradients lead to the same values, so optimizer slots, versions and schedules are there, too. The
// job itself goes on untouched. Half a fork is served by nobody. A run that another one has overtaken neither writes
// into the job that is complete and trained, nor removes it. The program is a process of its own, so that it
// can be killed at each stage.
import { afterEach, describe, expect, test } from "vitest";
import type { HostOptions } from "../../../src/actors/host/host.ts";
import type { Client } from "../../../src/client/index.ts";
import { forkJob, rebuildFrom } from "../../../src/history/continue/fork-job.ts";
import { openHistory } from "../../../src/history/open-journal.ts";
import type { Cut } from "../../../src/history/points.ts";
import { JobSubjects, type Position, PserverError } from "../../../src/protocol/index.ts";
import { openConnection } from "../../../src/transport/connection.ts";
import { run } from "../../cli/spawn-command.ts";
import { heldConnection } from "../../support/held-connection.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { branch, cutNow } from "./forks.ts";
import { initialize, NAMES, train, values } from "./optimizer-training.ts";

let job: TestJob;

afterEach(() => job.remove());

async function start(options: Partial<HostOptions> = {}): Promise<Client> {
  job = await TestJob.start({ shards: 2, ...options });
  await job.host();
  return await job.trainer("a");
}

/** A host of a fork, and a trainer in it. */
async function joined(as: string): Promise<{ host: TestHost; client: Client }> {
  const host = await job.host({ job: as });
  return { host, client: await job.trainer("b", { job: as }) };
}

describe("a fork", () => {
  test("continues from the point with every optimizer as its job did", async () => {
    const client = await start();
    await initialize(client);
    await train(client, 0, 6);
    const then = await values(client);
    const at = await cutNow(job);
    await train(client, 6, 12);
    const later = await values(client);

    const made = await branch(job, { at, as: "other" });
    expect(made).toMatchObject({ job: "other", parameters: NAMES.length, unfinished: [] });
    const { client: forked } = await joined("other");
    expect(await forked.beginInit()).toBe(false);
    expect(await values(forked)).toEqual(then);
    expect(await values(client)).toEqual(later);
    await train(forked, 6, 12);
    expect(await values(forked)).toEqual(later);
    await train(client, 12, 13);
    expect(await values(client)).not.toEqual(later);
    expect(await values(forked)).toEqual(later);
  });

  test("of steps has no step that was open, and waits for its own trainers", async () => {
    const a = await start({ synchronization: { mode: "sync", trainers: 2 } });
    const b = await job.trainer("b");
    await a.beginInit();
    await a.initParam("w", Float64Array.of(0), { learningRate: 1 });
    await a.finishInit();
    const w = (gradient: number): { w: Float64Array } => ({ w: Float64Array.of(gradient) });
    await Promise.all([a.sendGrads(w(2)), b.sendGrads(w(4))]);
    expect((await a.pullFull("w")).data[0]).toBe(-3);
    await a.sendGrads(w(100), { endStep: false });
    const at = await cutNow(job);

    expect(await branch(job, { at, as: "other" })).toMatchObject({ openBlocks: 1 });
    await job.host({ job: "other" });
    const [c, d] = await Promise.all(["c", "d"].map((id) => job.trainer(id, { job: "other" })));
    if (c === undefined || d === undefined) throw new Error("expected two trainers");
    expect((await c.pullFull("w")).data[0]).toBe(-3);
    await Promise.all([c.sendGrads(w(1)), d.sendGrads(w(3))]);
    expect((await c.pullFull("w")).data[0]).toBe(-5);
    expect(c.stepsEnded).toBe(1);

    await Promise.all([a.endStep(), b.sendGrads(w(0))]);
    expect((await a.pullFull("w")).data[0]).toBe(-53);
  });

  test("of a job with journals in memory keeps them there", async () => {
    const client = await start({ journal: "memory" });
    await client.createIfNotAlreadyCreated("w", Float32Array.of(1));
    await branch(job, { at: await cutNow(job), as: "other" });
    const { client: forked } = await joined("other");
    await forked.pushFull("w", Float32Array.of(2), 1, 1);
    expect((await forked.pullFull("w")).data[0]).toBe(3);
    const jobs = await run(["jobs", "--json", "--url", job.broker.url]);
    expect(jobs.stdout).toMatch(/"job":"other"[^}]*"journal":"memory"/);
  });

  test("of a point in the middle of an initialization has what was whole, and takes the rest", async () => {
    const client = await start();
    await client.beginInit();
    await client.initParam("whole", Float32Array.of(1));
    const at = await cutNow(job);
    await client.initParam("late", Float32Array.of(2));
    await client.finishInit();
    await branch(job, { at, as: "other" });
    const { client: forked } = await joined("other");
    expect((await forked.pullFull("whole")).data[0]).toBe(1);
    expect((await forked.listParams()).map(({ name }) => name)).toEqual(["whole"]);
    await forked.createIfNotAlreadyCreated("late", Float32Array.of(3));
    expect((await forked.pullFull("late")).data[0]).toBe(3);
  });
});

describe("an interrupted fork", () => {
  for (const killAt of ["begun", "shard 0", "parameters"]) {
    test(`after "${killAt}" is joined by no host, and is completed by another one`, async () => {
      const client = await start();
      await client.beginInit();
      for (const name of ["v", "w", "x"]) await client.initParam(name, Float32Array.of(1));
      await client.finishInit();
      const at = await cutNow(job);
      expect(await branch(job, { at, as: "other", killAt })).toBeUndefined();
      const refused = job.spawnHost({ job: "other" });
      const line = await refused.line(({ error }) => error !== undefined);
      expect(line.error).toMatchObject({ code: "JOB_EXISTS" });
      const jobs = await run(["jobs", "--json", "--url", job.broker.url]);
      expect(jobs.stdout).toContain('"state":"incomplete"');
      expect(await branch(job, { at, as: "other" })).toMatchObject({ parameters: 3 });
      const { client: forked } = await joined("other");
      expect((await forked.pullFull("w")).data[0]).toBe(1);
    });
  }

  test("is removed by pserver remove", async () => {
    const client = await start();
    await client.createIfNotAlreadyCreated("w", Float32Array.of(1));
    const at = await cutNow(job);
    await branch(job, { at, as: "other", killAt: "shard 0" });
    const removed = await run(["remove", "other", "--yes", "--url", job.broker.url]);
    expect(removed).toMatchObject({ code: 0 });
    await job.host({ job: "other" });
    const fresh = await job.trainer("b", { job: "other", timeoutMs: HANG_MS });
    expect(await fresh.listParams()).toEqual([]);
  });
});

describe("a fork that another run overtakes", () => {
  /** How it is held up, and how it ends without the other run. */
  interface Overtaken {
    /** After which stage; at its next look at the settings, which still are its own. */
    readonly after: "begun" | "shard 0" | "shard 1";
    readonly fails: boolean;
    /** What others do meanwhile. */
    readonly meanwhile: (later: Cut) => Promise<void>;
  }

  /** Makes a job whose last values of v and w are 2, and forks it at the point where they were 1. */
  async function overtaken({ after, fails, meanwhile }: Overtaken): Promise<unknown> {
    const client = await start();
    for (const name of ["v", "w"]) {
      await client.createIfNotAlreadyCreated(name, Float32Array.of(1));
    }
    const at = await cutNow(job);
    for (const name of ["v", "w"]) await client.pushFull(name, Float32Array.of(1), 1, 1);
    const later = await cutNow(job);
    const reach = { servers: [job.broker.url], timeoutMs: HANG_MS };
    const source = await openHistory({ kind: "broker", connection: reach, job: job.job });
    const inboxPrefix = new JobSubjects("other").hostInbox("slow");
    const connection = await openConnection(reach, { name: "slow", inboxPrefix });
    const { signal } = new AbortController();
    const rebuild = rebuildFrom(source, signal);
    let stage = "";
    const held = heldConnection(connection, async (subject) => {
      if (stage !== after || subject !== "$JS.API.STREAM.MSG.GET.KV_PS_other") return;
      stage = "";
      await meanwhile(later);
      if (fails) throw new PserverError("IO", "the disk is gone");
    });
    try {
      await forkJob({
        ...{ connection: held, host: "slow", job: "other", of: source, known: {}, at, signal },
        shards: source.shards,
        makeShard: (shard) => rebuild(shard, at[shard] as Position),
        onStage: (done) => {
          stage = done;
        },
      });
      return undefined;
    } catch (error) {
      return error;
    } finally {
      await Promise.all([source.close(), connection.close()]);
    }
  }

  /** Another run completes the fork; its job is trained to 4, and no host runs then. */
  async function completeAndTrain(later: Cut): Promise<void> {
    await branch(job, { at: later, as: "other" });
    const { host, client } = await joined("other");
    for (const name of ["v", "w"]) await client.pushFull(name, Float32Array.of(2), 1, 1);
    await host.stop();
  }

  async function expectTrained(): Promise<void> {
    const { client } = await joined("other");
    for (const name of ["v", "w"]) expect((await client.pullFull(name)).data[0]).toBe(4);
  }

  const STAGES = ["begun", "shard 0", "shard 1"] as const;

  test.each(STAGES)(
    "after %s changes nothing of a job that is complete and trained",
    async (after) => {
      const error = await overtaken({ after, fails: false, meanwhile: completeAndTrain });
      expect(error).toMatchObject({ code: "BUSY" });
      await expectTrained();
    },
  );

  test("does not remove it if it fails", async () => {
    const error = await overtaken({ after: "shard 0", fails: true, meanwhile: completeAndTrain });
    expect(error).toMatchObject({ code: "IO" });
    await expectTrained();
  });

  test("adds nothing to a job that is made under the name after its own was removed", async () => {
    const error = await overtaken({
      ...{ after: "shard 0", fails: false },
      meanwhile: async (later) => {
        const removed = await run(["remove", "other", "--yes", "--url", job.broker.url]);
        expect(removed).toMatchObject({ code: 0 });
        await completeAndTrain(later);
      },
    });
    expect(error).toMatchObject({ code: "BUSY" });
    await expectTrained();
  });
});

describe("a fork is refused", () => {
  test("where the name is taken, and where nothing was initialized; nothing is left", async () => {
    const client = await start();
    const at = await cutNow(job);
    await expect(branch(job, { at, as: "other" })).rejects.toThrow("EMPTY");
    await client.createIfNotAlreadyCreated("w", Float32Array.of(1));
    const later = await cutNow(job);
    await expect(branch(job, { at: later, as: job.job })).rejects.toThrow("JOB_EXISTS");
    const jobs = await run(["jobs", "--json", "--url", job.broker.url]);
    expect(jobs.stdout).not.toContain("other");
    expect((await client.pullFull("w")).data[0]).toBe(1);
  });
});

test("the command says what it made, and from which point", async () => {
  const client = await start();
  await client.createIfNotAlreadyCreated("w", Float32Array.of(1, 2));
  const url = ["--url", job.broker.url];
  const made = await run(["fork", job.job, "--at", "now", ...url]);
  expect(made).toMatchObject({ code: 0, stdout: "" });
  expect(made.stderr.split("\n")).toEqual([
    expect.stringMatching(/^point: now, the cut 0:\d+ 1:\d+$/),
    "made job j-fork: 1 parameter, 8 B; serve it with: pserver host --job j-fork",
    "",
  ]);
  const again = await run([
    "fork",
    "--job",
    job.job,
    "--at",
    "now",
    "--as",
    "j2",
    "--json",
    ...url,
  ]);
  expect(JSON.parse(again.stdout)).toMatchObject({
    ...{ job: "j2", of: "j", parameters: 1, bytes: 8, unfinished: [], openBlocks: 0 },
    point: { point: "now", cut: [{ shard: 0 }, { shard: 1 }] },
  });
  const taken = await run(["fork", "j", "--at", "now", ...url]);
  expect(taken).toMatchObject({ code: 3 });
  expect(taken.stderr).toContain("JOB_EXISTS: job j-fork exists: choose another name with --as");
});
