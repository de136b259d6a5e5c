// Proves that a model is moved with what its optimizers keep: by a fork into another number of shards, by a saved file
// that is loaded into a job of another number of shards, and by a backup that is restored at another broker. Each time
// the values are those of the moment that was named, while the job trains on, and the same gradients lead to the same
// values as in the job itself. Files that were cut off or changed, and jobs that exist, are refused, and nothing of a job
// is left behind.
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { initialize, NAMES, train, values } from "./optimizer-training.ts";

let job: TestJob;
let home: string;
let client: Client;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-move-"));
  job = await TestJob.start({ shards: 2 });
  await job.host();
  client = await job.trainer("a");
});

afterEach(async () => {
  await job.remove();
  await rm(home, { recursive: true, force: true });
});

/** Runs a command on the job's broker; what it prints as JSON. */
async function command(...args: readonly string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await run([...args, "--json", "--url", job.broker.url]);
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as Record<string, unknown>;
}

/** The error of a command that fails. */
async function refused(...args: readonly string[]): Promise<unknown> {
  const { code, stderr } = await run([...args, "--json", "--url", job.broker.url]);
  expect(code).not.toBe(0);
  const lines = stderr.trim().split("\n");
  return (JSON.parse(lines.at(-1) ?? "") as { error: unknown }).error;
}

/** A trainer of a job at a broker, and a host that serves the job. */
async function served(as: string, shards: number, at: TestJob = job): Promise<Client> {
  await at.host({ job: as, shards });
  return await at.trainer("b", { job: as });
}

interface Trained {
  /** Values when the copy was made. */
  readonly then: Digests;
  /** Values after more training. */
  readonly later: Digests;
}

type Digests = Awaited<ReturnType<typeof values>>;

function withoutVersions(digests: Digests): readonly string[] {
  return digests.map(({ name, hash }) => `${name} ${hash}`);
}

/** Trains, has `copy` made of the present moment, and trains on. */
async function trainAround(copy: () => Promise<unknown>): Promise<Trained> {
  await initialize(client);
  await train(client, 0, 6);
  const then = await values(client);
  await copy();
  await train(client, 6, 12);
  return { then, later: await values(client) };
}

/** Expects a copy to have the values of then, and to go on as its job did. */
async function expectToGoOn(copy: Client, { then, later }: Trained): Promise<void> {
  expect(await copy.beginInit()).toBe(false);
  expect(await values(copy)).toEqual(then);
  await train(copy, 6, 12);
  expect(await values(copy)).toEqual(later);
}

describe("a fork", () => {
  test.each([1, 5])("into %i shards goes on as its job did", async (shards) => {
    const trained = await trainAround(async () => {
      const made = await command("fork", "j", "--at", "now", "--as", "k", "--shards", `${shards}`);
      expect(made).toMatchObject({ job: "k", parameters: NAMES.length, unfinished: [] });
    });
    const copy = await served("k", shards);
    const [first] = await copy.listParams();
    expect(first?.layout.shards).toBe(shards);
    await expectToGoOn(copy, trained);
    // New parameters find numbers and places of their own.
    await copy.createIfNotAlreadyCreated("new", Float32Array.of(1, 2));
    expect((await copy.pullFull("new")).data).toEqual(Float32Array.of(1, 2));
    expect(await run(["verify", "--job", "k", "--url", job.broker.url])).toMatchObject({ code: 0 });
  });
});

describe("a saved file", () => {
  test("with optimizer state is loaded into another number of shards", async () => {
    const file = join(home, "all.safetensors");
    const trained = await trainAround(() =>
      command("save", file, "--with-optimizer", "--job", "j"),
    );
    await job.host({ job: "k", shards: 3 });
    const loaded = await command("load", file, "--job", "k");
    expect(loaded).toMatchObject({ parameters: NAMES.length, restored: NAMES.length });
    const copy = await job.trainer("b", { job: "k" });
    // Versions count the records that brought the slots, too.
    const [then, later] = [trained.then, trained.later].map(withoutVersions);
    expect(withoutVersions(await values(copy))).toEqual(then);
    await train(copy, 6, 12);
    expect(withoutVersions(await values(copy))).toEqual(later);
  });

  test("is of the moment that was named", async () => {
    await initialize(client);
    await train(client, 0, 3);
    const then = await values(client);
    await client.note({ mark: "here" });
    await train(client, 3, 6);
    const file = join(home, "then.safetensors");
    await command("save", file, "--at", "mark:here", "--with-optimizer", "--job", "j");
    await job.host({ job: "k", shards: 3 });
    await command("load", file, "--job", "k");
    const copy = await job.trainer("b", { job: "k" });
    expect(withoutVersions(await values(copy))).toEqual(withoutVersions(then));
  });

  test("is loaded in part, under other names, or its values alone", async () => {
    await initialize(client);
    await train(client, 0, 3);
    const file = join(home, "all.safetensors");
    await command("save", file, "--with-optimizer", "--job", "j");
    await job.host({ job: "k", shards: 3 });
    const given = ["load", file, "--job", "k"];
    const names = ["--only", "adam*", "--rename", "adam*=other.*"];
    expect(await refused(...given, "--optimizer", "sgd")).toMatchObject({ code: "BAD_VALUE" });
    expect(await refused(...given, "--only", "none-*")).toMatchObject({ code: "BAD_VALUE" });
    expect(await refused(...given, "--rename", "adam=adamw")).toMatchObject({ code: "BAD_NAME" });
    expect(await command(...given, ...names)).toMatchObject({ parameters: 2, restored: 2 });
    const copy = await job.trainer("b", { job: "k" });
    const infos = await copy.listParams();
    expect(infos.map(({ name }) => name).sort()).toEqual(["other.", "other.w"]);
    const [own] = await client.getParams(["adamw"]);
    expect((await copy.pullFull("other.w")).data).toEqual(own?.data);
    // The job keeps what its optimizers have, and takes the values.
    await copy.setParams({ "other.w": Float64Array.of(0, 0, 0) });
    expect(await command(...given, ...names, "--overwrite")).toMatchObject({
      ...{ overwritten: true, restored: 0 },
    });
    expect((await copy.pullFull("other.w")).data).toEqual(own?.data);
  });

  test("that was changed is refused, and the job stays uninitialized", async () => {
    await initialize(client);
    const file = join(home, "all.safetensors");
    await command("save", file, "--with-optimizer", "--job", "j");
    const bytes = await readFile(file);
    await job.host({ job: "k", shards: 3 });
    const changed = join(home, "changed.safetensors");
    for (const [from, to, code] of [
      ['\\"rules\\":1', '\\"rules\\":9', "UNKNOWN_RULES"],
      ['\\"format\\":1', '\\"format\\":2', "BAD_VERSION"],
      ["pserver.optimizer/1/adam", "pserver.optimizer/9/adam", "BAD_FILE"],
    ] as const) {
      const at = bytes.indexOf(from);
      expect(at).toBeGreaterThan(0);
      const copy = Buffer.from(bytes);
      copy.write(to, at);
      await writeFile(changed, copy);
      expect(await refused("load", changed, "--job", "k")).toMatchObject({ code });
    }
    await writeFile(changed, bytes.subarray(0, bytes.length - 1));
    expect(await refused("load", changed, "--job", "k")).toMatchObject({ code: "BAD_FILE" });
    const copy = await job.trainer("b", { job: "k" });
    expect((await copy.status()).state).toBe("uninitialized");
    expect(await refused("save", join(home, "m.npz"), "--with-optimizer")).toMatchObject({
      code: "BAD_VALUE",
    });
  });
});

describe("a backup", () => {
  test.each([2, 3])("is restored at another broker, in %i shards", async (shards) => {
    const backups = join(home, "backups");
    const trained = await trainAround(() => command("backup", backups, "--job", "j"));
    const other = await TestJob.start();
    onTestFinished(() => other.remove());
    const restore = ["restore", backups, "--url", other.broker.url, "--json"];
    const { code, stdout } = await run([...restore, "--shards", `${shards}`]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ job: "j", of: "j", parameters: NAMES.length });
    await expectToGoOn(await served("j", shards, other), trained);
    const again = await run(restore);
    expect(again.code).not.toBe(0);
    expect(again.stderr).toContain("JOB_EXISTS");
  });

  test("keeps the settings of its job", async () => {
    await job.host({ job: "memory", shards: 3, journal: "memory", tape: false });
    const trainer = await job.trainer("b", { job: "memory" });
    await trainer.createIfNotAlreadyCreated("w", Float32Array.of(1));
    const backups = join(home, "backups");
    await command("backup", backups, "--job", "memory");
    const other = await TestJob.start();
    onTestFinished(() => other.remove());
    const { code } = await run(["restore", backups, "--url", other.broker.url]);
    expect(code).toBe(0);
    const jobs = await run(["jobs", "--json", "--url", other.broker.url]);
    expect(jobs.stdout).toMatch(/"job":"memory"[^}]*"shards":3[^}]*"journal":"memory"/);
  });

  test("of a directory is the newest, of the job that is named", async () => {
    await client.createIfNotAlreadyCreated("w", Float32Array.of(1));
    const backups = join(home, "backups");
    await command("backup", backups, "--job", "j");
    await client.pushFull("w", Float32Array.of(2), 0, 1);
    await command("backup", backups, "--job", "j");
    await job.host({ job: "k", shards: 1 });
    await (await job.trainer("b", { job: "k" })).createIfNotAlreadyCreated("w", Float32Array.of(3));
    await command("backup", backups, "--job", "k");
    expect(await refused("restore", backups, "--as", "new")).toMatchObject({ code: "BAD_VALUE" });
    expect(await refused("restore", home, "--as", "new")).toMatchObject({ code: "BAD_ARCHIVE" });
    await command("restore", backups, "--of", "j", "--as", "new");
    expect((await (await served("new", 2)).pullFull("w")).data[0]).toBe(2);
  });

  test("that was cut off or changed makes no job", async () => {
    await initialize(client);
    await train(client, 0, 2);
    const backups = join(home, "backups");
    const { file } = (await command("backup", backups, "--job", "j")) as { file: string };
    expect((await readdir(backups)).map((name) => join(backups, name))).toEqual([file]);
    const bytes = await readFile(file);
    const changed = Buffer.from(bytes);
    const middle = bytes.length >> 1;
    changed[middle] = (changed[middle] ?? 0) ^ 1;
    for (const broken of [bytes.subarray(0, -1), bytes.subarray(0, middle), changed]) {
      await writeFile(file, broken);
      expect(await refused("restore", file, "--as", "new")).toMatchObject({ code: "BAD_ARCHIVE" });
    }
    const jobs = await run(["jobs", "--json", "--url", job.broker.url]);
    expect(jobs.stdout).not.toContain('"job":"new"');
    expect(await refused("restore", file, "--of", "j", "--shards", "0")).toMatchObject({
      code: "BAD_VALUE",
    });
  });
});
