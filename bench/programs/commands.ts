import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { runCli } from "../../src/cli/run-cli.ts";
import { machineMs, serveAgent } from "../agent.ts";

/** The result of a command. */
export interface CommandRun {
  readonly elapsedMs: number;
  /** Number of characters printed, which are as many bytes. */
  readonly printedBytes: number;
}

/**
 * Commands of `pserver`, run in this process, with their output to a device that takes everything.
 */
const commands = {
  /**
   * Runs one command.
   * @throws if it fails.
   */
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
