import type { Bed, Storage } from "../bed.ts";
import { cProgramPath } from "../c-programs.ts";
import { LineProcess } from "../line-process.ts";
import type { Watched } from "../process-usage.ts";
import type { StepMaker } from "./step-times.ts";
import type { TrainingStep } from "./training-step.ts";

/** A job whose steps a trainer in C makes, too. */
export interface CStepsOptions {
  readonly bed: Bed;
  readonly job: string;
  readonly storage: Storage;
  /** The name of a table, the prefix of other parameters. */
  readonly prefix: string;
  readonly step: TrainingStep;
  /** Broker and hosts. */
  readonly servers: readonly Watched[];
}

/**
 * A trainer in C of a job that is initialized: it makes the same steps, and the pushes of them alone. Its
 * program must have been built.
 */
export async function startCSteps(options: CStepsOptions): Promise<readonly StepMaker[]> {
  const { bed, job, storage, prefix, step, servers } = options;
  const trainer = LineProcess.start(cProgramPath("step-trainer"));
  bed.adopt(trainer);
  await trainer.call("open", bed.broker.url, job, "trainer-c");
  if (step.kind === "dense") {
    await trainer.call("dense", prefix, step.parameters, step.elements);
  } else {
    await trainer.call("rows", prefix, step.tableRows, step.rowElements, step.rows);
  }
  const maker = (operation: "step" | "push", name: string): StepMaker => ({
    name,
    processes: () => [...servers, { role: "trainer", pid: trainer.pid }],
    run: async (durationMs) => {
      const [steps = 0, startMs = 0, endMs = 0] = await trainer.numbers(
        "run",
        operation,
        durationMs,
      );
      return { steps, startMs, endMs };
    },
  });
  return [maker("step", `C, ${storage}`), maker("push", `C, ${storage}, push alone`)];
}
