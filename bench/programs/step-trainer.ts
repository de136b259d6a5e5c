import { type Client, connect } from "../../src/client/index.ts";
import { machineMs, serveAgent } from "../agent.ts";
import { randomRows } from "../steps/random-rows.ts";
import type { DenseStep, RowStep, TrainingStep } from "../steps/training-step.ts";

/** Steps of a run, and when it began and ended. */
export interface StepsDone {
  readonly steps: number;
  readonly startMs: number;
  readonly endMs: number;
}

const OPTIONS = { timeoutMs: 100_000 } as const;
/** Sets of rows that the steps use in turn. */
const ROW_SETS = 16;

const commands = {
  async open({ url, job, trainer }: { url: string; job: string; trainer: string }): Promise<void> {
    client = await connect({ url, job, trainer, timeoutMs: 30_000 });
  },

  /** Initializes the job with parameters under this prefix; returns how long that took. */
  async initialize({ prefix, step }: { prefix: string; step: TrainingStep }): Promise<number> {
    const startMs = machineMs();
    const ps = opened();
    await ps.beginInit(OPTIONS);
    await create(ps, prefix, step);
    await ps.finishInit(OPTIONS);
    return machineMs() - startMs;
  },

  /** Allocates the tensors of all steps. */
  async prepare({ prefix, step }: { prefix: string; step: TrainingStep }): Promise<void> {
    makeStep = prepare(opened(), prefix, step);
  },

  /** Makes one step after the other for so long, at least one. */
  async run({ durationMs }: { durationMs: number }): Promise<StepsDone> {
    if (makeStep === undefined) throw new Error("not prepared");
    const startMs = machineMs();
    let steps = 0;
    do {
      await makeStep();
      steps += 1;
    } while (machineMs() - startMs < durationMs);
    return { steps, startMs, endMs: machineMs() };
  },

  /** Makes so many steps, one after the other; returns how long each of them took, in ms. */
  async time({ steps }: { steps: number }): Promise<number[]> {
    if (makeStep === undefined) throw new Error("not prepared");
    const times: number[] = [];
    let at = machineMs();
    for (let step = 0; step < steps; step++) {
      await makeStep();
      const now = machineMs();
      times.push(now - at);
      at = now;
    }
    return times;
  },

  async close(): Promise<void> {
    await client?.close();
  },
};

export type StepTrainer = typeof commands;

let client: Client | undefined;
let makeStep: (() => Promise<void>) | undefined;

function opened(): Client {
  if (client === undefined) throw new Error("not open");
  return client;
}

async function create(ps: Client, prefix: string, step: TrainingStep): Promise<void> {
  if (step.kind === "rows") {
    const { tableRows, rowElements } = step;
    const data = new Float32Array(tableRows * rowElements);
    const table = { dtype: "float32", shape: [tableRows, rowElements], data } as const;
    await ps.initParam(prefix, table, { learningRate: 1e-3, sparse: true }, OPTIONS);
    return;
  }
  const data = new Float32Array(step.elements);
  const tensors = new Map(namesOf(prefix, step).map((name) => [name, data]));
  await ps.initParams(tensors, { learningRate: 1e-3 }, OPTIONS);
}

/** Prepares one step, with tensors that all steps share. */
function prepare(ps: Client, prefix: string, step: TrainingStep): () => Promise<void> {
  return step.kind === "rows" ? rowStep(ps, prefix, step) : denseStep(ps, prefix, step);
}

function denseStep(ps: Client, prefix: string, step: DenseStep): () => Promise<void> {
  const names = namesOf(prefix, step);
  const gradient = floats(step.elements);
  const gradients = new Map(names.map((name) => [name, gradient]));
  const into = Object.fromEntries(names.map((name) => [name, floats(step.elements)]));
  return async () => {
    await ps.sendGrads(gradients, OPTIONS);
    await ps.getParams(names, { ...OPTIONS, into });
  };
}

function rowStep(
  ps: Client,
  prefix: string,
  { tableRows, rowElements, rows }: RowStep,
): () => Promise<void> {
  const sets = Array.from({ length: ROW_SETS }, (_, seed) => randomRows(seed, rows, tableRows));
  const shape = [rows, rowElements];
  const values = { dtype: "float32", shape, data: floats(rows * rowElements) } as const;
  const columns = Array.from({ length: rowElements }, (_, i) => i);
  const into = new Float32Array(rows * rowElements);
  let turn = 0;
  return async () => {
    const named = sets[turn++ % ROW_SETS] ?? [];
    await ps.sendGrads({ [prefix]: { rows: named, values } }, OPTIONS);
    await ps.pullPart(prefix, [named, columns], { ...OPTIONS, into });
  };
}

function namesOf(prefix: string, { parameters }: DenseStep): string[] {
  return Array.from({ length: parameters }, (_, i) => `${prefix}.${i}`);
}

/** Makes small values of both signs, none of them denormal. */
function floats(count: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => ((i % 2_001) - 1_000.5) / 1e6);
}

serveAgent(commands);
