import { MEMBERS_MAX } from "../limits.ts";
import { badConfig, Settings, wholeRange } from "./read-settings.ts";

/**
 * How the trainers of a job keep step; set for the whole job and never changed.
 *
 * - `async`: each gradient is applied as it arrives.
 * - `sync`: a step applies the mean or sum of one gradient of each of `trainers` trainers; `backups`
 *   more may take part, whose gradients are left out where they are the last.
 * - `ssp` (stale synchronous parallel, Ho et al. 2013): gradients are applied when they come, but a
 *   pull waits while the slowest of `trainers` trainers is more than `staleness` steps behind.
 */
export type Synchronization =
  | { readonly mode: "async" }
  | {
      readonly mode: "sync";
      readonly trainers: number;
      readonly backups: number;
      readonly reduce: "mean" | "sum";
    }
  | { readonly mode: "ssp"; readonly trainers: number; readonly staleness: number };

/** A synchronization as callers give it. Defaults: `async`, no backups, the mean. */
export type SynchronizationInput =
  | "async"
  | { readonly mode?: "async" }
  | {
      readonly mode: "sync";
      readonly trainers: number;
      readonly backups?: number;
      readonly reduce?: "mean" | "sum";
    }
  | { readonly mode: "ssp"; readonly trainers: number; readonly staleness: number };

const WHAT = "synchronization";
const ENTRIES = {
  async: [],
  sync: ["trainers", "backups", "reduce"],
  ssp: ["trainers", "staleness"],
} as const;

/**
 * Completes and checks a synchronization from a caller or a message.
 * @throws BAD_CONFIG for an unknown mode, an entry the mode does not have, or a number out of range:
 * trainers and backups together are 1 to `MEMBERS_MAX`.
 */
export function toSynchronization(input: unknown = {}): Synchronization {
  const entries = typeof input === "string" ? { mode: input } : input;
  const every = ["mode", ...Object.values(ENTRIES).flat()];
  const modes = Object.keys(ENTRIES) as (keyof typeof ENTRIES)[];
  const mode = new Settings(entries, WHAT, every).word("mode", modes, "async");
  const settings = new Settings(entries, `${WHAT} ${mode}`, ["mode", ...ENTRIES[mode]]);
  if (mode === "async") return { mode };
  const trainers = settings.number("trainers", wholeRange(1, MEMBERS_MAX));
  if (mode === "ssp") {
    return { mode, trainers, staleness: settings.number("staleness", wholeRange(0)) };
  }
  const backups = settings.number("backups", wholeRange(0, MEMBERS_MAX), 0);
  if (trainers + backups > MEMBERS_MAX) {
    const expected = `at most ${MEMBERS_MAX} trainers and backups together`;
    throw badConfig(WHAT, expected, trainers + backups);
  }
  return { mode, trainers, backups, reduce: settings.word("reduce", ["mean", "sum"], "mean") };
}

/** Describes a synchronization: `sync of 4 trainers and 1 backup, mean`. */
export function synchronizationText(synchronization: Synchronization): string {
  const { mode } = synchronization;
  if (mode === "async") return mode;
  const trainers = counted(synchronization.trainers, "trainer");
  if (mode === "ssp") return `ssp of ${trainers}, staleness ${synchronization.staleness}`;
  const { backups, reduce } = synchronization;
  const backupsText = backups === 0 ? "" : ` and ${counted(backups, "backup")}`;
  return `sync of ${trainers}${backupsText}, ${reduce}`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
