// Proves what the comparison with other systems is asked for and prints: its options, which systems make which
// steps, when ps-lite is left out and why, and that each is divided by the raw steps of its own round. It starts
// no other system.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readPeersOptions } from "../../bench/peers/options.ts";
import { COMPARED_STEPS, canMake, PS_LITE, PYTHON_PEERS } from "../../bench/peers/peers.ts";
import { buildPsLitePeer } from "../../bench/peers/ps-lite.ts";
import { comparisonTables } from "../../bench/steps/step-table.ts";
import { measureSteps, type StepMaker, type StepTime } from "../../bench/steps/step-times.ts";

describe("the options", () => {
  test("ask for five rounds, a table, and no ps-lite unless they say otherwise", () => {
    const expected = { rounds: 5, json: false, psLiteDirectory: undefined };
    expect(readPeersOptions([])).toEqual(expected);
  });

  test("name a ps-lite by a path from the current directory", () => {
    const found = readPeersOptions(["--ps-lite", "../ps-lite", "--rounds", "2", "--json"]);
    const expected = { rounds: 2, json: true, psLiteDirectory: resolve("../ps-lite") };
    expect(found).toEqual(expected);
  });

  test.each([
    [["--rounds", "0"], "--rounds: expected a whole number of 1 or more; received 0"],
    [["--rounds", "1.5"], "--rounds: expected a whole number of 1 or more; received 1.5"],
    [["--ps-lite", ""], "--ps-lite: expected a directory; received nothing"],
    [["--ps-lite"], "--ps-lite"],
    [["--pslite", "x"], "--pslite"],
    [["x"], "x"],
  ])("are refused as %j with what is wrong", (args, message) => {
    expect(() => readPeersOptions(args)).toThrow(message);
  });

  test("are explained by --help, whatever else is given", () => {
    const found = readPeersOptions(["--rounds", "0", "--help"]);
    const text = "help" in found ? found.help : "";
    for (const flag of ["--rounds N", "--ps-lite DIR", "--json"]) expect(text).toContain(flag);
  });
});

describe("the steps", () => {
  test("are rows of a table, and tensors of three sizes", () => {
    const names = COMPARED_STEPS.map(({ name }) => name);
    const expected = [
      "4,096 rows of 1,000,000 × 64",
      "16 × 64 KiB",
      "10,000 × 64 bytes",
      "40 × 1 MiB",
    ];
    expect(names).toEqual(expected);
  });

  test("are made by every system, but ten thousand tensors not by TensorFlow", () => {
    const leftOut = [...PYTHON_PEERS, PS_LITE].flatMap((peer) =>
      COMPARED_STEPS.filter((step) => !canMake(peer, step)).map(({ name }) => [peer.id, name]),
    );
    expect(leftOut).toEqual([["tensorflow", "10,000 × 64 bytes"]]);
  });
});

describe("ps-lite is left out", () => {
  let directory: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "pserver-ps-lite-"));
  });
  afterEach(() => rm(directory, { recursive: true }));

  test("if none is named", async () => {
    await expect(buildPsLitePeer(undefined)).rejects.toThrow(
      "no built ps-lite is named (--ps-lite DIR)",
    );
  });

  test("if the directory holds something else", async () => {
    const header = join(directory, "include", "ps", "ps.h");
    await expect(buildPsLitePeer(directory)).rejects.toThrow(`${header} is missing`);
  });

  test("if it has not been built", async () => {
    await mkdir(join(directory, "include", "ps"), { recursive: true });
    await writeFile(join(directory, "include", "ps", "ps.h"), "");
    const library = join(directory, "build", "libps.a");
    await expect(buildPsLitePeer(directory)).rejects.toThrow(
      `expected a ps-lite in which \`make ps\` has been run; ${library} is missing`,
    );
  });
});

/** Makes the steps of this test's process: one a run, of so many ms, in turn after the warm-up. */
function makerOf(name: string, baseline: string | undefined, ms: readonly number[]): StepMaker {
  let runs = 0;
  return {
    name,
    baseline,
    processes: () => [{ role: "trainer", pid: process.pid }],
    run: async () => ({ steps: 1, startMs: 0, endMs: ms[runs++ - 1] ?? 0 }),
  };
}

test("a step is divided by the raw one of the same round and of its own kind of journal", async () => {
  const [step] = COMPARED_STEPS;
  if (step === undefined) throw new Error("no step");
  const makers = [
    makerOf("raw, file", undefined, [10, 20, 40]),
    makerOf("ours, file", "raw, file", [10, 40, 20]),
    makerOf("raw, memory", undefined, [1, 2, 4]),
    makerOf("a peer", "raw, memory", [3, 8, 4]),
  ];
  const times = { rounds: 3, durationMs: 0, warmUpMs: 0, log: () => {} };
  const found = await measureSteps(step, makers, times);
  expect(found.map(({ maker, toRaw }) => [maker, toRaw])).toEqual([
    ["raw, file", undefined],
    ["ours, file", { median: 1, min: 0.5, max: 2 }],
    ["raw, memory", undefined],
    ["a peer", { median: 3, min: 1, max: 4 }],
  ]);
});

test("each step has a table, with times, ratios, and the CPU time of all processes", () => {
  const time = (step: string, maker: string, more: Partial<StepTime>): StepTime => ({
    step,
    maker,
    ms: { median: 4, min: 3, max: 5 },
    cpuMs: { broker: 1, host: 2, trainer: 0.5 },
    cpuMsOfAll: 3.25,
    peakMb: {},
    cpuSecondsPerGb: 7,
    ...more,
  });
  const ratio = { median: 0.125, min: 0.1, max: 0.5 };
  const tables = comparisonTables([
    time("a", "raw, file", {}),
    time("a", "ours, file", { toRaw: ratio, cpuMsOfAll: 6 }),
    time("b", "raw, file", {}),
  ]);
  const title = ["ms a step", "to raw", "CPU ms a step"];
  expect(tables).toEqual([
    [
      ["a", ...title],
      ["raw, file", "4.0 (3.0–5.0)", "", "3.3"],
      ["ours, file", "4.0 (3.0–5.0)", "0.13 (0.10–0.50)", "6.0"],
    ],
    [
      ["b", ...title],
      ["raw, file", "4.0 (3.0–5.0)", "", "3.3"],
    ],
  ]);
});
