import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { FailureList } from "./test/support/failure-list.ts";
import { TEST_MS } from "./test/support/limits.ts";
import { longestFirst } from "./test/support/longest-first.ts";

/** Longest first, and the tests of Python, which make its environments while nobody waits for these. */
const LONGEST = [
  "python/torch-training.test.ts",
  "python/torch.test.ts",
  "python/legion.test.ts",
  "host/recover.test.ts",
  "host/etcd.test.ts",
  "host/partition.test.ts",
  "host/cluster.test.ts",
  "e2e/cli.test.ts",
  "host/journal-faults.test.ts",
  "c/paddle-examples.test.ts",
  "host/changed-records.test.ts",
  "training/storm.test.ts",
  "e2e/examples.test.ts",
  "c/races.test.ts",
  "c/memory.test.ts",
  "c/fuzz.test.ts",
  "history/random-training.test.ts",
  "run/local.test.ts",
  "run/batch.test.ts",
  "history/fork.test.ts",
  "client/steps.test.ts",
  "history/archive.test.ts",
  "c/paddle-etcd.test.ts",
  "host/steps.test.ts",
  "history/commands.test.ts",
];

/** What depends on the broker most runs with the oldest broker that may be used, too, which set-up puts here. */
const OLDEST_BROKER = join(import.meta.dirname, ".tools/oldest-broker/nats-server");
const OLDEST_BROKER_TESTS = ["lifecycle", "host/journal-faults", "host/cluster"];

/** End-to-end tests: every file starts brokers and processes of its own on free ports. */
export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: "e2e", include: ["test/e2e/**/*.test.ts"] } },
      {
        extends: true,
        test: {
          name: "oldest broker",
          include: OLDEST_BROKER_TESTS.map((file) => `test/e2e/${file}.test.ts`),
          env: { PSERVER_NATS_SERVER: OLDEST_BROKER },
        },
      },
    ],
    reporters: ["default", new FailureList()],
    pool: "forks",
    // Three for each processor of a small machine: most tests wait for something most of the time.
    maxWorkers: 6,
    // Files share a process, as unit tests do: to start one for each takes half a second of processor time.
    isolate: false,
    // Tokens of brokers are left here, not among those of whoever runs the tests.
    env: { XDG_STATE_HOME: join(import.meta.dirname, "build/tests/state") },
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    // What is compiled runs as it is.
    server: { deps: { external: [/\/build\/programs\//] } },
    sequence: { sequencer: longestFirst(LONGEST) },
  },
});
