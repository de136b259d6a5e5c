import { join } from "node:path";
import { TREE } from "../../test/support/find-python.ts";
import type { Bed, Storage } from "../bed.ts";
import { cLibraryPath, cProgramPath } from "../c-programs.ts";
import { LineProcess } from "../line-process.ts";
import type { Watched } from "../process-usage.ts";
import type { StepMaker } from "./step-times.ts";
import type { TrainingStep } from "./training-step.ts";

/** A job whose steps trainers in C and Python make, too. */
export interface OtherStepsOptions {
  readonly bed: Bed;
  readonly job: string;
  readonly storage: Storage;
  /** The name of a table, the prefix of other parameters. */
  readonly prefix: string;
  readonly step: TrainingStep;
  /** The raw steps that theirs are compared with. */
  readonly baseline: string;
  /** Broker and hosts. */
  readonly servers: readonly Watched[];
}

/** The trainer in Python; this file lies in build/programs/bench/steps. */
const PYTHON_TRAINER = join(import.meta.dirname, "../../../../bench/python/step_trainer.py");

/** The operations of a trainer in a step, and how tables call them. */
const OPERATIONS = { step: "", push: ", push alone", pull: ", pull alone" } as const;

/** A whole step, or a part of it. */
export type StepOperation = keyof typeof OPERATIONS;

/** Names the steps of a trainer of ours. */
export function ourStepsName(
  language: string,
  storage: Storage,
  operation: StepOperation = "step",
): string {
  return `pserver, ${language}, ${storage}${OPERATIONS[operation]}`;
}

/**
 * Starts a trainer in C of a job that is initialized: it makes the same steps, or parts of them.
 * Its program must have been built.
 */
export async function startCSteps(
  options: OtherStepsOptions,
  operations: readonly StepOperation[],
): Promise<readonly StepMaker[]> {
  const trainer = LineProcess.start(cProgramPath("step-trainer"));
  return await startSteps(options, trainer, "C", operations);
}

/** Starts such a trainer in Python, with this interpreter, on the same build of the C library. */
export async function startPythonSteps(
  options: OtherStepsOptions,
  python: string,
  operations: readonly StepOperation[],
): Promise<readonly StepMaker[]> {
  const env = { PYTHONPATH: TREE, PSERVER_LIBRARY: cLibraryPath(), PYTHONDONTWRITEBYTECODE: "1" };
  const trainer = LineProcess.start(python, [PYTHON_TRAINER], env);
  return await startSteps(options, trainer, "Python", operations);
}

async function startSteps(
  { bed, job, storage, prefix, step, baseline, servers }: OtherStepsOptions,
  trainer: LineProcess,
  language: string,
  operations: readonly StepOperation[],
): Promise<readonly StepMaker[]> {
  bed.adopt(trainer);
  await trainer.call("open", bed.broker.url, job, `trainer-${language}`);
  if (step.kind === "dense") {
    await trainer.call("dense", prefix, step.parameters, step.elements);
  } else {
    await trainer.call("rows", prefix, step.tableRows, step.rowElements, step.rows);
  }
  return operations.map((operation) => ({
    name: ourStepsName(language, storage, operation),
    baseline,
    processes: () => [...servers, { role: "trainer", pid: trainer.pid }],
    run: async (durationMs) => {
      const [steps = 0, startMs = 0, endMs = 0] = await trainer.numbers(
        "run",
        operation,
        durationMs,
      );
      return { steps, startMs, endMs };
    },
  }));
}
