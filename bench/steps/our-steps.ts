import { Bed, type Storage } from "../bed.ts";
import { type BenchOptions, isWanted } from "../options.ts";
import type { StepTrainer } from "../programs/step-trainer.ts";
import { measureSteps, type StepMaker, type StepTime } from "./step-times.ts";
import { TRAINING_STEPS, type TrainingStep } from "./training-step.ts";

/** How long the initialization of a job took. */
export interface InitializationTime {
  readonly step: string;
  readonly maker: string;
  readonly parameters: number;
  readonly ms: number;
}

/** Results of {@link benchSteps}. */
export interface StepFindings {
  readonly steps: readonly StepTime[];
  readonly initializations: readonly InitializationTime[];
}

/** A job of ours whose parameters are those of a step. */
export interface StepJob extends AsyncDisposable {
  readonly maker: StepMaker;
  readonly initialization: InitializationTime;
}

/** Training steps of one trainer with one host, with journals on file and in memory. */
export async function benchSteps(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<StepFindings> {
  const steps: StepTime[] = [];
  const initializations: InitializationTime[] = [];
  for (const step of TRAINING_STEPS) {
    const storages = (["file", "memory"] as const).filter((storage) =>
      isWanted(options, `step of ${step.name}, ${storage}`),
    );
    if (storages.length === 0) continue;
    const jobs: StepJob[] = [];
    try {
      for (const storage of storages) {
        jobs.push(await startStepJob(step, storage, options.profileDirectory));
      }
      initializations.push(...jobs.map(({ initialization }) => initialization));
      const makers = jobs.map(({ maker }) => maker);
      steps.push(...(await measureSteps(step, makers, options)));
    } finally {
      for (const job of jobs) await job[Symbol.asyncDispose]();
    }
  }
  return { steps, initializations };
}

/** Starts broker, host and trainer, and initializes the parameters of a step. */
export async function startStepJob(
  step: TrainingStep,
  storage: Storage,
  profileDirectory?: string,
): Promise<StepJob> {
  const bed = await Bed.open(profileDirectory);
  try {
    const job = "steps";
    const host = await bed.startHost(job, storage);
    const trainer = bed.start<StepTrainer>("step-trainer");
    bed.adopt({ stop: () => trainer.call("close", undefined) });
    await trainer.call("open", { url: bed.broker.url, job, trainer: "trainer-1" });
    const prefix = "w";
    const maker = `pserver, ${storage}`;
    const ms = await trainer.call("initialize", { prefix, step });
    const parameters = step.kind === "dense" ? step.parameters : 1;
    return {
      maker: {
        name: maker,
        processes: () => [
          { role: "broker", pid: bed.broker.pid },
          { role: "host", pid: host.pid },
          { role: "trainer", pid: trainer.pid },
        ],
        run: (durationMs) => trainer.call("run", { prefix, step, durationMs }),
      },
      initialization: { step: step.name, maker, parameters, ms },
      [Symbol.asyncDispose]: () => bed.close(),
    };
  } catch (error) {
    await bed.close();
    throw error;
  }
}
