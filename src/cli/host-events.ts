import type { HostEvent } from "../actors/host/host.ts";
import { describeTakeOver } from "../actors/owner/take-over.ts";
import { quoteName } from "../protocol/names.ts";
import { describeFallbacks } from "./output/amounts.ts";
import type { Output } from "./output/output.ts";

/** Time for which a printed warning is not printed again. */
const REPEAT_AFTER_MS = 60_000;

/** Number of texts that are remembered; another text takes the place of the one that was printed first. */
const TEXTS_MAX = 256;

/**
 * Lets each text pass at most once a minute: a host that cannot reach its broker fails in the same way four times
 * a second.
 */
export class RepeatedWarnings {
  readonly #printed: Map<string, { atMs: number; suppressed: number }> = new Map();

  /**
   * Returns what to print of a warning: its text, with how often it came since it was last printed; undefined
   * if it is to be kept back. `nowMs` is of a clock that does not go back.
   */
  toPrint(text: string, nowMs: number): string | undefined {
    const known = this.#printed.get(text);
    if (known !== undefined && nowMs - known.atMs < REPEAT_AFTER_MS) {
      known.suppressed += 1;
      return undefined;
    }
    this.#printed.delete(text);
    const [oldest] = this.#printed.keys();
    if (oldest !== undefined && this.#printed.size === TEXTS_MAX) this.#printed.delete(oldest);
    this.#printed.set(text, { atMs: nowMs, suppressed: 0 });
    const suppressed = known?.suppressed ?? 0;
    if (suppressed === 0) return text;
    return `${text} (${suppressed === 1 ? "once" : `${suppressed} times`} more in the meantime)`;
  }
}

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
    case "taking-over":
      output.message(`taking over shard ${event.shard}: ${describeTakeOver(event)}`);
      break;
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

/** Lists the first names of parameters, as `"w", "b" and 3 others`. */
function listNames(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_SHOWN_MAX).map(quoteName).join(", ");
  const othersCount = names.length - NAMES_SHOWN_MAX;
  return othersCount > 0 ? `${shown} and ${othersCount} others` : shown;
}

/** An event that carries an error. */
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
    case "archiver-stopped":
      return `${code}: ${message}; hosts trim without it, see "pserver status"`;
    case "archiver-behind":
      return `shard ${event.shard}: ${message}; its archive has a gap`;
    case "replica-damaged":
      return `${message}; another copy is used: replace this one as docs/guides/cluster.md says`;
    case "unsaved":
      return (
        `shard ${event.shard} was not saved: ${code}: ${message}; ` +
        "when the broker stops, it goes back to its last snapshot"
      );
    case "no-memory":
      return `${code}: ${message}; another host takes it if it can`;
    case "close-failed":
      return `shard ${event.shard}: ${code}: ${message}; the round stays open and is closed later`;
    case "flooded":
      return `${code}: ${message}`;
    case "etcd-lost":
      return `${message}; reconnecting`;
    case "error":
      return `${code}: ${message}`;
  }
}
