import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentProcess } from "./agent-process.ts";
import { Bed } from "./bed.ts";
import { MODELS } from "./models.ts";
import { type BenchOptions, isWanted } from "./options.ts";
import { startJob, stepMeasurement } from "./ours.ts";
import type { BenchArchiver } from "./programs/archiver.ts";
import { type Measurement, measureRounds, type Throughput } from "./rounds.ts";
import { warmUpJob } from "./warm-up.ts";

/** The share of its throughput that training keeps while an archiver follows the job. */
const TARGET = 0.95;

const MODEL = "10 × 4 MB";

/**
 * Measures training steps, one after the other, without and with an archiver that copies their
 * records.
 */
export async function benchArchiving(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<Throughput[]> {
  const model = MODELS.find(({ name }) => name === MODEL);
  if (model === undefined || !isWanted(options, `archiving, file, ${MODEL}`)) return [];
  const directory = await mkdtemp(join(tmpdir(), "pserver-bench-archive-"));
  const bed = await Bed.open(options.profileDirectory);
  try {
    const job = await startJob(bed, "file", 1);
    await warmUpJob(job, [{ operation: "step" }], options.compileMs);
    await job.trainers[0]?.call("create", model);
    const plain = {
      ...stepMeasurement(job, model, undefined, undefined),
      name: `archiving, file, ${MODEL}, not archived`,
    };
    const archiver = bed.start<BenchArchiver>("archiver");
    await archiver.call("open", { url: bed.broker.url, job: "bench-file", directory });
    const found = await measureRounds([plain, archived(archiver, plain)], options);
    await archiver.call("close", undefined);
    return found;
  } finally {
    await bed.close();
    await rm(directory, { recursive: true, force: true });
  }
}

/**
 * Makes the measurement `plain` while an archiver follows the job. The run before, which is not
 * counted, lets it catch up with the records of its pause.
 */
function archived(archiver: AgentProcess<BenchArchiver>, plain: Measurement): Measurement {
  return {
    ...plain,
    name: `archiving, file, ${MODEL}, archived`,
    baseline: plain.name,
    target: TARGET,
    processes: [...plain.processes, { role: "archiver", pid: archiver.pid }],
    run: async (durationMs) => {
      await archiver.call("follow", undefined);
      const moved = await plain.run(durationMs);
      await archiver.call("pause", undefined);
      return moved;
    },
  };
}
