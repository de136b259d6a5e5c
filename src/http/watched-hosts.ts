import type { ReportingHost } from "../actors/host/host.ts";
import type { HostReport } from "../actors/host/host-report.ts";
import { addCounts, NO_COUNTS, type OwnerCounts } from "../actors/owner/owner-counters.ts";

/** Counts that only grow while a process runs, whichever hosts it has at the moment. */
export interface CountsSoFar {
  readonly counts: OwnerCounts;
  readonly leasesLost: number;
}

/**
 * The hosts of one job that a process runs, itself or in processes that it has started. What a host has counted that
 * has ended stays counted: a sum that falls would look like a new start.
 */
export class WatchedHosts {
  readonly job: string;
  readonly #hosts: Map<string, ReportingHost> = new Map();
  #ended: CountsSoFar = { counts: NO_COUNTS, leasesLost: 0 };

  constructor(job: string) {
    this.job = job;
  }

  /** Watches a host under a name; one that was watched under it has ended. */
  set(name: string, host: ReportingHost): void {
    this.ended(name);
    this.#hosts.set(name, host);
  }

  /** Watches the host of a name no longer, but keeps what it has counted. */
  ended(name: string): void {
    const host = this.#hosts.get(name);
    if (host === undefined) return;
    this.#hosts.delete(name);
    this.#ended = addReport(this.#ended, host.report());
  }

  /** Returns what each host last knew. */
  reports(): HostReport[] {
    return [...this.#hosts.values()].map((host) => host.report());
  }

  /** Returns the counts of these reports, and of hosts that have ended. */
  countsOf(reports: readonly HostReport[]): CountsSoFar {
    return reports.reduce(addReport, this.#ended);
  }
}

function addReport(sum: CountsSoFar, report: HostReport): CountsSoFar {
  return {
    counts: addCounts(sum.counts, report.counts),
    leasesLost: sum.leasesLost + report.leasesLost,
  };
}
