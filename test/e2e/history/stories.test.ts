// Proves the four stories of docs/guides/history.md: each script trains a small model with a planted mistake, and the
// commands name who made it and when. The scripts and the commands are processes, as a user would start them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";

/** The compiled examples; `make programs` makes them. */
const STORIES = join(import.meta.dirname, "../../../build/programs/examples/debugging");

let job: TestJob;
let directory: string;

beforeEach(async () => {
  job = await TestJob.start({ shards: 1 });
  directory = await mkdtemp(join(tmpdir(), "pserver-stories-"));
  await job.host();
});

afterEach(async () => {
  await job.remove();
  await rm(directory, { recursive: true });
});

/** Runs the training of a story; what it printed. */
async function train(story: string, ...args: string[]): Promise<string> {
  const program = [join(STORIES, `${story}.js`), "--job", job.job, ...args];
  const env = { ...process.env, PSERVER_URL: job.broker.url };
  const child = spawn(process.execPath, program, { env, stdio: ["ignore", "pipe", "inherit"] });
  let stdout = "";
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${story} ended with ${code}: ${stdout}`);
  return stdout;
}

async function pserver(...args: string[]): Promise<Finished> {
  const [command = "", ...rest] = args;
  return await run([command, "--job", job.job, "--url", job.broker.url, ...rest]);
}

/** The lines that a command prints with `--json`. */
async function lines(...args: string[]): Promise<Record<string, unknown>[]> {
  const { code, stdout, stderr } = await pserver(args[0] ?? "", "--json", ...args.slice(1));
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
  const texts = stdout.split("\n").filter((line) => line !== "");
  return texts.map((line) => JSON.parse(line) as Record<string, unknown>);
}

test("which trainer sent NaN, and a job that continues from before it", async () => {
  expect(await train("nan")).toContain("step 60: loss NaN");
  const [first] = await lines("find", "nan");
  const culprit = { trainer: "trainer-2", session: 2 };
  expect(first).toMatchObject({ ...culprit, number: 40, parameter: "w" });
  const [found] = await lines("bisect", "--nan", "--good", "0:3");
  expect(found).toMatchObject({ records: [{ ...culprit, n: 40, seq: first?.["seq"] }] });
  const before = `0:${Number(first?.["seq"]) - 1}`;
  const made = await run([
    "fork",
    job.job,
    "--at",
    before,
    "--as",
    "again",
    "--url",
    job.broker.url,
  ]);
  expect(made).toMatchObject({ code: 0 });
  await job.host({ job: "again" });
  const forked = await job.trainer("x", { job: "again" });
  const { data } = await forked.pullFull("w");
  expect([...(data as Float32Array)].every(Number.isFinite)).toBe(true);
});

test("whose learning rate is ten times too high", async () => {
  await train("rate");
  const changes = (await lines("blame", "w[3]", "--since", "0:3")).slice(0, -1);
  const largest = changes.toSorted(
    (a, b) => Math.abs(Number(b["change"])) - Math.abs(Number(a["change"])),
  );
  const movers = new Set(largest.slice(0, 10).map(({ trainer }) => trainer));
  expect([...movers]).toEqual(["trainer-3"]);
  const updates = await lines("log", "--since", "0:3");
  const rates = updates.filter(({ learningRate }) => learningRate !== undefined);
  expect(new Set(rates.map(({ trainer }) => trainer))).toEqual(new Set(["trainer-3"]));
  expect(rates[0]).toMatchObject({ learningRate: 20 });
  const [without] = await lines("what-if", "--without", "trainer-3", "--to", "now");
  expect(without).toMatchObject({ leftOut: 60 });
});

test("which trainer lags", async () => {
  await train("lag");
  const stale = await lines("find", "stale", "--limit", "1000");
  expect(stale.length).toBeGreaterThan(40);
  expect(new Set(stale.map(({ trainer }) => trainer))).toEqual(new Set(["trainer-2"]));
  expect(Math.max(...stale.map(({ behind }) => Number(behind)))).toBeGreaterThan(50);
});

test("which update made a good model bad, and the job goes back to before it", async () => {
  await train("tuesday");
  const score = [process.execPath, join(STORIES, "score.js"), "{}"];
  const [found] = await lines("bisect", "--good", "trainer-1/1:20", "--", ...score);
  const culprit = { trainer: "trainer-1", session: 1, n: 60 };
  expect(found).toMatchObject({ records: [culprit] });
  const [spike] = await lines("find", "spike");
  expect(spike).toMatchObject({ trainer: "trainer-1", session: 1, number: 60 });
  const seq = Number(spike?.["seq"]);
  expect(await pserver("rewind", "--to", `0:${seq - 1}`, "--yes")).toMatchObject({ code: 0 });
  const out = join(directory, "now.safetensors");
  expect(await pserver("replay", "--to", "now", "--out", out)).toMatchObject({ code: 0 });
  const judge = spawn(process.execPath, [join(STORIES, "score.js"), out], { stdio: "ignore" });
  expect(await once(judge, "close")).toEqual([0, null]);
  // What was left can still be looked at.
  const [old] = await lines("replay", "--to", `0:${seq}@1`);
  expect(old).toMatchObject({ parameters: [{ name: "w", complete: true }] });
});

test("a recorded file, and an archive, are all that a fork needs", async () => {
  const url = ["--url", job.broker.url];
  await train("nan", "--steps", "10");
  const file = join(directory, "recorded.pserver");
  expect(await pserver("record", file)).toMatchObject({ code: 0 });
  const archive = join(directory, "archive");
  expect(await pserver("archive", archive, "--once")).toMatchObject({ code: 0 });
  const trainer = await job.trainer("y");
  const real = await trainer.pullFull("w");
  const sources = {
    "of-file": ["--from-file", file],
    "of-archive": ["--archive", archive, "--no-broker"],
  };
  for (const [as, source] of Object.entries(sources)) {
    const fork = ["fork", ...source, "--at", "now", "--as", as, ...url];
    expect(await run(fork)).toMatchObject({ code: 0 });
    await job.host({ job: as });
    const forked = await job.trainer("x", { job: as });
    expect((await forked.pullFull("w")).data).toEqual(real.data);
  }
  const other = await run(["fork", "other", "--from-file", file, "--at", "now", ...url]);
  expect(other.stderr).toContain("expected a history of job other; received one of job j");
});
