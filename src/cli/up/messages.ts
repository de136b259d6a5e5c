import type { PserverError } from "../../protocol/errors.ts";
import { formatCount } from "../output/amounts.ts";
import type { Paint } from "../output/colors.ts";
import type { UpReady } from "./run-up.ts";

/** What to connect to, for people. */
export function describeReady(ready: UpReady, paint: Paint): string[] {
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

/** The end of a host that was started again in vain, while others go on. */
export function describeEnd(name: string, reason: PserverError | undefined): string {
  const why = reason === undefined ? "" : `: ${reason.code}: ${reason.message}`;
  return `${name} is given up${why}; its shards go to the others`;
}
