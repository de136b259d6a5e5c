// Proves that the C library sends what a call has for a block as one record, as the TypeScript client
// does: gradients of a megabyte of rows keep step with another trainer and lose no row, whether a
// table is one block or several; whole blocks are named by no index; the values are those of a computed
// reference.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { startProgram, startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { LASTING_LEASE_MS } from "../../support/limits.ts";
import { Traffic } from "../../support/traffic.ts";

const SYNC = { mode: "sync", trainers: 2, backups: 0, reduce: "mean" } as const;
const STEPS = 3;
const WIDTH = 32;
const ROW_BYTES = 4 * WIDTH;

let library: BuiltLibrary;
let program: string;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
  program = await library.program("rows");
});

afterAll(async () => {
  await library?.remove();
});

/** The numbers of the rows of each gradient, in the order of rows.c. */
function rowNumbers(named: number): number[] {
  return [...Array.from({ length: named }, (_, i) => named - 1 - i), 0];
}

function gradientValues(named: number, factor: number): Float32Array {
  return Float32Array.from({ length: (named + 1) * WIDTH }, (_, i) => factor * (i % 128));
}

/** What the same steps with one gradient make of a table of zeros; every number is exact. */
function reference(rows: number, named: number, factor: number): Float32Array {
  const table = new Float32Array(rows * WIDTH);
  const values = gradientValues(named, factor);
  rowNumbers(named).forEach((row, i) => {
    for (let j = 0; j < WIDTH; j++) {
      const at = row * WIDTH + j;
      table[at] = (table[at] as number) - STEPS * (values[i * WIDTH + j] as number);
    }
  });
  return table;
}

async function train(client: Client, named: number, factor: number): Promise<void> {
  const gradient = { rows: rowNumbers(named), values: gradientValues(named, factor) };
  for (let step = 0; step < STEPS; step++) {
    expect(await client.sendGrads({ table: gradient })).toEqual({ lateBlocks: 0 });
  }
}

test.each([
  // 2.5 MB: one block. A record of 1 MiB of it.
  { rows: 20_000, named: 8_000, pieces: [8_000] },
  // 7.3 MB: 8 blocks of 8,192 rows. Two of them whole, part of a third.
  { rows: 60_000, named: 20_000, pieces: [8_192, 8_192, 3_616] },
])("$named of $rows rows, in a job that keeps step", async (table) => {
  const { rows, named, pieces } = table;
  const job = await startServedJob({ synchronization: SYNC, leaseMs: LASTING_LEASE_MS });
  await using traffic = await Traffic.listen(job.broker.url, "ps.j.log.*.trainer.c.push.>");
  const args = [job.broker.url, job.job, "c", rows, WIDTH, named, 3, STEPS];
  const inC = startProgram(program, args.map(String));
  const client = await job.trainer("ts");
  await client.pullFull("table");
  await train(client, named, 1);
  await inC.end();
  const { data } = await client.pullFull("table");
  // The mean of one and three times the values.
  const expectedBytes = Buffer.from(reference(rows, named, 2).buffer);
  expect(Buffer.from(data.buffer).equals(expectedBytes)).toBe(true);
  // Shards take turns, so that which block of a step goes first varies.
  const ascending = (a: number, b: number): number => a - b;
  const sent = (await traffic.take()).map(({ bytes }) => bytes).sort(ascending);
  const expected = Array.from({ length: STEPS }, () => pieces)
    .flat()
    .sort(ascending);
  expect(sent).toHaveLength(expected.length);
  expected.forEach((pieceRows, i) => {
    // A whole block, of 8,192 rows, has no index.
    const indexBytes = pieceRows === 8_192 ? 0 : 4 * pieceRows;
    expect((sent[i] as number) - pieceRows * ROW_BYTES - indexBytes).toBeLessThan(1_000);
  });
});
