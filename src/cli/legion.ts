#!/usr/bin/env node
/** The program `legion`: the old command line, as one of `pserver run`. */
import { runLegion } from "./legion/run-legion.ts";
import { runProcess } from "./run-process.ts";

await runProcess(runLegion);
