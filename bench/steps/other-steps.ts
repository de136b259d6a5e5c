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

/**
 * Starts a trainer in C of a job that is initialized: it makes the same steps, and the pushes and
 * the pulls of them alone. Its program must have been built.
 */
export async function startCSteps(options: OtherStepsOptions): Promise<readonly StepMaker[]> {
  const trainer = LineProcess.start(cProgramPath("step-trainer"));
  return await startSteps(options, trainer, "C", ["step", "push", "pull"]);
}

/** Starts such a trainer in Python, with this interpreter, on the same build of the C library. */
export async function startPythonSteps(
  options: OtherStepsOptions,
  python: string,
): Promise<readonly StepMaker[]> {
  const env = { PYTHONPATH: TREE, PSERVER_LIBRARY: cLibraryPath(), PYTHONDONTWRITEBYTECODE: "1" };
  const trainer = LineProcess.start(python, [PYTHON_TRAINER], env);
  return await startSteps(options, trainer, "Python", ["step", "pull"]);
}

/** The operations of a trainer in a step, and their names in the tables. */
const OPERATIONS = { step: "", push: ", push alone", pull: ", pull alone" } as const;

async function startSteps(
  { bed, job, storage, prefix, step, baseline, servers }: OtherStepsOptions,
  trainer: LineProcess,
  language: string,
  operations: readonly (keyof typeof OPERATIONS)[],
): Promise<readonly StepMaker[]> {
  bed.adopt(trainer);
  await trainer.call("open", bed.broker.url, job, `trainer-${language}`);
  if (step.kind === "dense") {
    await trainer.call("dense", prefix, step.parameters, step.elements);
  } else {
    await trainer.call("rows", prefix, step.tableRows, step.rowElements, step.rows);
  }
  return operations.map((operation) => ({
    name: `${language}, ${storage}${OPERATIONS[operation]}`,
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
