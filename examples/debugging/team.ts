import { parseArgs } from "node:util";
import { type Client, connect, type ParameterConfigInput } from "nats-pserver";
import { FEATURES, Problem, type Sample } from "./problem.ts";

/** Number of trainers, which take turns in one process, so that every run is the same. */
const TRAINERS = 3;
const BATCH = 16;

/** One of the trainers. */
export interface Trainer {
  readonly id: string;
  readonly client: Client;
  /** The weights that it has read last. */
  weights: ArrayLike<number>;
  /** Returns the samples of its next step. */
  next(): Sample[];
}

/** What a trainer does in one step; it returns its loss. */
export type Step = (trainer: Trainer, step: number) => Promise<number>;

/**
 * Trains a model of one parameter, `w`, with three trainers that take turns, and prints their mean loss. The job
 * is that of `--job`, the number of steps that of `--steps`.
 */
export async function trainTogether(config: ParameterConfigInput, takeStep: Step): Promise<void> {
  const { values } = parseArgs({
    options: {
      job: { type: "string", default: "default" },
      steps: { type: "string", default: "60" },
    },
  });
  const trainers: Trainer[] = [];
  for (let i = 1; i <= TRAINERS; i++) trainers.push(await join(values.job, i, config));
  const steps = Number(values.steps);
  for (let step = 1; step <= steps; step++) {
    let loss = 0;
    for (const trainer of trainers) loss += await takeStep(trainer, step);
    await note(trainers, step, loss / TRAINERS);
    if (step % 10 === 0) console.log(`step ${step}: loss ${(loss / TRAINERS).toFixed(4)}`);
  }
  for (const { client } of trainers) await client.close();
}

/** Reads the weights. */
export async function read(trainer: Trainer): Promise<ArrayLike<number>> {
  const { data } = await trainer.client.pullFull("w");
  trainer.weights = data as Float32Array;
  return trainer.weights;
}

/** Leaves a note in the journal; `pserver plot loss` draws the numbers of notes. */
async function note([first]: readonly Trainer[], step: number, loss: number): Promise<void> {
  // Notes hold finite numbers only.
  if (Number.isFinite(loss)) await first?.client.note({ loss, step });
}

async function join(job: string, number: number, config: ParameterConfigInput): Promise<Trainer> {
  const id = `trainer-${number}`;
  const client = await connect({ job, trainer: id });
  const problem = new Problem(number);
  if (await client.beginInit()) {
    await client.initParam("w", new Float32Array(FEATURES + 1), config);
    await client.finishInit();
  }
  return { id, client, weights: [], next: () => problem.samples(BATCH) };
}
