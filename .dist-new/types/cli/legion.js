/** The program `legion`: translates the old command line into one of `pserver run`. */
import { checkNodeVersion } from "./node-version.js";
checkNodeVersion("legion");
const { runLegion } = await import("./run/run-legion.js");
const { runMain: runProcess } = await import("./main.js");
await runProcess(runLegion);
//# sourceMappingURL=legion.js.map