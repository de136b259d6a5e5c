/** The program `legion`: translates the old command line into one of `pserver run`. */
import { checkNodeVersion } from "./node-version.ts";

checkNodeVersion("legion");
const { runLegion } = await import("./run/run-legion.ts");
const { runMain: runProcess } = await import("./main.ts");
await runProcess(runLegion);
