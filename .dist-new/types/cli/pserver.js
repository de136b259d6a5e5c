/** The program `pserver`: one command line, run in this process. */
import { checkNodeVersion } from "./node-version.js";
checkNodeVersion("pserver");
const { runCli } = await import("./run-cli.js");
const { runMain: runProcess } = await import("./main.js");
await runProcess(runCli);
//# sourceMappingURL=pserver.js.map