/** The program `legion`: translates the old command line into one of `pserver run`. */
import { checkNodeVersion } from "./node-version.ts";

checkNodeVersion("legion");
const { runLegion } = await import("./run/run-legion.ts");
const { runProcess } = await import("./run-process.ts");
await runProcess(runLegion);
