// Proves that the user `admin` of `pserver auth init` may run every command of an operator, on a real broker with these
// users: each that reads, in a job that trains, then those that change it or make another one. A new job needs
// `pserver auth add --job` first, and is served with the same keys then; without that, fork and restore make nothing.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client/index.ts";
import { JobSubjects, jobOfStream } from "../../src/protocol/index.ts";
import { openConnection } from "../../src/transport/connection.ts";
import { run } from "../cli/spawn-command.ts";
import { TestAuth } from "../support/auth.ts";
import { type TestHost, TestJob } from "../support/host.ts";
import { HANG_MS } from "../support/limits.ts";
import { signalProcess } from "../support/signals.ts";

const JOB = "mnist";
const FORK = "mnist-2";
const RESTORED = "mnist-3";
const UPDATES = 3;

let home: string;
let auth: TestAuth;
let job: TestJob;
let client: Client;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-secure-commands-"));
  auth = await TestAuth.make(JOB, ["t"]);
  job = await TestJob.start({}, { authFile: auth.directory.configFile });
  await serve(JOB);
  client = await joined(JOB);
  await client.beginInit();
  await client.initParam("w", Float32Array.of(0, 0), { learningRate: 1 });
  await client.finishInit();
  for (let i = 1; i <= UPDATES; i++) {
    await client.sendGrads({ w: Float32Array.of(-1, -1) });
    await client.note({ mark: `m${i}`, loss: 1 / i });
  }
});

afterAll(async () => {
  await job?.remove();
  await auth?.remove();
  await rm(home, { recursive: true, force: true });
});

function serve(name: string): Promise<TestHost> {
  return job.host({ job: name, shards: 1, modelDirectory: home, ...auth.host([job.broker.url]) });
}

function joined(name: string): Promise<Client> {
  return job.trainer("t", { job: name, onFallback: () => undefined, ...auth.trainer("t") });
}

/** Runs a command as the admin; what it prints. */
async function command(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await attempt(...args);
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

function attempt(...args: readonly string[]): ReturnType<typeof run> {
  return run([...args, "--url", job.broker.url], { environment: auth.variables("admin") });
}

const OF_JOB = ["--job", JOB];
/** For commands that ask hosts: under this id the admin may. */
const ASKING = [...OF_JOB, "--trainer", "admin"];

describe("the admin reads with", () => {
  test.each([
    [["jobs", ...OF_JOB], JOB],
    [["status", ...ASKING], "ready"],
    [["ls", ...ASKING], "w"],
    [["get", "w", ...ASKING], "3"],
    [["log", ...OF_JOB], "grad"],
    [["show", "t/1:1", ...OF_JOB], "t/1:1"],
    [["find", "rejected", ...OF_JOB], ""],
    [["blame", "w[0]", ...OF_JOB], "t/1:1"],
    [["bisect", "--good", "mark:m1", "--nan", ...OF_JOB], ""],
    [["replay", "--to", "mark:m1", "--param", "w", ...OF_JOB], "1"],
    [["diff", "mark:m1", "now", "--param", "w", ...OF_JOB], "w"],
    [["what-if", "--learning-rate", "2", "--to", "now", ...OF_JOB], "w"],
    [["plot", "loss", ...OF_JOB], "loss"],
    [["verify", ...OF_JOB], ""],
    [["recover", ...OF_JOB], ""],
  ])("%j", async (args, says) => {
    const { stdout, stderr } = await attempt(...args);
    expect(stderr).not.toMatch(/DENIED|denied/);
    expect(stdout + stderr).toContain(says);
  });

  test("doctor, which finds that it may do everything but answer", async () => {
    const { checks } = JSON.parse(await command("doctor", ...ASKING, "--json"));
    const failed = checks.filter(({ status }: { status: string }) => status === "fail");
    expect(failed).toEqual([]);
    const skipped = checks.filter(({ status }: { status: string }) => status === "skip");
    expect(skipped.map(({ name }: { name: string }) => name)).not.toContain("JetStream");
  });
});

describe("the admin copies with", () => {
  test("archive, which follows the job, and checks", async () => {
    const archive = join(home, "archive");
    await command("archive", archive, "--once", ...OF_JOB);
    expect(
      await command("replay", "--to", "mark:m2", "--param", "w", "--archive", archive, ...OF_JOB),
    ).toContain("2");
    await command("archive", archive, "--check");
  });

  test("record", async () => {
    const file = join(home, "span.pserver");
    await command("record", file, "--from", "start", ...OF_JOB);
    expect(await command("log", "--from-file", file)).toContain("grad");
  });

  test("save and load", async () => {
    const file = join(home, "then.safetensors");
    await command("save", file, "--at", "mark:m1", "--with-optimizer", ...OF_JOB);
    await command("save", "now.safetensors", ...ASKING);
    await command("load", file, "--overwrite", ...ASKING);
    expect((await client.pullFull("w")).data).toEqual(Float32Array.of(1, 1));
    await command("load", join(home, "now.safetensors"), "--overwrite", ...ASKING);
    expect((await client.pullFull("w")).data).toEqual(Float32Array.of(3, 3));
  });
});

test("the admin takes the job back with rewind", async () => {
  await command("rewind", "--to", "mark:m2", "--yes", ...OF_JOB);
  expect((await client.pullFull("w", { timeoutMs: HANG_MS })).data).toEqual(Float32Array.of(2, 2));
});

/** The jobs of which the broker has streams. */
async function jobsWithStreams(): Promise<string[]> {
  const inboxPrefix = new JobSubjects(JOB).hostInbox("test");
  const settings = auth.as("admin", [job.broker.url]);
  const connection = await openConnection(settings, { name: "test", inboxPrefix });
  try {
    const manager = await jetstreamManager(connection);
    const jobs = new Set<string>();
    for await (const { config } of manager.streams.list()) jobs.add(jobOfStream(config.name) ?? "");
    return [...jobs].sort();
  } finally {
    await connection.close();
  }
}

describe("another job is made with", () => {
  const others: TestHost[] = [];

  test("backup, fork and restore, once the users are for that job, too", async () => {
    const backups = join(home, "backups");
    await command("backup", backups, ...OF_JOB);
    const making = [
      ["fork", JOB, "--at", "now", "--as", FORK],
      ["restore", backups, "--as", RESTORED],
    ];
    for (const args of making) {
      const { code, stderr } = await attempt(...args);
      expect([code === 0, stderr]).toEqual([false, expect.stringContaining("DENIED")]);
    }
    expect(await jobsWithStreams()).toEqual([JOB]);

    const added = ["auth", "add", auth.directory.path, "--job"];
    for (const name of [FORK, RESTORED]) expect((await run([...added, name])).code).toBe(0);
    signalProcess(job.broker.current.pid, "SIGHUP");
    await expect
      .poll(() => attempt("jobs", "--job", FORK), { timeout: HANG_MS })
      .toMatchObject({ code: 0 });
    for (const args of making) await command(...args);
    for (const name of [FORK, RESTORED]) {
      others.push(await serve(name));
      const trainer = await joined(name);
      expect((await trainer.pullFull("w")).data).toEqual(Float32Array.of(2, 2));
      await trainer.pushFull("w", Float32Array.of(1, 1), 1, 1);
      expect((await trainer.pullFull("w")).data).toEqual(Float32Array.of(3, 3));
    }
    // The job itself goes on.
    await client.sendGrads({ w: Float32Array.of(-1, -1) });
    expect((await client.pullFull("w")).data).toEqual(Float32Array.of(3, 3));
  });

  test("and goes with remove", async () => {
    await Promise.all(others.map((host) => host.stop()));
    for (const name of [FORK, RESTORED]) await command("remove", name, "--yes");
    expect(await jobsWithStreams()).toEqual([JOB]);
  });
});
