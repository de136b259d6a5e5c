// Proves on a real run what operators see of guards: a job whose host was given one, a trainer whose gradients explode, and
// the commands that tell what was held back, and what would have been without that. Commands are compiled.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../../src/client/client.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";

const GUARD = { factor: 2, window: 8, warmup: 2, history: "cohort" } as const;

let job: TestJob;
let bad: Client;

beforeAll(async () => {
  job = await TestJob.start({ shards: 1, guard: GUARD });
  await job.host();
  const good = await job.trainer("good");
  bad = await job.trainer("bad");
  await good.beginInit();
  const values = new Float32Array(4);
  await good.initParam("w", values, { optimizer: "none" });
  await good.initParam("clipped", values, {
    optimizer: "none",
    guard: { ...GUARD, action: "clip" },
  });
  await good.initParam("aside", values, {
    optimizer: "none",
    guard: { ...GUARD, action: "set-aside" },
  });
  await good.finishInit();
  for (let round = 0; round < 3; round++) {
    for (const client of [good, bad]) {
      for (const name of ["w", "clipped", "aside"]) {
        await client.sendGrads({ [name]: Float32Array.of(1, 0, 0, 0) });
      }
    }
  }
});

afterAll(() => job.remove());

function pserver(...args: string[]): Promise<Finished> {
  const environment = {
    ...{ PSERVER_URL: job.broker.url, PSERVER_JOB: job.job },
    ...{ NO_COLOR: "1" },
  };
  return run(args, { environment });
}

async function entries(...args: string[]): Promise<Record<string, unknown>[]> {
  const { stdout, stderr, code } = await pserver(...args, "--json");
  expect(code, stderr).toBe(0);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test("a gradient that explodes is rejected, clipped or set aside, and operators see which and why", async () => {
  const spike = Float32Array.of(0, 50, 0, 0);
  await expect(bad.sendGrads({ w: spike })).rejects.toMatchObject({
    ...{ code: "GUARDED", message: expect.stringContaining("expected a norm of at most 2") },
  });
  await bad.sendGrads({ clipped: spike });
  await bad.sendGrads({ aside: spike });
  expect(bad.stats()).toMatchObject({ failed: { GUARDED: 1 }, clipped: 1, setAside: 1 });
  const held = await bad.getParams(["w", "clipped", "aside"]);
  expect(held.map(({ data }) => [...(data as Float32Array)])).toEqual([
    [6, 0, 0, 0],
    [6, 2, 0, 0],
    [6, 0, 0, 0],
  ]);

  const found = await entries("find", "guarded");
  const told = { norm: 50, limit: 2, median: 1, norms: 6, trainer: "bad", finding: "guarded" };
  expect(found).toEqual([
    expect.objectContaining({ ...told, parameter: "w", guard: "reject", outcome: "rejected" }),
    expect.objectContaining({ ...told, parameter: "clipped", guard: "clip", outcome: "applied" }),
    expect.objectContaining({
      ...told,
      parameter: "aside",
      guard: "set-aside",
      outcome: "set-aside",
    }),
  ]);
  const log = await pserver("log", "--trainer", "bad", "--param", "aside");
  expect(log.stdout).toContain("set aside: norm 50 above 2, median 1 of 6");

  const updates = found.map(({ trainer, session, number }) => `${trainer}/${session}:${number}`);
  const [rejected = "", clipped = "", aside = ""] = updates;
  expect((await pserver("show", clipped)).stdout).toMatch(/guard +norm 50 above 2, median 1 of 6/);
  const { stdout: status } = await pserver("status");
  expect(status).toContain("by guards: 1 rejected, 1 clipped, 1 set aside");
  expect((await pserver("doctor")).stdout).toContain("pserver find guarded");
  expect(await entries("verify")).toBeDefined();

  const normOf = async (name: string, ...args: string[]): Promise<unknown> => {
    const [result] = await entries("what-if", ...args, "--to", "now");
    const parameters = result?.["parameters"] as { name: string; normB: number }[];
    return parameters.find((each) => each.name === name)?.normB;
  };
  const unguarded = Math.hypot(6, 50);
  expect(await normOf("w", "--without-guard", rejected)).toBeCloseTo(unguarded, 4);
  expect(await normOf("clipped", "--without-guard", clipped)).toBeCloseTo(unguarded, 4);
  expect(await normOf("aside", "--without-guard", aside)).toBeCloseTo(unguarded, 4);
  expect(
    await normOf("aside", "--without-guard", `${found[2]?.["shard"]}:${found[2]?.["seq"]}`),
  ).toBeCloseTo(unguarded, 4);
  const clip5 = JSON.stringify({ ...GUARD, factor: 5, action: "clip" });
  expect(await normOf("aside", "--guard", clip5)).toBeCloseTo(Math.hypot(6, 5), 4);
  expect(await normOf("w", "--guard", "off")).toBeCloseTo(unguarded, 4);
});

test("what is no update, or no guard, is refused", async () => {
  const point = await pserver("what-if", "--without-guard", "now", "--to", "now");
  expect([point.code, point.stderr]).toEqual([
    3,
    expect.stringContaining("--without-guard: expected one update"),
  ]);
  const guard = await pserver("what-if", "--guard", '{"action":"shout"}', "--to", "now");
  expect([guard.code, guard.stderr]).toEqual([
    128,
    expect.stringContaining("--guard.action: expected reject"),
  ]);
});
