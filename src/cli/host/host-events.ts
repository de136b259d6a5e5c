import type { HostEvent } from "../../actors/host/host.ts";
import { describeFallbacks } from "../output/fallbacks.ts";
import type { Output } from "../output/output.ts";

/** Prints events of a host for its operator, except that shards are taken over and released. */
export function tellHostEvent(event: HostEvent, output: Output): void {
  switch (event.type) {
    case "serving":
    case "released":
      return;
    case "shard-failed":
      output.warning(
        `shard ${event.shard} has failed: ${event.error.code}: ${event.error.message}`,
      );
      return;
    case "shard-recovered":
      output.warning(
        `shard ${event.shard} was recovered under generation ${event.generation}: ` +
          describeFallbacks(event.fallbacks),
      );
      return;
    case "snapshot-failed":
      output.warning(
        `snapshot of shard ${event.shard}: ${event.error.code}: ${event.error.message}`,
      );
      return;
    case "mark-failed":
      output.warning(
        `mark of shard ${event.shard}: ${event.error.code}: ${event.error.message}; ` +
          "a loss of later records would not be noticed",
      );
      return;
    case "loss-reported":
      output.warning(
        `shard ${event.shard} goes on, but may have lost records: ${event.error.message}`,
      );
      return;
    case "no-memory":
      output.warning(
        `${event.error.code}: ${event.error.message}; another host takes it if it can`,
      );
      return;
    case "disconnected":
      output.warning("the connection to the broker is lost; reconnecting");
      return;
    case "reconnected":
      output.message("the connection to the broker is back");
      return;
    case "etcd-lost":
      output.warning(`${event.error.message}; reconnecting`);
      return;
    case "etcd-back":
      output.message("etcd answers again");
      return;
    case "error":
      output.warning(`${event.error.code}: ${event.error.message}`);
  }
}
