import { defineConfig } from "vitest/config";
import { TEST_MS } from "./test/support/limits.ts";
import { longestFirst } from "./test/support/longest-first.ts";

const LONGEST = [
  "c/fuzz.test.ts",
  "c/races.test.ts",
  "c/paddle-examples.test.ts",
  "host/etcd.test.ts",
  "host/cluster.test.ts",
  "host/recover.test.ts",
  "e2e/cli.test.ts",
  "python/client.test.ts",
  "examples.test.ts",
  "host/journal-faults.test.ts",
  "c/paddle-etcd.test.ts",
  "host/many.test.ts",
  "c/core.test.ts",
  "c/paddle-v2.test.ts",
  "host/full-disk.test.ts",
  "host/steps.test.ts",
  "run/batch.test.ts",
  "c/memory.test.ts",
  "run/local.test.ts",
  "c/mixed-training.test.ts",
];

/** End-to-end tests: every file starts brokers and processes of its own on free ports. */
export default defineConfig({
  test: {
    include: ["test/e2e/**/*.test.ts"],
    pool: "forks",
    // One more than there are processors on a small machine: most tests wait for something half the time.
    maxWorkers: 3,
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    sequence: { sequencer: longestFirst(LONGEST) },
  },
});
