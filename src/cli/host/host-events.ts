import type { HostEvent } from "../../actors/host/host.ts";
import { quoteName } from "../../protocol/names.ts";
import { describeFallbacks } from "../output/fallbacks.ts";
import type { Output } from "../output/output.ts";
import { RepeatedWarnings } from "./repeated-warnings.ts";

/** Names of lost parameters in one message. */
const NAMES_SHOWN_MAX = 5;

/**
 * Prints events of a host for its operator, except that shards are taken over and released. The same error is
 * printed once a minute.
 */
export function hostEventPrinter(output: Output): (event: HostEvent) => void {
  const repeated = new RepeatedWarnings();
  return (event) => tellHostEvent(event, output, repeated);
}

function tellHostEvent(event: HostEvent, output: Output, repeated: RepeatedWarnings): void {
  switch (event.type) {
    case "serving":
    case "released":
      break;
    case "reconnected":
      output.message("the connection to the broker is back");
      break;
    case "etcd-back":
      output.message("etcd answers again");
      break;
    case "disconnected":
      output.warning("the connection to the broker is lost; reconnecting");
      break;
    case "fell-back": {
      const lost = describeFallbacks(event.fallbacks);
      output.warning(
        `shard ${event.shard} goes on from its last snapshot, as its journal in memory is gone: ${lost}`,
      );
      break;
    }
    case "parameters-lost": {
      const { shard, parameters, isJob } = event;
      const what = isJob ? "the job is" : `${listNames(parameters)} are`;
      output.warning(`shard ${shard} has lost parameters: ${what} to be initialized anew`);
      break;
    }
    case "saving": {
      const { length } = event.shards;
      const what = length === 1 ? "1 shard" : `${length} shards`;
      output.warning(`still saving ${what}, as journals in memory go with the broker`);
      break;
    }
    case "shard-recovered": {
      const { shard, generation, fallbacks } = event;
      const lost = describeFallbacks(fallbacks);
      output.warning(`shard ${shard} was recovered under generation ${generation}: ${lost}`);
      break;
    }
    default: {
      const text = repeated.toPrint(describeProblem(event), performance.now());
      if (text !== undefined) output.warning(text);
    }
  }
}

/** The first names of parameters, as `"w", "b" and 3 others`. */
function listNames(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_SHOWN_MAX).map(quoteName).join(", ");
  const more = names.length - NAMES_SHOWN_MAX;
  return more > 0 ? `${shown} and ${more} others` : shown;
}

/** An event that brings an error. */
type Problem = Extract<HostEvent, { readonly error: unknown }>;

function describeProblem(event: Problem): string {
  const { code, message } = event.error;
  switch (event.type) {
    case "shard-failed":
      return `shard ${event.shard} has failed: ${code}: ${message}`;
    case "snapshot-failed":
      return `snapshot of shard ${event.shard}: ${code}: ${message}`;
    case "tape-failed":
      return `tape of shard ${event.shard}: ${code}: ${message}; snapshots wait a few seconds for it`;
    case "tape-incomplete":
      return `tape of shard ${event.shard}: ${code}: ${message}; the shard goes on`;
    case "mark-failed":
      return `mark of shard ${event.shard}: ${code}: ${message}; a loss of later records would not be noticed`;
    case "loss-reported":
      return `shard ${event.shard} goes on, but may have lost records: ${message}`;
    case "unsaved":
      return (
        `shard ${event.shard} was not saved: ${code}: ${message}; ` +
        "when the broker stops, it goes back to its last snapshot"
      );
    case "no-memory":
      return `${code}: ${message}; another host takes it if it can`;
    case "etcd-lost":
      return `${message}; reconnecting`;
    case "error":
      return `${code}: ${message}`;
  }
}
