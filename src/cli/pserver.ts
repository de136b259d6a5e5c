#!/usr/bin/env node
/** The program `pserver`: one command line, run in this process. */
import { runCli } from "./run-cli.ts";
import { runProcess } from "./run-process.ts";

await runProcess(runCli);
