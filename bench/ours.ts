import type { Encoding } from "../src/protocol/index.ts";
import type { AgentProcess } from "./agent-process.ts";
import type { Bed, Storage } from "./bed.ts";
import type { NamedModel } from "./models.ts";
import type { BenchHost } from "./programs/host.ts";
import type { Operation, Trainer } from "./programs/trainer.ts";
import type { Measurement } from "./rounds.ts";
import { percentile } from "./statistics.ts";

/** Names of the operations in the tables. */
const OPERATIONS: Readonly<Record<Operation, string>> = {
  mix: "push mix",
  grad: "push sgd",
  pull: "pull",
  step: "step",
};

/** Names a measurement of some trainers. */
export function jobMeasurementName(
  storage: Storage,
  model: NamedModel,
  operation: Operation,
  trainers: number,
): string {
  const count = trainers === 1 ? "1 trainer" : `${trainers} trainers`;
  return `${storage}, ${model.name}, ${OPERATIONS[operation]}, ${count}`;
}

/** Names a measurement of single calls. */
export function latencyName(storage: Storage, model: NamedModel, operation: Operation): string {
  return `${storage}, ${model.name}, ${OPERATIONS[operation]}, one call`;
}

/** The parts of a job that is measured. */
export interface BenchJob {
  readonly bed: Bed;
  readonly storage: Storage;
  readonly host: AgentProcess<BenchHost>;
  readonly trainers: readonly AgentProcess<Trainer>[];
}

/** Starts a host and trainers of a new job. */
export async function startJob(bed: Bed, storage: Storage, trainers: number): Promise<BenchJob> {
  const job = `bench-${storage}`;
  const host = await bed.startHost(job, storage);
  const names = Array.from({ length: trainers }, (_, i) => `trainer-${i + 1}`);
  return {
    bed,
    storage,
    host,
    trainers: await Promise.all(names.map((name) => bed.startTrainer(job, name))),
  };
}

/** Measures an operation of some trainers on a whole model, from the first call to the last answer. */
export function jobMeasurement(
  job: BenchJob,
  what: {
    model: NamedModel;
    operation: Operation;
    trainers: number;
    baseline: string;
    target: number;
  },
): Measurement {
  const { model, operation, baseline, target } = what;
  const trainers = job.trainers.slice(0, what.trainers);
  return {
    name: jobMeasurementName(job.storage, model, operation, what.trainers),
    baseline,
    target,
    processes: [
      { role: "broker", pid: job.bed.broker.pid },
      { role: "host", pid: job.host.pid },
      ...trainers.map(({ pid }) => ({ role: "trainer", pid })),
    ],
    run: async (durationMs) => {
      const task = { model, operation, durationMs };
      const done = await Promise.all(trainers.map((trainer) => trainer.call("run", task)));
      const startMs = Math.min(...done.map((each) => each.startMs));
      const endMs = Math.max(...done.map((each) => each.endMs));
      const bytes = done.reduce((sum, each) => sum + each.bytes, 0);
      return { bytes, seconds: (endMs - startMs) / 1e3 };
    },
  };
}

/** Names a measurement of whole steps. */
export function stepName(
  storage: Storage,
  model: NamedModel,
  encoding: Encoding | undefined,
): string {
  return `steps, ${storage}, ${model.name}, ${encoding ?? "float32"}`;
}

/**
 * Measures steps of one trainer, each a push of all gradients and a pull of all values, one after the
 * other; the bytes are those of float32 elements, whatever the encoding.
 */
export function stepMeasurement(
  job: BenchJob,
  model: NamedModel,
  encoding: Encoding | undefined,
  comparison: { baseline: string; target: number } | undefined,
): Measurement {
  const [trainer] = job.trainers;
  if (trainer === undefined) throw new Error("a job without trainers");
  return {
    name: stepName(job.storage, model, encoding),
    ...comparison,
    processes: [
      { role: "broker", pid: job.bed.broker.pid },
      { role: "host", pid: job.host.pid },
      { role: "trainer", pid: trainer.pid },
    ],
    run: async (durationMs) => {
      const task = { model, operation: "step", durationMs } as const;
      const done = await trainer.call("run", { ...task, ...(encoding && { encoding }) });
      return { bytes: done.bytes, seconds: (done.endMs - done.startMs) / 1e3 };
    },
  };
}

/** Times of single calls, one at a time. */
export interface Latency {
  readonly name: string;
  readonly calls: number;
  readonly bytes: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

/** Measures how long one call takes without other load. */
export async function measureLatency(
  job: BenchJob,
  model: NamedModel,
  operation: Operation,
  durationMs: number,
): Promise<Latency> {
  const [trainer] = job.trainers;
  const task = { model, operation, durationMs, parameters: model.perCall };
  const times = (await trainer?.call("times", task)) ?? [];
  const sorted = times.toSorted((a, b) => a - b);
  return {
    name: latencyName(job.storage, model, operation),
    calls: sorted.length,
    bytes: model.perCall * 4 * model.shape.reduce((product, size) => product * size, 1),
    p50Ms: percentile(sorted, 50),
    p95Ms: percentile(sorted, 95),
    p99Ms: percentile(sorted, 99),
  };
}
