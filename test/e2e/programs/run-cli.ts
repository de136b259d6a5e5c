/** What the program `pserver` runs, for tests that run commands in their own process. */
export { runCli } from "../../../src/cli/run-cli.ts";
