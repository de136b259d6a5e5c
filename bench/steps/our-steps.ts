import { findPython } from "../../test/support/find-python.ts";
import { Bed, type Storage } from "../bed.ts";
import { buildCPrograms, missingForC } from "../c-programs.ts";
import { type BenchOptions, isWanted } from "../options.ts";
import type { StepsDone, StepTrainer } from "../programs/step-trainer.ts";
import { ourStepsName, type StepOperation, startCSteps, startPythonSteps } from "./other-steps.ts";
import { rawStepsName, startRawSteps } from "./raw-steps.ts";
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
  /** Starts steps without a parameter server on the same broker. */
  readonly startRaw: () => Promise<StepMaker>;
  /** Starts a trainer in C, which makes the same steps in the job, or only parts of them. */
  readonly startC: (operations: readonly StepOperation[]) => Promise<readonly StepMaker[]>;
  /** Starts one in Python, with this interpreter. */
  readonly startPython: (
    python: string,
    operations: readonly StepOperation[],
  ) => Promise<readonly StepMaker[]>;
  readonly initialization: InitializationTime;
}

/**
 * Measures training steps of one trainer, in TypeScript, C and Python, with one host, with journals
 * on file and in memory.
 */
export async function benchSteps(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<StepFindings> {
  const { profileDirectory } = options;
  const steps: StepTime[] = [];
  const initializations: InitializationTime[] = [];
  const wanted = (step: TrainingStep): readonly Storage[] =>
    (["file", "memory"] as const).filter((storage) =>
      isWanted(options, `step of ${step.name}, ${storage}`),
    );
  if (TRAINING_STEPS.every((step) => wanted(step).length === 0)) return { steps, initializations };
  const missing = await missingForC();
  if (missing === undefined) await buildCPrograms();
  else options.log(`steps in C and Python: left out, because this machine lacks ${missing}`);
  const python = missing === undefined ? await pythonFor(options.log) : undefined;
  for (const step of TRAINING_STEPS) {
    const storages = wanted(step);
    if (storages.length === 0) continue;
    const jobs: StepJob[] = [];
    try {
      for (const storage of storages) {
        jobs.push(await startStepJob(step, storage, { profileDirectory }));
      }
      initializations.push(...jobs.map(({ initialization }) => initialization));
      const makers: StepMaker[] = [];
      for (const { maker, startRaw, startC, startPython } of jobs) {
        if (missing === undefined) makers.push(await startRaw());
        makers.push(maker);
        if (missing === undefined) makers.push(...(await startC(["step", "push", "pull"])));
        if (python !== undefined) makers.push(...(await startPython(python, ["step", "pull"])));
      }
      steps.push(...(await measureSteps(step, makers, options)));
    } finally {
      for (const job of jobs) await job[Symbol.asyncDispose]();
    }
  }
  return { steps, initializations };
}

/** Finds a Python with numpy; returns undefined, after a message, if there is none. */
async function pythonFor(log: (line: string) => void): Promise<string | undefined> {
  try {
    return await findPython("numpy");
  } catch (error) {
    log(`steps in Python: left out: ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
}

/** The number of processes of each kind in a job. */
export interface StepTeam {
  readonly trainers?: number;
  readonly hosts?: number;
  /** Worker threads of each host. */
  readonly workers?: number;
  readonly profileDirectory?: string | undefined;
}

/** Starts broker, hosts and trainers, and initializes the parameters of a step. */
export async function startStepJob(
  step: TrainingStep,
  storage: Storage,
  team: StepTeam = {},
): Promise<StepJob> {
  const bed = await Bed.open(team.profileDirectory);
  try {
    const job = "steps";
    const { workers = 1 } = team;
    const hosts = [await bed.startHost(job, storage, { workers })];
    while (hosts.length < (team.hosts ?? 1)) {
      hosts.push(await bed.startHost(job, storage, { workers }));
    }
    const trainers = Array.from({ length: team.trainers ?? 1 }, () =>
      bed.start<StepTrainer>("step-trainer"),
    );
    for (const [i, trainer] of trainers.entries()) {
      bed.adopt({ stop: () => trainer.call("close", undefined) });
      await trainer.call("open", { url: bed.broker.url, job, trainer: `trainer-${i + 1}` });
    }
    const prefix = "w";
    const maker = ourStepsName("TypeScript", storage);
    const ms = (await trainers[0]?.call("initialize", { prefix, step })) ?? Number.NaN;
    for (const trainer of trainers) await trainer.call("prepare", { prefix, step });
    const parameters = step.kind === "dense" ? step.parameters : 1;
    const servers = [
      { role: "broker", pid: bed.broker.pid },
      ...hosts.map(({ pid }) => ({ role: "host", pid })),
    ];
    const baseline = rawStepsName(storage);
    const options = { bed, job, storage, prefix, step, servers, baseline };
    return {
      startRaw: () => startRawSteps(bed, storage, step),
      startC: (operations) => startCSteps(options, operations),
      startPython: (python, operations) => startPythonSteps(options, python, operations),
      maker: {
        name: maker,
        baseline,
        processes: () => [...servers, ...trainers.map(({ pid }) => ({ role: "trainer", pid }))],
        run: async (durationMs) => {
          const task = { durationMs };
          return ofAll(await Promise.all(trainers.map((trainer) => trainer.call("run", task))));
        },
      },
      initialization: { step: step.name, maker, parameters, ms },
      [Symbol.asyncDispose]: () => bed.close(),
    };
  } catch (error) {
    await bed.close();
    throw error;
  }
}

/** Joins the steps of several trainers, from the first one's beginning to the last one's end. */
function ofAll(done: readonly StepsDone[]): StepsDone {
  return {
    steps: done.reduce((sum, { steps }) => sum + steps, 0),
    startMs: Math.min(...done.map(({ startMs }) => startMs)),
    endMs: Math.max(...done.map(({ endMs }) => endMs)),
  };
}
