import { isIPv6 } from "node:net";
import type { CliContext } from "../context.ts";
import { withTrainer } from "../open-job.ts";
import type { AskingFlags } from "../options/connection-options.ts";
import type { Output } from "../output/output.ts";
import { untilAborted } from "../signals.ts";
import { LegionGateway } from "./gateway.ts";
import { KnownParameters } from "./known-parameters.ts";
import { MemoryBudget } from "./memory-budget.ts";
import { RequestHandler } from "./request-handler.ts";

/** Flags of `pserver legion-gateway`. */
export interface GatewayFlags extends AskingFlags {
  readonly listen: string;
  readonly port: number;
  readonly maxConnections: number;
  readonly maxMemory: number;
  readonly idleTimeout: number;
  readonly stallTimeout: number;
}

/**
 * Serves trainers that speak Legion's protocol until it is interrupted.
 * @throws the error that kept it from starting, or that ended the gateway's session.
 */
export async function runGateway(
  context: CliContext,
  output: Output,
  flags: GatewayFlags,
): Promise<void> {
  const { listen, job, timeout: timeoutMs } = flags;
  const stop = new AbortController();
  // Not the signal of Ctrl-C, so that requests under way may end.
  await withTrainer(context, flags, async (client) => {
    const parameters = new KnownParameters(client, timeoutMs);
    const budget = new MemoryBudget(flags.maxMemory);
    const gateway = await LegionGateway.start({
      listen,
      port: flags.port,
      connectionsMax: flags.maxConnections,
      timeouts: { idleMs: flags.idleTimeout, stallMs: flags.stallTimeout },
      handlerFor: (tell) =>
        new RequestHandler({ client, parameters, budget, timeoutMs, signal: stop.signal, tell }),
      onMessage: (text) => output.message(text),
      onWarning: (text) => output.warning(text),
    });
    if (!isLoopback(listen)) {
      output.warning(
        `${listen}: anybody who can reach it can change the model: Legion's protocol has no passwords`,
      );
    }
    tellReady(output, listen, gateway.port, job);
    const failure = await Promise.race([untilAborted(context.signal), gateway.failed]);
    if (failure === undefined) output.message("stopping; Ctrl-C again stops at once");
    const closed = gateway.close();
    if (failure !== undefined) stop.abort(failure);
    await closed;
    if (failure !== undefined) throw failure;
  });
}

function tellReady(output: Output, listen: string, port: number, job: string): void {
  if (output.json) {
    output.value({ ready: true, address: listen, port, job });
    return;
  }
  const where = isIPv6(listen) ? `[${listen}]` : listen;
  output.lines([
    `job ${job} serves Legion's trainers on ${where}:${port}; Ctrl-C stops it`,
    `export legion_server_ip=${listen} legion_server_port=${port}`,
  ]);
}

function isLoopback(address: string): boolean {
  return address === "localhost" || address === "::1" || /^127\./.test(address);
}
