import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { TEST_MS } from "./test/support/limits.ts";
import { longestFirst } from "./test/support/longest-first.ts";

/** First those whose tests make the two Python environments, while nobody waits for these. */
const LONGEST = [
  "python/without-server.test.ts",
  "host/etcd.test.ts",
  "python/torch-arrays.test.ts",
  "host/recover.test.ts",
  "c/paddle-examples.test.ts",
  "e2e/cli.test.ts",
  "python/torch.test.ts",
  "host/journal-faults.test.ts",
  "host/changed-records.test.ts",
  "host/cluster.test.ts",
  "host/partition.test.ts",
  "examples.test.ts",
  "c/races.test.ts",
  "c/fuzz.test.ts",
  "history/commands.test.ts",
  "history/random-training.test.ts",
  "history/replay.test.ts",
  "history/log.test.ts",
  "run/local.test.ts",
  "c/paddle-etcd.test.ts",
  "run/batch.test.ts",
  "host/steps.test.ts",
  "history/archiver.test.ts",
  "history/verify.test.ts",
  "history/fork.test.ts",
  "history/rewind.test.ts",
  "history/stories.test.ts",
  "client/steps.test.ts",
  "c/memory.test.ts",
  "c/paddle-v2.test.ts",
  "host/memory.test.ts",
  "python/legion-examples.test.ts",
  "python/sources.test.ts",
  "e2e/cli-exits.test.ts",
  "host/many.test.ts",
  "cli/jobs.test.ts",
  "host/recover-steps.test.ts",
  "host/lives.test.ts",
  "python/torch-examples.test.ts",
  "python/processes.test.ts",
  "python/torch-training.test.ts",
  "host/flood.test.ts",
  "host/full-disk.test.ts",
  "c/core.test.ts",
  "c/mixed-training.test.ts",
  "python/client.test.ts",
  "etcd/command.test.ts",
];

/** What depends on the broker most runs with the oldest brokers that may be used, too, which set-up puts here. */
const OLD_BROKERS = join(import.meta.dirname, ".tools/brokers");
const OLD_BROKER_TESTS = ["lifecycle", "host/journal-faults", "host/cluster"];

const oldBrokers = (existsSync(OLD_BROKERS) ? readdirSync(OLD_BROKERS) : []).filter((version) =>
  existsSync(join(OLD_BROKERS, version, "nats-server")),
);

/** End-to-end tests: every file starts brokers and processes of its own on free ports. */
export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: "e2e", include: ["test/e2e/**/*.test.ts"] } },
      ...oldBrokers.map((version) => ({
        extends: true as const,
        test: {
          name: version,
          include: OLD_BROKER_TESTS.map((file) => `test/e2e/${file}.test.ts`),
          env: { PSERVER_NATS_SERVER: join(OLD_BROKERS, version, "nats-server") },
        },
      })),
    ],
    pool: "forks",
    // Three for each processor of a small machine: most tests wait for something most of the time.
    maxWorkers: 6,
    // Files share a process, as unit tests do: to start one for each takes half a second of processor time.
    isolate: false,
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    // What is compiled runs as it is.
    server: { deps: { external: [/\/build\/programs\//] } },
    sequence: { sequencer: longestFirst(LONGEST) },
  },
});
