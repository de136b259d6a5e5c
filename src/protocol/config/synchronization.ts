import { MEMBERS_MAX } from "../limits.ts";
import {
  DILOCO_ENTRIES,
  type DilocoInput,
  type DilocoSettings,
  dilocoText,
  toDiloco,
} from "./diloco.ts";
import { badConfig, Settings, wholeRange } from "./read-settings.ts";

/**
 * How the trainers of a job keep step; set for the whole job and never changed.
 *
 * - `async`: each gradient is applied as it arrives.
 * - `sync`: a step applies the mean or sum of one gradient of each of `trainers` trainers; `backups`
 *   more may take part, whose gradients are left out where they are the last.
 * - `ssp` (stale synchronous parallel, Ho et al. 2013): gradients are applied when they come, but a
 *   pull waits while the slowest of `trainers` trainers is more than `staleness` steps behind.
 * - `diloco` (Decoupled DiLoCo, arXiv 2604.21428): trainers train by themselves and contribute what they have learned
 *   to fragments of the model, see {@link DilocoSettings}; gradients of parameters without a fragment are applied as
 *   they arrive.
 */
export type Synchronization =
  | { readonly mode: "async" }
  | {
      readonly mode: "sync";
      readonly trainers: number;
      readonly backups: number;
      readonly reduce: "mean" | "sum";
    }
  | { readonly mode: "ssp"; readonly trainers: number; readonly staleness: number }
  | ({ readonly mode: "diloco" } & DilocoSettings);

/** A synchronization as callers give it. Defaults: `async`, no backups, the mean; for `diloco` see the settings. */
export type SynchronizationInput =
  | "async"
  | { readonly mode?: "async" }
  | {
      readonly mode: "sync";
      readonly trainers: number;
      readonly backups?: number;
      readonly reduce?: "mean" | "sum";
    }
  | { readonly mode: "ssp"; readonly trainers: number; readonly staleness: number }
  | ({ readonly mode: "diloco" } & DilocoInput);

const WHAT = "synchronization";

/** What a synchronization of each mode has besides the mode. */
export const SYNCHRONIZATION_ENTRIES = {
  async: [],
  sync: ["trainers", "backups", "reduce"],
  ssp: ["trainers", "staleness"],
  diloco: DILOCO_ENTRIES,
} as const;

/**
 * Completes and checks a synchronization from a caller or a message.
 * @throws BAD_CONFIG for an unknown mode, an entry the mode does not have, or a number out of range:
 * trainers and backups together are 1 to `MEMBERS_MAX`, as is a quorum.
 */
export function toSynchronization(input: unknown = {}): Synchronization {
  const entries = typeof input === "string" ? { mode: input } : input;
  const every = ["mode", ...Object.values(SYNCHRONIZATION_ENTRIES).flat()];
  const modes = Object.keys(SYNCHRONIZATION_ENTRIES) as Synchronization["mode"][];
  const mode = new Settings(entries, WHAT, every).word("mode", modes, "async");
  const settings = new Settings(entries, `${WHAT} ${mode}`, [
    "mode",
    ...SYNCHRONIZATION_ENTRIES[mode],
  ]);
  if (mode === "async") return { mode };
  if (mode === "diloco") return { mode, ...toDiloco(settings) };
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

/**
 * Returns how many members a job's steps or rounds need at one time before the first closes; 0 in a job without
 * members.
 */
export function membersNeeded(synchronization: Synchronization): number {
  const { mode } = synchronization;
  if (mode === "async") return 0;
  if (mode !== "diloco") return synchronization.trainers;
  const { quorum, sample = 0 } = synchronization;
  return Math.max(quorum, Math.floor(sample));
}

/** Describes a synchronization: `sync of 4 trainers and 1 backup, mean`. */
export function synchronizationText(synchronization: Synchronization): string {
  const { mode } = synchronization;
  if (mode === "async") return mode;
  if (mode === "diloco") return `diloco with ${dilocoText(synchronization)}`;
  const trainers = counted(synchronization.trainers, "trainer");
  if (mode === "ssp") return `ssp of ${trainers}, staleness ${synchronization.staleness}`;
  const { backups, reduce } = synchronization;
  const backupsText = backups === 0 ? "" : ` and ${counted(backups, "backup")}`;
  return `sync of ${trainers}${backupsText}, ${reduce}`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
