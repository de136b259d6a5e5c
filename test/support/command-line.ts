import { PassThrough } from "node:stream";
import type { Command } from "commander";
import { createProgram } from "../../src/cli/program.ts";
import { legionCommand } from "../../src/cli/run/run-legion.ts";

/** Makes a program whose commands parse their lines and do nothing. */
export function makeProgram(name: "pserver" | "legion"): Command {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const { signal } = new AbortController();
  const context = { stdin, stdout, stderr, environment: {}, signal, setExitCode: () => {} };
  if (name === "legion") return legionCommand(async () => {});
  const program = createProgram(context, { json: false, paint: (_, text) => text });
  for (const command of program.commands) command.action(() => {});
  return program;
}

/** Parses the arguments of `pserver`; rejects if it would refuse the line. */
export async function parsePserver(args: readonly string[]): Promise<void> {
  await makeProgram("pserver").parseAsync(args, { from: "user" });
}
