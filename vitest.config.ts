import { defineConfig } from "vitest/config";
import { longestFirst } from "./test/support/longest-first.ts";

/** Unit and property tests: no broker, no child process. */
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/e2e/**", "node_modules/**"],
    pool: "forks",
    // By default one less than there are processors, which on two is one after the other.
    maxWorkers: 2,
    testTimeout: 20_000,
    sequence: { sequencer: longestFirst(["simulation/simulation.test.ts"]) },
  },
});
