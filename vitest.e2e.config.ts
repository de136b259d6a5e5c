import { defineConfig } from "vitest/config";

/** End-to-end tests: every file starts brokers and processes of its own on free ports. */
export default defineConfig({
  test: {
    include: ["test/e2e/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
