import type { KnipConfig } from "knip";

/** Settings of knip, which finds files, exports and dependencies that nothing uses (`make check`). */

/** With `--production`, uses by tests, benchmarks and scripts do not count. */
const isProduction = process.argv.includes("--production");

const config: KnipConfig = {
  entry: [
    "src/cli/{pserver,legion}.ts!",
    "src/{client,history,protocol}/index.ts!",
    // Started as threads.
    "src/actors/host/host-worker.ts!",
    "src/history/replay/replay-worker.ts!",
    // Bundled for browsers.
    "src/page/page.ts!",
    // Read by scripts/write-man-pages.mjs.
    "src/cli/run/run-legion.ts!",
    "bench/{main,rows}.ts",
    "bench/peers/main.ts",
    "bench/storm/main.ts",
    "bench/programs/*.ts",
    "examples/**/*.ts",
    "test/e2e/programs/*.ts",
    "scripts/**/*.mjs",
  ],
  project: [
    "src/**/*.ts!",
    // Another language, which its own compiler reads.
    "!src/**/assembly/**",
    "!src/**/assembly/**!",
    "{bench,examples,test}/**/*.ts",
    "scripts/**/*.mjs",
  ],
  // What a test examines by itself may be exported for it, if its own file uses it.
  ignoreExportsUsedInFile: isProduction,
  exclude: ["duplicates"],
  ignoreBinaries: ["make", "mkfifo", "mount", "umount", "openssl", "systemd-analyze"],
  // Run by the Makefile; read as data by an example; part of a package that is named.
  ignoreDependencies: ["@biomejs/biome", "mnist", "@nats-io/nats-core"],
};

export default config;
