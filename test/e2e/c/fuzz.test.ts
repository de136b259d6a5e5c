// Proves that no answer of a broker or a host can make the C library fail in a way that is none of its
// own: the fuzz target runs what is kept, then a minute on inputs it makes of that, under address and
// undefined behaviour sanitizers. A finding is printed in base64; once mended, keep it in the corpus.
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CORPUS, compileFuzzer, runFuzzer } from "../../c/fuzz/fuzzer.ts";
import { fuzzSeeds } from "../../c/fuzz/seeds.ts";

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

test("takes what a minute of changes to them gives", async () => {
  // New inputs go into the first directory that is named, which is not the one that is kept.
  const found = await mkdtemp(join(directory, "found-"));
  const seeds = await mkdtemp(join(directory, "seeds-"));
  for (const [name, bytes] of fuzzSeeds()) await writeFile(join(seeds, name), bytes);
  const output = await runFuzzer(target, directory, [
    ...["-max_total_time=60", "-seed=4", "-verbosity=1"],
    ...[found, seeds, CORPUS],
  ]);
  expect(runsIn(output)).toBeGreaterThan(1000);
});
