// Proves that trainers in TypeScript, C and Python make one team: they train one job at the same time with
// gradients, rows, pushes and parts in every encoding, and all read the same bytes, which are those of a
// fold of the journal, and what the exact ones of their numbers come to.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import type { RunningProgram } from "../../c/running-program.ts";
import { startProgram, startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { pythonOf, TREE } from "../../support/find-python.ts";
import type { TestJob } from "../../support/host.ts";
import { LASTING_LEASE_MS } from "../../support/limits.ts";
import { Archive } from "../host/journal-fold.ts";
import { elementsOf, expectedValues, NAMES, readAll, SHAPES, train } from "./team.ts";

const TRAINERS = 3;
const ROUNDS = 7;

let library: BuiltLibrary;
let program: string;
let python: string;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-team-"));
  library = await BuiltLibrary.build(SANITIZED);
  program = await library.program("team");
  python = await pythonOf("empty");
});

afterAll(async () => {
  await library?.remove();
  await rm(directory, { recursive: true, force: true });
});

test.each([
  ["async", {}],
  [
    "sync",
    {
      synchronization: { mode: "sync", trainers: TRAINERS, reduce: "sum" } as const,
      leaseMs: LASTING_LEASE_MS,
    },
  ],
])("%s", async (_, defaults) => {
  const job = await startServedJob(defaults);
  const file = (language: string): string => join(directory, `${language}-${job.job}`);
  const args = (number: number, path: string): string[] => [
    ...[job.broker.url, job.job, `${number}`, `${ROUNDS}`],
    path,
  ];
  const inC = startProgram(program, args(1, file("c")));
  const script = join(TREE, "tests", "team.py");
  const inPython = startProgram(python, ["-B", script, ...args(2, file("python"))]);
  const client = await job.trainer("ts-3");
  await train(client, 3, ROUNDS);
  await Promise.all([inC, inPython].map((trainer) => trainer.lines("trained", 1)));

  const bytes = await readAll(client);
  expect((await bytesIn(inC, file("c"))).equals(bytes)).toBe(true);
  expect((await bytesIn(inPython, file("python"))).equals(bytes)).toBe(true);
  const folded = await foldedBytes(job, client);
  expect(bytes.subarray(0, folded.length).equals(folded)).toBe(true);
  checkExact(bytes);
});

/** What a trainer in another process reads once it is told to. */
async function bytesIn(trainer: RunningProgram, path: string): Promise<Buffer> {
  trainer.say("read");
  await trainer.end();
  return await readFile(path);
}

/** The values of all parameters as another reader of the journals folds them. */
async function foldedBytes(job: TestJob, client: Client): Promise<Buffer> {
  await using archive = await Archive.open(job.broker.url, job.job);
  const infos = new Map((await client.listParams()).map((info) => [info.name, info]));
  const shardCount = infos.get("w")?.layout.shards ?? 0;
  const shards = await Promise.all(
    Array.from({ length: shardCount }, (_, shard) => archive.fold(shard)),
  );
  const blocks = NAMES.flatMap((name) => {
    const { firstShard = 0, blocks: count = 0 } = infos.get(name)?.layout ?? {};
    return Array.from({ length: count }, (_, i) => {
      const block = shards[(firstShard + i) % shardCount]?.block(name, i);
      return block?.values() ?? Buffer.alloc(0);
    });
  });
  return Buffer.concat(blocks);
}

/** What does not depend on the order of updates is what they come to. */
function checkExact(bytes: Buffer): void {
  const expected = expectedValues(TRAINERS, ROUNDS);
  let start = 0;
  for (const [name, shape] of Object.entries(SHAPES)) {
    const end = start + elementsOf(shape) * (name === "counts" ? 8 : 4);
    const own = Uint8Array.from(bytes.subarray(start, end)).buffer;
    if (name === "counts") {
      expect([...new BigInt64Array(own)]).toEqual(Array(TRAINERS).fill(BigInt(ROUNDS)));
    }
    const values = expected.get(name);
    if (values !== undefined) {
      expect(
        new Float32Array(own).findIndex((value, i) => value !== values[i]),
        name,
      ).toBe(-1);
    }
    start = end;
  }
  // All in float32 after these: "blend" in two encodings, and a part of it.
  expect(bytes.length - start).toBe(4 * (2 * elementsOf(SHAPES.blend) + 48));
}
