import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { runCli } from "../../src/cli/run-cli.ts";
import { machineMs, serveAgent } from "../agent.ts";

/** What a command has done. */
export interface CommandRun {
  readonly elapsedMs: number;
  /** Characters printed: as many bytes. */
  readonly printedBytes: number;
}

/** Commands of `pserver`, run in this process, with their output to a device that takes all. */
const commands = {
  /** Runs one; @throws if it fails. */
  async run(args: readonly string[]): Promise<CommandRun> {
    const stdout = createWriteStream("/dev/null");
    const startMs = machineMs();
    const { signal } = new AbortController();
    const exitCode = await runCli(args, {
      ...{ stdin: process.stdin, stdout, stderr: process.stderr, environment: {}, signal },
    });
    stdout.end();
    await once(stdout, "finish");
    if (exitCode !== 0) throw new Error(`pserver ${args.join(" ")}: exit code ${exitCode}`);
    return { elapsedMs: machineMs() - startMs, printedBytes: stdout.bytesWritten };
  },
};

export type CommandRunner = typeof commands;

serveAgent(commands);
