// Proves that no record stops a shard for good: one that the fold rejects is described, one that cannot be described
// has a line that says so, and both cost nobody else anything; one that cannot be folded stops its shard alone, is
// named, and can be put aside by an operator, with nothing else lost. Defects are planted in the kernels of real hosts
// (`faulty-kernel`); commands are the compiled program.
import { pathToFileURL } from "node:url";
import { connect } from "@nats-io/transport-node";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Client, ShardFallback } from "../../../src/client/index.ts";
import {
  decodeMessage,
  encodeMessage,
  type Fields,
  hashName,
  JobSubjects,
  parseAnswers,
} from "../../../src/protocol/index.ts";
import { type Finished, run, runProcess } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, MORTAL_LEASE_MS } from "../../support/limits.ts";
import { testProgram } from "../../support/test-program.ts";
import { control } from "./control.ts";
import { failureOf } from "./damage.ts";
import { Archive } from "./journal-fold.ts";
import { askRaw } from "./raw-trainer.ts";

const FAULTY = testProgram("faulty-kernel");
const WAIT = { timeout: HANG_MS, interval: 20 };
const ONE = BigInt64Array.of(1n);

let job: TestJob;

afterEach(async () => {
  await job.remove();
});

function pserver(command: string, ...args: string[]): Promise<Finished> {
  return run([command, "--job", job.job, "--url", job.broker.url, ...args]);
}

/** The updates that `pserver log` lists. */
async function updates(...args: string[]): Promise<Fields[]> {
  const { stdout, stderr, code } = await pserver("log", "--json", ...args);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Fields);
}

/** What was printed, with its lines joined. */
function unwrapped(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}

async function shardStatus(shard: number): Promise<Fields> {
  const { shards } = (await control(job, "hosts", {})) as { shards: Fields[] };
  return shards.find((each) => each["shard"] === shard) ?? {};
}

test("a record that the fold rejects and nobody expected is described, and everybody goes on", async () => {
  job = await TestJob.start({ leaseMs: MORTAL_LEASE_MS, shards: 1 });
  const host = await job.host();
  const client = await job.trainer("good");
  await client.beginInit();
  await client.initParam("d", new Float64Array(4));
  await client.initParam("count", new BigInt64Array(1));
  await client.finishInit();
  const subjects = new JobSubjects("j");
  const raw = await connect({ servers: job.broker.url, inboxPrefix: subjects.inbox("raw") });
  onTestFinished(() => raw.close());
  const { session } = (await askRaw(raw, "raw", "join", { token: "its-only-life" })) as {
    session: number;
  };
  const reply = `${subjects.inbox("raw")}.answer`;
  const answers = raw.subscribe(reply, { max: 2, timeout: HANG_MS });
  const head = { session, done: 0, reply };
  const elements = { dtype: "float64", epoch: 1, encoding: "bfloat16" };
  const mix = { op: "mix", alpha: 1, beta: 1 };
  // One row of the block: its number, zeros up to a multiple of 8, and an element of two bytes.
  const push = { ...head, n: 1, ...elements, ...mix, part: [1] };
  raw.publish(
    subjects.log(0, "raw", "push", "d", 0),
    encodeMessage(push, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f)),
  );
  const { dtype, encoding } = elements;
  const run = { verb: "push", dtype, encoding, entries: 1, elements: 1, ...mix };
  // The columns of numbers and counts, and the values.
  const batch = { ...head, n: 2, runs: [run] };
  raw.publish(subjects.batch(0, "raw"), encodeMessage(batch, new Uint8Array(24)));
  const codes: unknown[] = [];
  for await (const message of answers) {
    codes.push(...parseAnswers(decodeMessage(message.data)).outcomes.map(({ code }) => code));
    if (codes.length === 2) break;
  }
  expect(codes).toEqual(["UNSUPPORTED", "UNSUPPORTED"]);
  await client.pushFull("count", ONE, 1, 1);

  const restarted = async (): Promise<void> => {
    await host.kill();
    await job.host();
  };
  for (const act of [() => Promise.resolve(), restarted]) {
    await act();
    await client.pushFull("count", ONE, 1, 1);
    const rejected = (await updates()).filter(({ trainer }) => trainer === "raw");
    const expected = { outcome: "rejected", code: "UNSUPPORTED" };
    expect(rejected).toMatchObject([
      { number: 1, parameter: "d", encoding: "bfloat16", bytes: 2, elements: 1, ...expected },
      { number: 2, verb: "batch", ...expected },
    ]);
    const found = await pserver("find", "rejected");
    expect(found).toMatchObject({ code: 0 });
    expect(found.stdout).toContain("bfloat16 is for float32 elements");
    expect(await pserver("recover")).toMatchObject({ code: 0 });
    expect(await pserver("verify")).toMatchObject({ code: 0 });
    expect(await shardStatus(0)).toMatchObject({
      state: "serving",
      tape: { undescribed: 0, leftOut: 0 },
    });
  }
  expect((await client.pullFull("count")).data).toEqual(BigInt64Array.of(3n));
  expect(host.lines.filter(({ type }) => type !== "serving" && type !== "started")).toEqual([]);
});

test("a record that cannot be described is told once, counted, and listed as not described", async () => {
  job = await TestJob.start({ leaseMs: MORTAL_LEASE_MS, shards: 1 });
  const host = await job.host({}, FAULTY);
  const client = await job.trainer("a");
  await client.beginInit();
  await client.initParam("w", new Float32Array(2), { learningRate: 1 });
  await client.finishInit();
  for (let i = 0; i < 2; i++) await client.sendGrads({ w: Float32Array.of(667, 1) });
  await client.sendGrads({ w: Float32Array.of(1, 1) });
  expect((await client.pullFull("w")).data).toEqual(Float32Array.of(-1335, -3));
  expect(await shardStatus(0)).toMatchObject({ tape: { undescribed: 2, leftOut: 0 } });
  const told = host.lines.filter(({ type }) => type === "tape-incomplete");
  expect(told).toMatchObject([
    {
      shard: 0,
      error: { message: expect.stringMatching(/record \d+ was folded.*faulty measure/) },
    },
  ]);
  const status = await pserver("status");
  expect(status.stdout).toContain("tape of shard 0: 2 records not described, 0 left out");
  // From the tape: the command itself could describe them.
  await vi.waitFor(async () => {
    const undescribed = (await updates()).filter((each) => each["undescribed"] !== undefined);
    expect(undescribed).toMatchObject(
      [1, 2].map(() => ({ trainer: "a", verb: "push", outcome: "applied" })),
    );
  }, WAIT);
  expect((await pserver("log")).stdout).toContain("applied, not described: INTERNAL: a faulty");
  const csv = (await pserver("log", "--csv")).stdout.trimEnd().split("\n");
  expect(csv[0]).toMatch(/,undescribed$/);
  expect(csv.filter((line) => line.endsWith("INTERNAL: a faulty measure"))).toHaveLength(2);
  await job.crash(host);
  await job.host();
  await client.sendGrads({ w: Float32Array.of(1, 1) });
  expect((await client.pullFull("w")).data).toEqual(Float32Array.of(-1336, -4));
  expect(await pserver("verify")).toMatchObject({ code: 0 });
});

describe("a record that cannot be folded", () => {
  /** A counter on each shard: the names differ in their hash. */
  const [HURT = "", SOUND = ""] = [0, 1].map((shard) => {
    const names = Array.from({ length: 100 }, (_, i) => `count-${i}`);
    return names.find((name) => hashName(name) % 2 === shard) ?? "";
  });
  const told = new Map<string, ShardFallback[]>();

  function trainer(id: string): Promise<Client> {
    const heard: ShardFallback[] = [];
    told.set(id, heard);
    return job.trainer(id, { onFallback: (fallback) => heard.push(fallback) });
  }

  const count = async (client: Client, name = HURT): Promise<number> =>
    Number((await client.pullFull(name)).data[0] ?? -1);

  test("stops its shard alone, is named, and can be put aside; nothing else is lost", async () => {
    job = await TestJob.start({ leaseMs: MORTAL_LEASE_MS, shards: 2 });
    const host = await job.host({}, FAULTY);
    const [a, b] = [await trainer("a"), await trainer("b")];
    for (const name of [HURT, SOUND]) await a.createIfNotAlreadyCreated(name, new BigInt64Array(1));
    for (let i = 0; i < 3; i++) await a.pushFull(HURT, ONE, 1, 1);
    await expect(b.pushFull(HURT, ONE, 1, 666)).rejects.toMatchObject({ code: "FOLD_FAILED" });
    expect(await failureOf(host, 0)).toBe("FOLD_FAILED");
    await using archive = await Archive.open(job.broker.url, job.job);
    const at = await archive.lastRecord(0);
    const failed = { shard: 0, generation: 1, seq: at, trainer: "b", verb: "push" };
    const failure = host.lines.find(({ type }) => type === "shard-failed");
    expect(failure?.error).toMatchObject({ code: "FOLD_FAILED", details: failed });
    // Stored behind it, and not answered before the shard goes on.
    await expect(a.pushFull(HURT, ONE, 1, 1)).rejects.toMatchObject({ code: "FOLD_FAILED" });
    await expect(b.pushFull(HURT, ONE, 1, 666)).rejects.toMatchObject({ code: "FOLD_FAILED" });
    const next = await archive.lastRecord(0);
    await expect(a.pushFull(HURT, ONE, 1, 1)).rejects.toMatchObject({ code: "FOLD_FAILED" });
    await a.pushFull(SOUND, ONE, 1, 1);
    expect(await count(a, SOUND)).toBe(1);
    const last = await archive.lastRecord(0);
    expect(last).toBeGreaterThan(next);

    expect(await shardStatus(0)).toMatchObject({ state: "failed", error: { details: failed } });
    const doctor = await pserver("doctor");
    expect(doctor).toMatchObject({ code: 1 });
    expect(doctor.stdout).toContain(`FOLD_FAILED: shard 0: record ${at}, a push of trainer "b",`);
    // It fails there again after every restart of such a host.
    await job.crash(host);
    const second = await job.host({}, FAULTY);
    expect(await failureOf(second, 0)).toBe("FOLD_FAILED");

    // The command has the same defect, and so finds that the second record cannot be folded either.
    const recover = (...args: string[]): Promise<Finished> =>
      runProcess(["recover", "--job", job.job, "--url", job.broker.url, ...args], {
        environment: { NODE_OPTIONS: `--import=${pathToFileURL(FAULTY).href}` },
      });
    const shown = await recover();
    expect(shown).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("to accept the loss: pserver recover --job j --from rest|"),
    });
    const aside = `records ${at}, ${next}`;
    expect(unwrapped(shown.stdout)).toContain(
      `record ${at} of b, record ${next} of b cannot be folded`,
    );
    const where = `record ${last} of generation 1`;
    expect(unwrapped(shown.stdout)).toContain(`1. rest: the journal without ${aside}, ${where}`);
    expect(unwrapped(shown.stdout)).toContain(`gives up ${aside}, 2 records: 2 of b`);
    const prefix = `2. prefix: the journal as far as it can be read, record ${at - 1}`;
    expect(unwrapped(shown.stdout)).toContain(prefix);

    const recovered = await recover("--from", "rest", "--yes");
    expect(recovered).toMatchObject({ code: 0 });
    const losses = [at, next].map((seq) => `record ${seq} of generation 1 is lost`).join("; ");
    expect(recovered.stderr).toContain(
      `shard 0 goes on from record ${last} under generation 2: ${losses}`,
    );
    expect(recovered.stderr).toContain("served again: shard 0");
    expect(await count(a)).toBe(5);
    await b.pushFull(HURT, ONE, 1, 1);
    await a.pushFull(HURT, ONE, 1, 1);
    expect(await count(b)).toBe(7);
    const lost = [at, next].map((seq) => {
      return { shard: 0, generation: 1, lost: { from: seq, to: seq } };
    });
    await vi.waitFor(() => expect(told.get("b")).toEqual(lost), WAIT);
    await vi.waitFor(() => expect(told.get("a")).toEqual(lost), WAIT);
    const status = await pserver("status");
    expect(unwrapped(status.stdout)).toContain(`shard 0: ${losses}`);
    const { manifest } = (await archive.manifests(0)).at(-1) ?? {};
    expect(manifest?.fallbacks).toEqual([
      { generation: 1, from: at, to: at },
      { generation: 1, from: next, to: next },
      { generation: 1, from: last + 1, to: last },
    ]);

    // Every reader comes to the same, and so does whoever takes it over next.
    expect(await pserver("verify")).toMatchObject({ code: 0 });
    await job.crash(second);
    await job.host({}, FAULTY);
    expect(await count(a)).toBe(7);
    expect(await pserver("verify")).toMatchObject({ code: 0 });
    expect((await updates("--param", HURT)).length).toBeGreaterThan(0);
  });
});
