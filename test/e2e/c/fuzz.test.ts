// Proves that no answer of a broker or a host makes the C library crash: the fuzz target runs the kept
// inputs, then inputs that it makes from these, under address and undefined behaviour sanitizers. A finding
// is printed in base64; once the defect is corrected, keep the input in the corpus. FUZZ_RUNS=<count> makes
// more inputs.
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CORPUS, compileFuzzer, runFuzzer } from "../../c/fuzz/fuzzer.ts";
import { fuzzSeeds } from "../../c/fuzz/seeds.ts";

/** Inputs to run; twice as many reach hardly any more of the code. */
const RUNS = process.env["FUZZ_RUNS"] ?? "8000";

let directory: string;
let target: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-fuzz-"));
  target = join(directory, "replies");
  await compileFuzzer(target);
});

afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

/** The runs that the fuzzer counted. */
function runsIn(output: string): number {
  return Number(/^Done (\d+) runs/m.exec(output)?.[1]);
}

test("takes every input that was kept", async () => {
  const kept = await readdir(CORPUS);
  const output = await runFuzzer(target, directory, ["-runs=0", CORPUS]);
  expect(kept.length).toBeGreaterThan(50);
  expect(runsIn(output)).toBeGreaterThanOrEqual(kept.length);
});

test("takes what thousands of changes to them give", async () => {
  // New inputs go into the first directory that is named, which is not the one that is kept.
  const found = await mkdtemp(join(directory, "found-"));
  const seeds = await mkdtemp(join(directory, "seeds-"));
  for (const [name, bytes] of fuzzSeeds()) await writeFile(join(seeds, name), bytes);
  const output = await runFuzzer(target, directory, [
    ...[`-runs=${RUNS}`, "-seed=4", "-verbosity=1"],
    ...[found, seeds, CORPUS],
  ]);
  expect(runsIn(output)).toBeGreaterThanOrEqual(Number(RUNS));
});
