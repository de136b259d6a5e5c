import type { CliContext } from "../context.ts";
import { untilAborted } from "../interrupts.ts";
import { formatCount } from "../output/amounts.ts";
import type { Paint } from "../output/colors.ts";
import type { Output, OutputFlags } from "../output/output.ts";
import { type LocalServerFlags, type ServerReady, startLocalServer } from "./local-server.ts";

/** Flags of `pserver up`. */
export interface UpFlags extends LocalServerFlags, OutputFlags {}

/**
 * Runs a broker and hosts until it is interrupted; then stops the hosts and last the broker.
 * @throws the error that kept it from starting, or why no broker or no host is left; ABORTED if it is
 * interrupted before it serves.
 */
export async function runUp(context: CliContext, output: Output, flags: UpFlags): Promise<void> {
  const server = await startLocalServer(context, output, flags);
  try {
    if (output.json) output.value({ ready: true, ...server.ready });
    else output.lines(describeReady(server.ready, output.paint));
    const failed = await Promise.race([untilAborted(context.signal), server.failed]);
    if (failed !== undefined) throw failed;
    output.message("stopping; Ctrl-C again stops at once");
  } finally {
    await server.stop();
  }
}

/** What to connect to, for people. */
function describeReady(ready: ServerReady, paint: Paint): string[] {
  const row = (title: string, text: string): string =>
    `  ${paint("faint", title.padEnd(8))} ${text}`;
  return [
    `${paint("ok", "pserver is up")}: job ${paint("strong", ready.job)}`,
    row("broker", `${paint("strong", ready.url)}  (nats-server ${ready.broker.version})`),
    row("hosts", `${formatCount(ready.hosts.length, "host")}: ${ready.hosts.join(", ")}`),
    row("store", ready.store),
    row("models", ready.modelDirectory),
    row(
      "look",
      `pserver status --url ${ready.url}${ready.job === "default" ? "" : ` --job ${ready.job}`}`,
    ),
    "Ctrl-C stops it; started again on the same store it goes on where it was.",
  ];
}
