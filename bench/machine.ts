import { cpus, loadavg } from "node:os";

/** Describes when and on what machine a run of the benchmark begins, in one line. */
export function describeMachine(): string {
  const [cpu] = cpus();
  return `${new Date().toISOString().slice(0, 10)}, ${cpus().length} × ${cpu?.model}, Node ${process.version}, load ${loadavg()[0]?.toFixed(1)} at the start`;
}
