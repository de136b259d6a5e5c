import type { CliContext } from "../context.ts";
import { untilAborted } from "../interrupts.ts";
import type { Output, OutputFlags } from "../output/output.ts";
import { LocalServer, type LocalServerFlags, type ServerReady } from "./local-server.ts";
import { describeReady } from "./messages.ts";

/** Flags of `pserver up`. */
export interface UpFlags extends LocalServerFlags, OutputFlags {}

/** What `pserver up --json` prints when it serves. */
export interface UpReady extends ServerReady {
  readonly ready: true;
}

/**
 * Runs a broker and hosts until it is interrupted; then stops the hosts and last the broker.
 * @throws what a start failed for, or why no broker or no host is left; ABORTED if it is
 * interrupted before it serves.
 */
export async function runUp(context: CliContext, output: Output, flags: UpFlags): Promise<void> {
  const server = await LocalServer.start(context, output, flags);
  try {
    const ready: UpReady = { ready: true, ...server.ready };
    if (output.json) output.value(ready);
    else output.lines(describeReady(ready, output.paint));
    const failed = await Promise.race([untilAborted(context.signal), server.failed]);
    if (failed !== undefined) throw failed;
    output.message("stopping; Ctrl-C again stops at once");
  } finally {
    await server.stop();
  }
}
