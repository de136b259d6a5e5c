import { defineConfig } from "vitest/config";
import { FailureList } from "./test/support/failure-list.ts";
import { HANG_MS } from "./test/support/limits.ts";
import { longestFirst } from "./test/support/longest-first.ts";

/** Unit and property tests: no broker, no child process. */
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/e2e/**", "node_modules/**"],
    reporters: ["default", new FailureList()],
    pool: "forks",
    // By default one less than there are processors, which on two is one after the other.
    maxWorkers: 2,
    // Files share a process: to start one for each would take a third of the time. So each restores what
    // it replaces for all, such as timers.
    isolate: false,
    testTimeout: HANG_MS,
    hookTimeout: HANG_MS,
    sequence: {
      sequencer: longestFirst([
        "simulation/simulation.test.ts",
        "simulation/operators/operators.test.ts",
        "c/library.test.ts",
        "c/scripted.test.ts",
      ]),
    },
  },
});
