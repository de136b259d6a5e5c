import { mkdir } from "node:fs/promises";
import { benchArchiving } from "./archiving.ts";
import { Bed, type Storage } from "./bed.ts";
import { benchC } from "./c-client.ts";
import { optionsOf } from "./command-line.ts";
import { benchDebugger } from "./debugger.ts";
import { benchFailover } from "./failover.ts";
import { type HostMemory, measureHostMemory } from "./host-memory.ts";
import { benchKernels } from "./kernels.ts";
import { describeMachine } from "./machine.ts";
import type { NamedModel } from "./models.ts";
import { type BenchOptions, isWanted, readOptions } from "./options.ts";
import {
  type BenchJob,
  jobMeasurement,
  jobMeasurementName,
  type Latency,
  latencyName,
  measureLatency,
  startJob,
} from "./ours.ts";
import type { Operation } from "./programs/trainer.ts";
import { benchPython } from "./python-client.ts";
import { type Raw, rawName, startRaw } from "./raw.ts";
import { benchReplay } from "./replay.ts";
import { reportText, targetsOf } from "./report.ts";
import { type Measurement, measureRounds, type Throughput } from "./rounds.ts";
import { benchRules } from "./rules.ts";
import { benchSlowLink } from "./slow-link.ts";
import { benchSlowSteps } from "./slow-link-steps.ts";
import { benchBackground } from "./steps/background-steps.ts";
import { benchSteps } from "./steps/our-steps.ts";
import { benchScale } from "./steps/scale.ts";
import { benchTapeCost } from "./tape-cost.ts";
import { benchTraffic } from "./traffic.ts";
import { growMemory, warmUpJob, warmUpRaw } from "./warm-up.ts";

/** The target share of the raw figure for a pull, and for an applied push. */
const RATIO = 0.8;

async function main(): Promise<void> {
  const options = optionsOf(readOptions);
  if (options === undefined) return;
  if (options.profileDirectory !== undefined) {
    await mkdir(options.profileDirectory, { recursive: true });
  }
  const machine = describeMachine();
  // First, while the process has done nothing else.
  const kernels = isWanted(options, "kernels") ? benchKernels() : [];
  const rules = isWanted(options, "rules") ? benchRules(options.ruleBytes) : [];
  const throughput: Throughput[] = [];
  const latency: Latency[] = [];
  for (const storage of ["file", "memory"] as const) {
    const found = await benchStorage(storage, options);
    throughput.push(...found.throughput);
    latency.push(...found.latency);
  }
  throughput.push(...(await benchC({ ...options, log: progress })));
  const python = await benchPython({ ...options, log: progress });
  throughput.push(...python.throughput);
  const traffic = await benchTraffic({ ...options, log: progress });
  throughput.push(...traffic.throughput);
  throughput.push(...(await benchArchiving({ ...options, log: progress })));
  throughput.push(...(await benchSlowLink({ ...options, log: progress })));
  const slowSteps = await benchSlowSteps({ ...options, log: progress });
  const { steps, initializations } = await benchSteps({ ...options, log: progress });
  const background = await benchBackground({ ...options, log: progress });
  const scale = await benchScale({ ...options, log: progress });
  const replay = await benchReplay({ ...options, log: progress });
  const commands = await benchDebugger({ ...options, log: progress });
  const tape = await benchTapeCost({ ...options, log: progress });
  const failover = await benchFailover({ ...options, log: progress });
  const memory: HostMemory[] = [];
  for (const bytes of options.memoryModelBytes) {
    if (!isWanted(options, `host memory, ${bytes / 1e6} MB held`)) continue;
    memory.push(await measureHostMemory(bytes, options.profileDirectory));
  }
  const { sparse } = traffic;
  const { calls } = python;
  const found = {
    throughput,
    latency,
    calls,
    sparse,
    slowSteps,
    steps,
    initializations,
    background,
    scale,
    replay,
    commands,
    tape,
    failover,
    memory,
  };
  const findings = { machine, ...found, kernels, rules };
  const targets = targetsOf(findings);
  if (options.json) {
    console.log(JSON.stringify({ ...findings, targets }, null, 2));
    return;
  }
  console.log(reportText(findings));
  const missed = targets.filter(({ met }) => !met).length;
  console.log(`\n${targets.length - missed} of ${targets.length} targets met, ${missed} missed`);
}

/** All operations that are measured on a kind of storage. */
const WARM_UP_TASKS = [{ operation: "mix" }, { operation: "grad" }, { operation: "pull" }] as const;

/** The measurements of one model, on a broker with one kind of journals. */
interface Plan {
  readonly model: NamedModel;
  readonly throughput: readonly Group[];
  readonly latency: readonly Operation[];
}

/** A raw measurement, and those that are compared with it. */
interface Group {
  readonly raw: "core" | "journal";
  readonly ours: readonly { readonly operation: Operation; readonly trainers: number }[];
}

/** Makes all measurements on a broker with one kind of journals. */
async function benchStorage(
  storage: Storage,
  options: BenchOptions,
): Promise<{ throughput: Throughput[]; latency: Latency[] }> {
  const throughput: Throughput[] = [];
  const latency: Latency[] = [];
  const plans = options.models
    .map((model) => planOf(storage, model, options))
    .filter((plan) => plan.throughput.length + plan.latency.length > 0);
  if (plans.length === 0) return { throughput, latency };
  const bed = await Bed.open(options.profileDirectory);
  try {
    const raw = await startRaw(bed, storage);
    const job = await startJob(bed, storage, Math.max(...options.trainers));
    await warmUpRaw(raw, options.compileMs);
    await warmUpJob(job, WARM_UP_TASKS, options.compileMs);
    if (storage === "memory") await growMemory(raw, options.durationMs);
    for (const plan of plans) {
      await job.trainers[0]?.call("create", plan.model);
      const measurements = measurementsOf(raw, job, plan);
      throughput.push(...(await measureRounds(measurements, { ...options, log: progress })));
      for (const operation of plan.latency) {
        latency.push(await measureLatency(job, plan.model, operation, options.latencyMs));
      }
    }
  } finally {
    await bed.close();
  }
  return { throughput, latency };
}

/**
 * Lists the measurements that are asked for of one model. Pulls do not use the journal: one kind is
 * enough.
 */
function planOf(storage: Storage, model: NamedModel, options: BenchOptions): Plan {
  const groups: [Group["raw"], readonly Operation[]][] = [["journal", ["mix", "grad"]]];
  if (storage === "file") groups.unshift(["core", ["pull"]]);
  const throughput = groups.flatMap(([raw, operations]) => {
    const ours = options.trainers
      .flatMap((trainers) => operations.map((operation) => ({ operation, trainers })))
      .filter(({ operation, trainers }) =>
        isWanted(options, jobMeasurementName(storage, model, operation, trainers)),
      );
    const alone = isWanted(options, rawName(storage, model, raw));
    return ours.length > 0 || alone ? [{ raw, ours }] : [];
  });
  const latency = groups
    .flatMap(([, operations]) => operations)
    .filter((operation) => isWanted(options, latencyName(storage, model, operation)));
  return { model, throughput, latency };
}

function measurementsOf(raw: Raw, job: BenchJob, { model, throughput }: Plan): Measurement[] {
  return throughput.flatMap((group) => {
    const base = raw[group.raw](model);
    const around = { model, baseline: base.name, target: RATIO };
    return [base, ...group.ours.map((what) => jobMeasurement(job, { ...what, ...around }))];
  });
}

function progress(line: string): void {
  console.error(line);
}

// An orderly exit ends what was started and removes its files.
process.once("SIGINT", () => process.exit(130));
process.once("SIGTERM", () => process.exit(143));
await main();
