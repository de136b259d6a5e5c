#!/usr/bin/env node
/** The program `legion`: translates the old command line into one of `pserver run`. */
import { runLegion } from "./legion/run-legion.ts";
import { runProcess } from "./run-process.ts";

await runProcess(runLegion);
