/** What test/c/programs/train.c leaves behind. */
import { expect } from "vitest";
import type { Client } from "../../src/client/index.ts";

/** Parameters that the program adds to in batches, if the job takes them. */
const SMALL = Array.from({ length: 24 }, (_, i) => `small.${i}`);

/** Expects that each of so many rounds, of all threads together, was applied once. */
export async function expectRounds(client: Client, rounds: number): Promise<void> {
  const names = ["steps", "wide", "table", ...SMALL];
  const [steps, wide, table, ...small] = await client.getParams(names);
  expect(steps?.data).toEqual(Float32Array.of(rounds));
  expect(new Set(wide?.data as Float32Array)).toEqual(new Set([rounds]));
  for (const { data } of small) expect(data).toEqual(new Float32Array(8).fill(rounds));
  const rows = new Float32Array(400 * 2);
  rows.fill(rounds, 2, 4).fill(2 * rounds, 6, 8);
  expect(table?.data).toEqual(rows);
}
