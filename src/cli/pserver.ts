/** The program `pserver`: one command line, run in this process. */
import { checkNodeVersion } from "./node-version.ts";

checkNodeVersion("pserver");
const { runCli } = await import("./run-cli.ts");
const { runMain: runProcess } = await import("./main.ts");
await runProcess(runCli);
