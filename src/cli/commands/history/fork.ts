import type { Command } from "commander";
import type { HistorySource } from "../../../history/source.ts";
import { mismatch, type PserverError } from "../../../protocol/errors.ts";
import { SHARDS_MAX } from "../../../protocol/limits.ts";
import { addHelp, type CliContext, openOutput } from "../../context.ts";
import { pointEntry, resolvePointText, withHistory } from "../../history/with-history.ts";
import {
  addHistoryOptions,
  HISTORY_PERMISSIONS,
  type HistoryFlags,
  POINT_HELP,
} from "../../options/history-options.ts";
import { parseJob, wholeNumber } from "../../options/parse-values.ts";

interface ForkFlags extends HistoryFlags {
  readonly at: string;
  readonly as?: string;
  readonly shards?: number;
}

/**
 * Adds the command `pserver fork`, which makes a new job that begins with the state of a job at a point of its
 * history.
 */
export function registerFork(program: Command, context: CliContext): void {
  const command = program
    .command("fork")
    .summary("make a new job from the state at a point")
    .description("make a new job that begins with the state of a job at a point, to train on from")
    .argument("[job]", "the job to begin from (default: that of --job)", parseJob)
    .requiredOption("--at <point>", "the point: a time, a position, a step, an update, now")
    .option("--as <name>", "the new job (default: JOB-fork)", parseJob)
    .option(
      "--shards <n>",
      "number of its shards (default: as many as the job has)",
      wholeNumber(1, SHARDS_MAX),
    );
  addHistoryOptions(command).action((job: string | undefined, flags: ForkFlags) =>
    runFork(context, job, { ...flags, job: job ?? flags.job }),
  );
  addHelp(command, {
    "What it does": [
      "  The new job has the parameters, values and optimizer state of that point, and the settings of",
      "  the job. Trainers, sessions and members begin anew, steps with 1; gradients of a step that was",
      "  open are left out. Its leases are in the broker. The job itself is not changed. Hosts that are",
      "  started with --job NEW serve it. Until it is complete they do not: repeat a fork that was",
      '  interrupted, or remove what there is of the job with "pserver remove".',
      "  With --shards all blocks are placed anew, with their optimizer state; the command then needs memory",
      "  for the whole model with its optimizer state, else for one shard at a time.",
    ],
    Points: POINT_HELP,
    Permissions: HISTORY_PERMISSIONS,
    "With --json": [
      '  {"point":{…},"job","of","parameters","bytes","unfinished":[name, …],"openBlocks"}: how many',
      "  parameters are ready, the names of those that were being initialized, and the number of",
      "  blocks that had gradients of an open step.",
    ],
    Examples: [
      '  pserver fork mnist --at "10m ago"             # the new job is mnist-fork',
      "  pserver fork mnist --at step:120 --as mnist-slower",
      "  pserver host --job mnist-slower",
      "  pserver fork mnist --at now --as mnist-wide --shards 16",
    ],
  });
}

async function runFork(
  context: CliContext,
  named: string | undefined,
  flags: ForkFlags,
): Promise<void> {
  const output = openOutput(context, flags);
  await withHistory(context, flags, async (history) => {
    const { source } = history;
    if (named !== undefined && named !== source.job) throw ofOtherJob(source, named);
    const as = flags.as ?? parseJob(`${source.job}-fork`);
    const point = await resolvePointText(context, output, source, flags.at);
    // Loaded here, so that other commands start faster.
    const { describeMade, makeJob } = await import("../../history/make-job.ts");
    const { cut } = point;
    const forked = await makeJob(context, output, {
      history,
      cut,
      as,
      shards: flags.shards,
      flags,
    });
    if (output.json) output.value({ point: await pointEntry(point), ...forked, of: source.job });
    else describeMade(output, forked);
  });
}

/** Returns the error for an archive or a file that is of another job than the one that was named. */
function ofOtherJob({ name, job }: HistorySource, received: string): PserverError {
  return mismatch("BAD_VALUE", name, `a history of job ${received}`, `one of job ${job}`);
}
