import { defineConfig } from "vitest/config";
import { TEST_MS } from "./test/support/limits.ts";
import { longestFirst } from "./test/support/longest-first.ts";

/** First those whose tests make the two Python environments, while nobody waits for these. */
const LONGEST = [
  "python/without-server.test.ts",
  "host/recover.test.ts",
  "python/torch-arrays.test.ts",
  "c/paddle-examples.test.ts",
  "e2e/cli.test.ts",
  "host/etcd.test.ts",
  "host/journal-faults.test.ts",
  "c/races.test.ts",
  "examples.test.ts",
  "python/torch.test.ts",
  "host/cluster.test.ts",
  "python/legion-examples.test.ts",
  "c/core.test.ts",
  "c/paddle-etcd.test.ts",
  "run/local.test.ts",
  "c/memory.test.ts",
  "run/batch.test.ts",
  "host/memory.test.ts",
  "python/torch-examples.test.ts",
  "python/torch-training.test.ts",
  "host/lives.test.ts",
  "c/paddle-v2.test.ts",
  "host/many.test.ts",
  "host/full-disk.test.ts",
  "host/steps.test.ts",
  "cli/jobs.test.ts",
  "host/flood.test.ts",
  "c/fuzz.test.ts",
];

/** End-to-end tests: every file starts brokers and processes of its own on free ports. */
export default defineConfig({
  test: {
    include: ["test/e2e/**/*.test.ts"],
    pool: "forks",
    // Two more than there are processors on a small machine: most tests wait for something half the time.
    maxWorkers: 4,
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    sequence: { sequencer: longestFirst(LONGEST) },
  },
});
