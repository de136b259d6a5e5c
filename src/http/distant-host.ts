import type { ReportingHost } from "../actors/host/host.ts";
import type { HostReport } from "../actors/host/host-report.ts";

/** A host in another process, which sends its reports. */
export class DistantHost implements ReportingHost {
  #report: HostReport;
  #heardMs = performance.now();

  /** `report`: its first one. */
  constructor(report: HostReport) {
    this.#report = report;
  }

  /** Takes a new report. */
  heard(report: HostReport): void {
    this.#report = report;
    this.#heardMs = performance.now();
  }

  report(): HostReport {
    const silentMs = this.#report.silentMs + performance.now() - this.#heardMs;
    return { ...this.#report, silentMs };
  }
}
