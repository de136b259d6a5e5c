import type { Encoding } from "../src/protocol/index.ts";
import { MODELS, type NamedModel } from "./models.ts";
import type { BenchJob } from "./ours.ts";
import type { Operation } from "./programs/trainer.ts";
import type { Raw } from "./raw.ts";

/**
 * The work of processes before anything is measured. V8 compiles a program while it runs, and
 * better the more often a function was called: a trainer that has moved some thousand messages has
 * used more time for its compilers than for the messages. The smallest messages are the most.
 */
export const WARM_UP_MODEL: NamedModel = MODELS.reduce((least, model) =>
  model.blockBytes < least.blockBytes ? model : least,
);

const LARGEST_MODEL: NamedModel = MODELS.reduce((most, model) =>
  model.blockBytes > most.blockBytes ? model : most,
);

/** Runs each operation in all trainers for so long. */
export async function warmUpJob(
  job: BenchJob,
  tasks: readonly { readonly operation: Operation; readonly encoding?: Encoding }[],
  durationMs: number,
): Promise<void> {
  await job.trainers[0]?.call("create", WARM_UP_MODEL);
  for (const task of tasks) {
    const run = { ...task, model: WARM_UP_MODEL, durationMs };
    await Promise.all(job.trainers.map((trainer) => trainer.call("run", run)));
  }
}

/**
 * Makes the broker's memory grow to its later size: a stream in memory takes it by the gigabyte,
 * and the memory of deleted messages stays in use until the next garbage collection, so one such
 * stream is not enough.
 */
export async function growMemory(raw: Raw, durationMs: number): Promise<void> {
  for (let i = 0; i < 3; i++) await raw.journal(LARGEST_MODEL).run(durationMs);
}

/** Runs the raw senders and receivers for so long. */
export async function warmUpRaw(raw: Raw, durationMs: number): Promise<void> {
  await raw.core(WARM_UP_MODEL).run(durationMs);
  await raw.journal(WARM_UP_MODEL).run(durationMs);
}
