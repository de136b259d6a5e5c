// Proves on a real broker and host that `pserver log` has one line for every update of two trainers, with
// their notes in place, filtered by parameter, trainer and points; that it goes on while it follows; that
// `pserver show` tells what one update did; and that all of it is the same after the
// host has crashed.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { type Finished, run, start } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { QUICK_LEASE_MS } from "../../support/limits.ts";

/** A line of `pserver log --json`. */
interface Line {
  readonly shard: number;
  readonly seq: number;
  readonly trainer?: string;
  readonly number?: number;
  readonly verb: string;
  readonly parameter?: string;
  readonly norm?: number;
  readonly outcome: string;
  readonly note?: Readonly<Record<string, unknown>>;
  readonly [name: string]: unknown;
}

let job: TestJob;

beforeEach(async () => {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: 2 });
});

afterEach(() => job.remove());

function pserver(...args: string[]): Promise<Finished> {
  const environment = { PSERVER_URL: job.broker.url };
  return run([...args, "--job", "j"], { environment });
}

async function lines(...args: string[]): Promise<Line[]> {
  const { code, stdout, stderr } = await pserver("log", "--json", ...args);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}

/** Two trainers, three rounds of a gradient and a note each; then one update that is rejected. */
async function train(): Promise<[Client, Client]> {
  const [alice, bob] = [await job.trainer("alice"), await job.trainer("bob")];
  await alice.beginInit();
  await alice.initParam("w", new Float32Array(4), { learningRate: 1 });
  await alice.initParam("v", new Float64Array(2), { learningRate: 1, static: false });
  await alice.finishInit();
  for (let round = 1; round <= 3; round++) {
    for (const client of [alice, bob]) {
      await client.sendGrads({ w: Float32Array.of(3 * round, 0, 4 * round, 0) });
      const mark = round === 2 && client === bob ? { mark: "second" } : {};
      await client.note({ loss: 1 / round, round, ...mark });
    }
  }
  await bob.setParams({ v: Float64Array.of(1, 2) });
  return [alice, bob];
}

test("every update has its line, and notes have theirs", async () => {
  const host = await job.host();
  await train();
  const all = await lines();
  const updates = all.filter(({ parameter }) => parameter === "w" || parameter === "v");
  expect(updates).toHaveLength(2 + 6 + 1);
  expect(all.filter(({ verb }) => verb === "note")).toHaveLength(6);
  const gradients = all.filter(({ op }) => op === "grad");
  expect(
    gradients.map(({ trainer, norm, zeros, version }) => [trainer, norm, zeros, version]),
  ).toEqual(
    [5, 10, 15].flatMap((norm, round) => [
      ["alice", norm, 2, 2 + 2 * round],
      ["bob", norm, 2, 3 + 2 * round],
    ]),
  );
  // A note stands behind the gradient that was acknowledged before it.
  const told = all.filter(({ op, verb }) => op === "grad" || verb === "note");
  expect(told.map(({ verb }) => verb)).toEqual(Array(6).fill(["push", "note"]).flat());
  expect(all.at(-1)).toMatchObject({ trainer: "bob", parameter: "v", op: "set", max: 2 });

  await host.kill();
  expect(await lines()).toEqual(all);
  await job.host();
  expect((await lines()).slice(0, all.length)).toEqual(all);
});

test("parameter, trainer and points choose lines", async () => {
  await job.host();
  await train();
  const all = await lines();
  expect(await lines("--param", "w")).toEqual(all.filter(({ parameter }) => parameter === "w"));
  expect(await lines("--trainer", "bob")).toEqual(all.filter(({ trainer }) => trainer === "bob"));
  const second = all.find(({ note }) => note?.["mark"] === "second");
  if (second === undefined) throw new Error("expected the named note");
  const point = `${second.shard}:${second.seq}`;
  const [before, after] = [await lines("--until", point), await lines("--since", point)];
  expect([...before, ...after]).toEqual(all);
  expect(before.at(-1)).toEqual(second);
  expect(await lines("--since", "now")).toEqual([]);
  expect(await lines("--last", "3")).toEqual(all.slice(-3));
  expect(await lines("-n", "1", "--until", point)).toEqual([second]);
  expect(await lines("-n", "99999", "--param", "w")).toHaveLength(7);

  const csv = (await pserver("log", "--csv")).stdout.trim().split("\n");
  expect(csv).toHaveLength(all.length + 1);
  expect(csv.find((line) => line.includes("second"))).toContain('""mark"":""second""');
  const table = (await pserver("log")).stdout.trim().split("\n");
  expect(table).toHaveLength(all.length + 2);
  expect(table[0]).toMatch(/^TIME +RECORD +TRAINER +UPDATE +PARAMETER/);
});

test("following continues with new lines", async () => {
  await job.host();
  const [alice] = await train();
  const following = start(["log", "--follow", "--json", "--since", "now", "--job", "j"], {
    environment: { PSERVER_URL: job.broker.url },
  });
  const seen = (): string[] => following.output().split("\n").slice(0, -1);
  // When it has begun is not to be seen: what came before that is left out, so more is sent until it shows.
  for (let round = 1; seen().length < 5; round++) {
    await alice.sendGrads({ w: new Float32Array(4).fill(round) });
  }
  following.child.kill("SIGINT");
  expect((await following.finished).code).toBe(0);
  const gradients = seen().map((line) => JSON.parse(line) as Line);
  const norms = gradients.slice(0, 5).map(({ norm = 0 }) => norm / 2);
  const [first = 0] = norms;
  expect(norms).toEqual([0, 1, 2, 3, 4].map((more) => first + more));
});

test("show tells what one update did", async () => {
  await job.host();
  const [, bob] = await train();
  const first = (await lines("--param", "w", "--trainer", "bob"))[0];
  if (first === undefined) throw new Error("expected an update");
  const update = `bob/${bob.session}:${first.number}@${first.shard}`;
  const { stdout } = await pserver("show", update, "--json");
  expect(JSON.parse(stdout)).toMatchObject({
    updates: [{ trainer: "bob", number: first.number, op: "grad", norm: 5 }],
    blocks: [
      {
        ...{ parameter: "w", block: 0, changedElements: 2 },
        ...{ before: { norm: 5, min: -4 }, after: { norm: 10, min: -8 } },
      },
    ],
  });
  const text = (await pserver("show", update)).stdout;
  expect(text).toMatch(/changed +2 of 4 elements/);
  const missing = await pserver("show", `bob/${bob.session}:99`);
  expect(missing.code).toBe(3);
  expect(missing.stderr).toContain("no kept record has this number");
});
