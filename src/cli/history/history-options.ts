import type { Command } from "commander";
import { resolveSettings } from "../../client/wire/settings.ts";
import { openHistory } from "../../history/open-history.ts";
import type { HistorySource } from "../../history/source.ts";
import type { CliContext } from "../context.ts";
import { addJobOptions, type JobFlags, toOverrides } from "../options/connection-options.ts";

const TIMEOUT_MS = 5_000;

/** Flags of a command that reads a job's history. */
export type HistoryFlags = JobFlags;

/** Adds the flags that say where the history is. */
export function addHistoryOptions(command: Command): Command {
  return addJobOptions(command, TIMEOUT_MS);
}

/**
 * Runs `use` with the history that the flags name.
 * @throws as `openHistory`; what `use` throws.
 */
export async function withHistory<T>(
  context: CliContext,
  flags: HistoryFlags,
  use: (source: HistorySource) => Promise<T>,
): Promise<T> {
  const connection = resolveSettings(toOverrides(flags), context.environment);
  const timeoutMs = Math.max(flags.timeout, connection.timeoutMs);
  const place = {
    kind: "broker",
    connection: { ...connection, timeoutMs },
    job: flags.job,
  } as const;
  const source = await openHistory(place);
  try {
    return await use(source);
  } finally {
    await source.close();
  }
}
