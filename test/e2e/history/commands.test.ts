// Proves with the compiled commands on a real job that a person finds what happened in it: the update that
// brought a NaN, what it did to an element, how the model would be without it, that journal, snapshots and
// hosts agree; and what is said, with nothing written, about points and jobs that are not there.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { mountObstacle, SmallDisk } from "../../support/small-disk.ts";
import { snapshotAll } from "../host/control.ts";
import { Archive } from "../host/journal-fold.ts";

/** Elements of the parameters; the culprit's gradient has a NaN at one of them. */
const ELEMENTS = 200;
const AT = 7;

const UNMOUNTABLE = mountObstacle();

let job: TestJob;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-debugger-"));
  job = await TestJob.start({ shards: 2 });
  await job.host();
  const [good, bad] = [await job.trainer("good"), await job.trainer("bad")];
  await good.beginInit();
  for (const name of ["w", "v"]) {
    const config = { learningRate: 0.1, allowNonFinite: true };
    await good.initParam(name, new Float32Array(ELEMENTS).fill(0.5), config);
  }
  await good.finishInit();
  const gradients = (round: number) => {
    const g = Float32Array.from({ length: ELEMENTS }, (_, i) => Math.sin(i + round));
    return { w: g, v: g };
  };
  for (let round = 0; round < 12; round++) {
    await good.sendGrads(gradients(round));
    if (round === 5) await snapshotAll(job);
    if (round !== 8) continue;
    const { w, v } = gradients(round);
    await bad.sendGrads({ w: w.map((value, i) => (i === AT ? Number.NaN : value)), v });
  }
});

afterAll(async () => {
  await job.remove();
  await rm(directory, { recursive: true });
});

function pserver(...args: string[]): Promise<Finished> {
  const environment = {
    PSERVER_URL: job.broker.url,
    PSERVER_JOB: job.job,
  };
  return run(args, { environment });
}

/** What a command prints with `--json`. */
async function json(...args: string[]) {
  const { stdout, stderr, code } = await pserver(...args, "--json");
  expect(stderr).toBe("");
  const lines = stdout.trim().split("\n");
  return { code, values: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

describe("the culprit", () => {
  test("is named by a bisection for NaNs, and by one with a command", async () => {
    const found = await json("bisect", "--good", "start", "--nan");
    expect(found.code).toBe(0);
    expect(found.values[0]?.["records"]).toMatchObject([{ trainer: "bad", session: 2, n: 1 }]);
    const script = [
      'import { readFileSync } from "node:fs";',
      "const bytes = readFileSync(process.argv[2]);",
      "const head = JSON.parse(bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE(0))));",
      "const [start] = head.w.data_offsets;",
      `const at = 8 + Number(bytes.readBigUInt64LE(0)) + start + 4 * ${AT};`,
      "process.exit(Number.isNaN(bytes.readFloatLE(at)) ? 1 : 0);",
    ].join("\n");
    const command = [process.execPath, "--input-type=module", "-e", script, "unused", "{}"];
    const { stdout, code } = await pserver("bisect", "--good", "good/1:4@0", "--", ...command);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^first bad: bad\/2:1, /)]);
  });

  test("is named by the changes of the element, which add up before it", async () => {
    const { values } = await json("blame", `w[${AT}]`);
    const culprit = values.find(({ after }) => after === "NaN");
    expect(culprit).toMatchObject({ trainer: "bad", session: 2, n: 1 });
    const finite = await json("blame", "w[0]");
    const total = finite.values.at(-1);
    expect(total).toMatchObject({ nonFinite: 0, first: null });
    expect(Number(total?.["sum"])).toBeCloseTo(Number(total?.["last"]) - 0.5, 6);
  });

  test("can be left out: the model without it has no NaN, and differs in nothing else of the others", async () => {
    const { values, code } = await json("what-if", "--without", "bad", "--to", "now");
    expect(code).toBe(0);
    expect(values[0]).toMatchObject({ leftOut: expect.any(Number), caution: expect.any(String) });
    expect(values[0]?.["leftOut"]).toBeGreaterThan(0);
    const differences = values[0]?.["parameters"] as {
      name: string;
      normA: unknown;
      normB: unknown;
    }[];
    const w = differences.find(({ name }) => name === "w");
    expect([w?.normA, typeof w?.normB]).toEqual(["NaN", "number"]);
  });
});

describe("two models", () => {
  test("are equal at one point, and not at two; a file of a replay is equal to its point", async () => {
    expect((await pserver("diff", "now", "now")).code).toBe(0);
    expect((await pserver("diff", "start", "now")).code).toBe(1);
    const file = join(directory, "model.npz");
    const to = "good/1:8@0";
    expect((await pserver("replay", "--to", to, "--out", file)).code).toBe(0);
    expect(await json("diff", to, file)).toMatchObject({ code: 0, values: [{ equal: true }] });
    expect((await json("diff", "now", file)).values[0]).toMatchObject({ equal: false });
  });
});

test("journal, snapshots and hosts agree", async () => {
  const { values, code } = await json("verify");
  expect(code).toBe(0);
  const shards = values[0]?.["shards"] as { hosts: { kind: string }; places: { kind: string }[] }[];
  expect(shards.map(({ hosts }) => hosts.kind)).toEqual(["equal", "equal"]);
  expect(shards.flatMap(({ places }) => places.map(({ kind }) => kind))).not.toContain("different");
});

describe("bad input", () => {
  test.each([
    ["a point before the start", ["replay", "--to", "2020-01-01"], "HISTORY_LOST", 1],
    ["a position after the end", ["replay", "--to", "0:99999"], "BAD_VALUE", 3],
    ["a shard that is not there", ["replay", "--to", "7:1"], "BAD_VALUE", 3],
    ["no point", ["replay", "--to", "tomorrow"], "BAD_VALUE", 3],
    ["an update that nobody sent", ["replay", "--to", "good/1:999"], "BAD_VALUE", 3],
    ["a step of a job without steps", ["replay", "--to", "step:3"], "UNSUPPORTED", 4],
    ["a job that is not there", ["replay", "--to", "now", "--job", "other"], "BAD_NAME", 3],
    [
      "a parameter that is not there",
      ["replay", "--to", "now", "--param", "q"],
      "UNKNOWN_PARAMETER",
      3,
    ],
    [
      "a model in a file of one tensor",
      ["replay", "--to", "now", "--out", "m.npy"],
      "BAD_VALUE",
      3,
    ],
    ["an element that is outside", ["blame", `w[${ELEMENTS}]`], "BAD_INDEX", 3],
    ["neither command nor --nan", ["bisect", "--good", "start"], "BAD_VALUE", 3],
    [
      "ends in the wrong order",
      ["bisect", "--good", "now", "--bad", "start", "--nan"],
      "BAD_VALUE",
      3,
    ],
    ["nothing to change", ["what-if", "--to", "now"], "BAD_VALUE", 3],
  ])("%s is refused", async (_name, args, expected, code) => {
    const finished = await pserver(...args);
    expect(finished.stderr).toContain(`pserver: ${expected}: `);
    expect([finished.code, finished.stdout]).toEqual([code, ""]);
  });

  test("a directory that is not there is named", async () => {
    const out = join(directory, "absent", "m.npz");
    const { stderr, code } = await pserver("replay", "--to", "now", "--out", out);
    expect([code, stderr]).toEqual([6, expect.stringContaining("pserver: IO: ")]);
  });

  test.skipIf(UNMOUNTABLE !== "")(`a full disk leaves nothing behind${UNMOUNTABLE}`, async () => {
    const disk = new SmallDisk();
    try {
      await disk.fill();
      const out = join(disk.path, "m.npz");
      const { stderr, code } = await pserver("replay", "--to", "now", "--out", out);
      expect([code, stderr]).toEqual([6, expect.stringContaining("pserver: DISK_FULL: ")]);
      expect(await readdir(disk.path)).toEqual(["fill"]);
    } finally {
      disk.remove();
    }
  });
});

test("a journal that lacks a record in the middle is told", async () => {
  await using archive = await Archive.open(job.broker.url, job.job);
  const [first, second] = [await archive.journal(0), await archive.journal(1)];
  // One of them may hold both parameters.
  const [shard, { last }] = first.last > second.last ? [0, first] : [1, second];
  const seq = last - 3;
  const manager = await jetstreamManager(archive.connection);
  await manager.streams.deleteMessage(archive.subjects.journalStream(shard, 1), seq);
  const { stderr, code } = await pserver("replay", "--to", "now");
  expect([code, stderr]).toEqual([1, expect.stringContaining("pserver: JOURNAL_DAMAGED: ")]);
  expect((await pserver("replay", "--to", `${shard}:${seq - 1}`)).code).toBe(0);
  const verified = await json("verify");
  expect([verified.code, verified.values[0]?.["sound"]]).toEqual([1, false]);
});
