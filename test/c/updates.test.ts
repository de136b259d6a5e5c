// Proves that equal calls have C send the very bytes that TypeScript sends: those of the shared vectors, and
// of jobs and calls by chance, decided by seeds, with tensors, rows and parts of all types and sizes that go
// alone or in batches. The real C library makes the calls, with a connection and a clock of the process of
// the test; under address and undefined behaviour sanitizers.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DTYPES, ENCODINGS } from "../../src/protocol/dtypes.ts";
import { callVectors, limitCalls } from "../client/push/call-vectors.ts";
import { randomCalls } from "../client/push/random-calls.ts";
import { type CallJob, parameterOf, recordsOf, type SentCall } from "../client/push/sent-calls.ts";
import { toHex } from "../protocol/vector-json.ts";
import { Random } from "../simulation/random.ts";
import { BuiltLibrary, SANITIZED } from "./toolchain.ts";
import { toScript } from "./updates/call-script.ts";

const SEEDS = 30;
const SEEDS_AT_ONCE = 15;
const OUTPUT_BYTES_MAX = 256 * 1024 * 1024;

let library: BuiltLibrary;
let program: string;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
  program = await library.updatesProgram();
});

afterAll(async () => {
  await library?.remove();
});

interface Sent {
  readonly subject: string;
  readonly hex: string;
}

/** The records that C publishes for calls, by shard, each shard's in their order. */
async function sentByC(job: CallJob, calls: readonly SentCall[]): Promise<readonly Sent[]> {
  const output = await new Promise<string>((resolve, reject) => {
    const child = execFile(program, [], { maxBuffer: OUTPUT_BYTES_MAX }, (error, stdout) => {
      if (error === null) resolve(stdout);
      else reject(error);
    });
    child.stdin?.end(toScript(job, calls));
  });
  const lines = output.trimEnd().split("\n");
  const done = lines.filter((line) => line.startsWith("done "));
  // No outcome comes: what waits for one ends at its deadline.
  const expected = calls.map(({ kind }) =>
    kind === "create" || kind === "contribute" ? /^done OUTCOME_UNKNOWN/ : /^done OK$/,
  );
  expect(done).toHaveLength(calls.length);
  for (const [i, line] of done.entries()) expect(line).toMatch(expected[i] ?? "");
  const shardOf = (subject: string): number => Number(subject.split(".")[3]);
  return lines
    .filter((line) => line.startsWith("record "))
    .map((line) => {
      const [, subject = "", hex = ""] = line.split(" ");
      return { subject, hex };
    })
    .sort((a, b) => shardOf(a.subject) - shardOf(b.subject));
}

async function sentByTypeScript(
  job: CallJob,
  calls: readonly SentCall[],
): Promise<readonly Sent[]> {
  const records = await recordsOf(job, calls);
  return records.map(({ subject, bytes }) => ({ subject, hex: toHex(bytes) }));
}

/** Compares them one by one: of lists so long, a difference would not be shown. */
function expectEqual(c: readonly Sent[], typescript: readonly Sent[]): void {
  expect(c.map(({ subject }) => subject)).toEqual(typescript.map(({ subject }) => subject));
  typescript.forEach((record, i) => {
    if (c[i]?.hex !== record.hex)
      expect(c[i]?.hex.slice(0, 4_000)).toBe(record.hex.slice(0, 4_000));
    expect(c[i]?.hex === record.hex, record.subject).toBe(true);
  });
}

test("C sends the records of the shared vectors", async () => {
  const path = join(import.meta.dirname, "../vectors/calls.json");
  const { calls } = JSON.parse(readFileSync(path, "utf8")) as { calls: { records: Sent[] }[] };
  expect(calls).toHaveLength(callVectors.length);
  for (const [i, { job, calls: made }] of callVectors.entries()) {
    expectEqual(await sentByC(job, made), calls[i]?.records ?? []);
  }
});

test.each(Array.from({ length: SEEDS / SEEDS_AT_ONCE }, (_, i) => 1 + i * SEEDS_AT_ONCE))(
  "C sends the records of TypeScript for calls by chance, from seed %i on",
  async (first) => {
    for (let seed = first; seed < first + SEEDS_AT_ONCE; seed++) {
      const { job, calls } = randomCalls(new Random(seed));
      expectEqual(await sentByC(job, calls), await sentByTypeScript(job, calls));
    }
  },
);

test.each(limitCalls)("C fills batches up to the same limits: $what", async ({ job, calls }) => {
  const records = await sentByTypeScript(job, calls);
  expect(records.length).toBeGreaterThan(1);
  expectEqual(await sentByC(job, calls), records);
});

test("calls by chance send batches, single records, and each kind of both, of all types, in all encodings", async () => {
  const verbs = new Set<string>();
  const dtypes = new Set<string>();
  const encodings = new Set<string>();
  let batches = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { job, calls } = randomCalls(new Random(seed));
    for (const call of calls) {
      for (const { name } of "values" in call ? call.values : [call]) {
        dtypes.add(parameterOf(job, name).dtype);
      }
      if ("encoding" in call && call.encoding !== undefined) encodings.add(call.encoding);
    }
    for (const { subject } of await recordsOf(job, calls)) {
      const verb = subject.split(".")[6] ?? "";
      verbs.add(verb);
      if (verb === "batch") batches += 1;
    }
  }
  expect([...verbs].sort()).toEqual(["batch", "init", "push", "set"]);
  expect(batches).toBeGreaterThan(100);
  expect([...dtypes].sort()).toEqual(Object.keys(DTYPES).sort());
  expect([...encodings].sort()).toEqual(Object.keys(ENCODINGS).sort());
});
