import { type JobAdmin, openAdmin } from "../../src/client/admin/job-admin.ts";
import type { AgentProcess } from "../agent-process.ts";
import { Bed } from "../bed.ts";
import { type BenchOptions, isWanted } from "../options.ts";
import type { StepTrainer } from "../programs/step-trainer.ts";
import { percentile, type Spread, spread } from "../statistics.ts";
import { stepBytes, TRAINING_STEPS, type TrainingStep } from "./training-step.ts";

/** How long steps take while hosts make snapshots of the whole model, or make none. */
export interface BackgroundSteps {
  readonly name: string;
  readonly p50Ms: Spread;
  readonly p90Ms: Spread;
  /** The time that a tenth of the steps exceeds over the median of the same round. */
  readonly ratio: Spread;
  /**
   * Records of the shard that was furthest behind at the end of a round without a snapshot, over those between two
   * snapshots; the most of any round.
   */
  readonly behind: number;
  /** The highest ratio that is aimed for; absent for steps without snapshots. */
  readonly target?: number;
}

const TARGET = 1.5;

/** How many intervals the steps run before they count: then the snapshots of the shards have spread. */
const WARM_UPS = 2;

/** Shards of a job, over which the rows of a step are spread. */
const SHARDS = 16;

/** Bytes of a shard's journal between two snapshots: an eighth of what it is by default, so that they never end. */
const SNAPSHOT_BYTES = 32 * 1024 ** 2;

const SIDES = [
  { name: "without snapshots", snapshotBytes: 2 ** 40 },
  { name: "with snapshots", snapshotBytes: SNAPSHOT_BYTES },
] as const;

interface Side {
  readonly name: string;
  readonly trainer: AgentProcess<StepTrainer>;
  readonly admin: JobAdmin;
  readonly rounds: { readonly p50: number; readonly p90: number; readonly behind: number }[];
}

/** Measures steps of random rows of a table of 256 MB, in turns with and without snapshots of it. */
export async function benchBackground(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<BackgroundSteps[]> {
  const [step] = TRAINING_STEPS;
  if (step === undefined || !isWanted(options, `snapshots, step of ${step.name}, file`)) return [];
  const bed = await Bed.open(options.profileDirectory);
  const sides: Side[] = [];
  try {
    const steps = SNAPSHOT_BYTES / (stepBytes(step) / 2 / SHARDS);
    for (const { name, snapshotBytes } of SIDES) {
      sides.push(await startSide(bed, step, name, snapshotBytes));
    }
    for (const { trainer } of sides) {
      await trainer.call("time", { steps: WARM_UPS * steps });
    }
    for (let round = 1; round <= options.rounds; round++) {
      for (const side of sides) {
        const found = await measure(side, steps);
        const { p50, p90 } = found;
        options.log(
          `${step.name}, ${side.name}: ${p50.toFixed(1)}, ${p90.toFixed(1)} ms (${round})`,
        );
        side.rounds.push(found);
      }
    }
    return sides.map((side) => summary(step, side));
  } finally {
    for (const { admin } of sides) await admin.close();
    await bed.close();
  }
}

async function startSide(
  bed: Bed,
  step: TrainingStep,
  name: string,
  snapshotBytes: number,
): Promise<Side> {
  const job = name.replaceAll(" ", "-");
  const { url } = bed.broker;
  await bed.startHost(job, "file", { snapshotBytes });
  const trainer = bed.start<StepTrainer>("step-trainer");
  bed.adopt({ stop: () => trainer.call("close", undefined) });
  await trainer.call("open", { url, job, trainer: "trainer" });
  await trainer.call("initialize", { prefix: "w", step });
  await trainer.call("prepare", { prefix: "w", step });
  const { signal } = new AbortController();
  const timeouts = { connectTimeoutMs: 10_000, timeoutMs: 10_000 };
  const broker = { url };
  const admin = await openAdmin({
    ...{ broker, environment: {}, signal, job, trainer: "bench" },
    ...timeouts,
  });
  return { name, trainer, admin, rounds: [] };
}

/** Measures as many steps as there are records of a shard between two snapshots. */
async function measure({ trainer, admin }: Side, steps: number): Promise<Side["rounds"][number]> {
  const sorted = (await trainer.call("time", { steps })).sort((a, b) => a - b);
  const { shards } = await admin.participants();
  const records = shards.map(({ seq, snapshotSeq }) => Number(seq) - Number(snapshotSeq));
  const behind = Math.max(...records) / steps;
  return { p50: percentile(sorted, 50), p90: percentile(sorted, 90), behind };
}

function summary(step: TrainingStep, { name, rounds }: Side): BackgroundSteps {
  return {
    name: `step of ${step.name}, file, ${name}`,
    p50Ms: spread(rounds.map(({ p50 }) => p50)),
    p90Ms: spread(rounds.map(({ p90 }) => p90)),
    ratio: spread(rounds.map(({ p50, p90 }) => p90 / p50)),
    behind: Math.max(...rounds.map(({ behind }) => behind)),
    ...(name === "with snapshots" && { target: TARGET }),
  };
}
