/** The program `pserver`: one command line, run in this process. */
import { checkNodeVersion } from "./node-version.ts";

checkNodeVersion("pserver");
const { runCli } = await import("./run-cli.ts");
const { runProcess } = await import("./run-process.ts");
await runProcess(runCli);
