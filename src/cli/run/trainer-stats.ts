import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type ClientStats, STATS_VARIABLE } from "../../client/client-stats.ts";
import { removeEmptyDirectories } from "../../model-files/atomic-write.ts";
import { io } from "../../system/file-errors.ts";
import { formatBytes, formatCount, formatNumber } from "../output/amounts.ts";

/** The counts of one client of a trainer, as it has left them. */
export interface TrainerStats extends ClientStats {
  readonly trainer: string;
}

/** A directory in which the clients of a run leave their counts. */
export class StatsDirectory {
  readonly #path: string;
  readonly #above: string;

  private constructor(above: string) {
    this.#above = above;
    this.#path = join(above, "stats");
  }

  /** Makes it below the directory of a run. @throws IO, DISK_FULL. */
  static async make(above: string): Promise<StatsDirectory> {
    const directory = new StatsDirectory(above);
    await io("make the directory", directory.#path, mkdir(directory.#path, { recursive: true }));
    return directory;
  }

  /** Returns the variable that tells clients to use it. */
  static variables(above: string): Record<string, string> {
    return { [STATS_VARIABLE]: join(above, "stats") };
  }

  /**
   * Returns what was left in it, in the order of the trainers, and removes it. A client that was killed, or runs where
   * the directory cannot be reached, has left nothing.
   * @throws IO
   */
  async take(): Promise<TrainerStats[]> {
    const path = this.#path;
    const names = await io("list", path, readdir(path));
    const texts = await Promise.all(names.map((name) => readFile(join(path, name), "utf8")));
    await io("remove", path, rm(path, { recursive: true }));
    await removeEmptyDirectories(this.#above, this.#above);
    const stats = texts.flatMap(parseStats);
    return stats.sort((a, b) => a.trainer.localeCompare(b.trainer, "en", { numeric: true }));
  }
}

const NUMBERS = [
  ...(["calls", "records", "resent", "clipped", "setAside", "reads"] as const),
  ...(["sentBytes", "receivedBytes", "reconnects"] as const),
];

/** Reads the counts in a file; none if a client was killed while it wrote them. */
function parseStats(text: string): TrainerStats[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return [];
  }
  const stats = value as Partial<TrainerStats> | null;
  const isWhole =
    typeof stats?.trainer === "string" &&
    typeof stats.failed === "object" &&
    NUMBERS.every((name) => typeof stats[name] === "number");
  return isWhole ? [stats as TrainerStats] : [];
}

/** Describes, in one line, what a client has done. */
export function describeStats(stats: TrainerStats): string {
  const { trainer, calls, failed, records, resent, clipped, setAside, reads, reconnects } = stats;
  const failures = Object.entries(failed).map(([code, count]) => `${code} ${formatNumber(count)}`);
  const parts = [
    formatCount(calls, "call"),
    ...(failures.length === 0 ? [] : [`failed: ${failures.join(", ")}`]),
    `${formatCount(records, "record")}${resent === 0 ? "" : `, ${formatNumber(resent)} sent again`}`,
    ...(clipped === 0 ? [] : [`${formatNumber(clipped)} clipped`]),
    ...(setAside === 0 ? [] : [`${formatNumber(setAside)} set aside`]),
    formatCount(reads, "read"),
    `${formatBytes(stats.sentBytes)} sent, ${formatBytes(stats.receivedBytes)} received`,
    ...(reconnects === 0 ? [] : [formatCount(reconnects, "reconnection")]),
  ];
  return `${trainer}: ${parts.join("; ")}`;
}
