import type { Bed, Storage } from "../bed.ts";
import { cProgramPath } from "../c-programs.ts";
import { LineProcess } from "../line-process.ts";
import type { StepMaker } from "./step-times.ts";
import { stepBytes, type TrainingStep } from "./training-step.ts";

/** The largest message: what clients fill a batch to, and the size of a block of a large tensor. */
const MESSAGE_BYTES_MAX = 1024 ** 2;

/** Names raw steps. */
export function rawStepsName(storage: Storage): string {
  return `raw, ${storage}`;
}

/**
 * Starts steps without a parameter server, in C on cnats, which show what the broker itself takes
 * for a step. One process sends as many bytes as the gradients of a step to a stream, in as few
 * messages as possible, and when all are acknowledged it asks the process that reads the stream for
 * as many bytes. That process answers when it has read the step's last message. The programs must
 * have been built.
 */
export async function startRawSteps(
  bed: Bed,
  storage: Storage,
  step: TrainingStep,
): Promise<StepMaker> {
  const bytes = stepBytes(step) / 2;
  const messages = Math.ceil(bytes / MESSAGE_BYTES_MAX);
  const shape = [messages, Math.ceil(bytes / messages)];
  const server = LineProcess.start(cProgramPath("raw-server"));
  bed.adopt(server);
  const trainer = LineProcess.start(cProgramPath("raw-trainer"));
  bed.adopt(trainer);
  await server.call("serve", bed.broker.url, storage, ...shape);
  await trainer.call("open", bed.broker.url, ...shape);
  return {
    name: rawStepsName(storage),
    processes: () => [
      { role: "broker", pid: bed.broker.pid },
      { role: "server", pid: server.pid },
      { role: "trainer", pid: trainer.pid },
    ],
    run: async (durationMs) => {
      const [steps = 0, startMs = 0, endMs = 0] = await trainer.numbers("run", durationMs);
      return { steps, startMs, endMs };
    },
  };
}
