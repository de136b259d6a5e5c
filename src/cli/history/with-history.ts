import { resolveSettings } from "../../client/wire/settings.ts";
import type { HistoryPlace } from "../../history/open-history.ts";
import type { HistorySource } from "../../history/source.ts";
import { defined } from "../../protocol/defined.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { CliContext } from "../context.ts";
import { unlessAborted } from "../interrupts.ts";
import { toOverrides } from "../options/connection-options.ts";
import type { HistoryFlags } from "../options/history-options.ts";

/** The history that a command reads. */
export interface OpenedHistory {
  readonly source: HistorySource;
  /** Where it is, for threads that open it again. */
  readonly place: HistoryPlace;
}

/**
 * Runs `use` with the history that the flags name.
 * @throws as `openHistory` does; what `use` throws; the reason of the context's signal.
 */
export async function withHistory<T>(
  context: CliContext,
  flags: HistoryFlags,
  use: (history: OpenedHistory) => Promise<T>,
): Promise<T> {
  // Loaded here, so that other commands start faster.
  const { openHistory } = await import("../../history/open-history.ts");
  const place = historyPlace(context, flags);
  const source = await unlessAborted(context.signal, openHistory(place));
  try {
    return await use({ source, place });
  } finally {
    await source.close();
  }
}

/** Where the history is that the flags name. @throws BAD_VALUE for flags that do not go together. */
function historyPlace(context: CliContext, flags: HistoryFlags): HistoryPlace {
  const { archive, fromFile: file, broker } = flags;
  if (file !== undefined && archive !== undefined) {
    throw new PserverError("BAD_VALUE", "--from-file: expected no --archive with it");
  }
  if (!broker && archive === undefined && file === undefined) {
    throw new PserverError("BAD_VALUE", "--no-broker: expected --archive with it; received none");
  }
  if (file !== undefined) return { kind: "file", file };
  if (!broker && archive !== undefined) return { kind: "archive", archive };
  const connection = resolveSettings(toOverrides(flags), context.environment);
  return { kind: "broker", connection, job: flags.job, ...defined({ archive }) };
}
