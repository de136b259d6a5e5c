import { stat } from "node:fs/promises";
import type { Command } from "commander";
import { SHARDS_MAX } from "../../../protocol/limits.ts";
import { io } from "../../../system/file-errors.ts";
import { addHelp, type CliContext, openOutput } from "../../context.ts";
import { showCut } from "../../history/with-history.ts";
import {
  addConnectionOptions,
  addOutputOptions,
  type ConnectionFlags,
} from "../../options/connection-options.ts";
import { HISTORY_PERMISSIONS } from "../../options/history-options.ts";
import { parseJob, wholeNumber } from "../../options/parse-values.ts";
import type { OutputFlags } from "../../output/output.ts";
import { unlessAborted } from "../../signals.ts";
import { REPLICAS_MAX } from "../host.ts";

interface RestoreFlags extends ConnectionFlags, OutputFlags {
  readonly of?: string;
  readonly as?: string;
  readonly shards?: number;
  readonly replicas?: number;
}

/** Adds the command `pserver restore`, which makes a job from a backup. */
export function registerRestore(program: Command, context: CliContext): void {
  const command = program
    .command("restore")
    .summary("make a job from a backup")
    .description("make a job from a backup, at any broker")
    .argument("<path>", "the directory of pserver backup, whose newest backup is taken, or a file")
    .option("--of <job>", "the job whose backup is taken (needed if there are several)", parseJob)
    .option("--as <name>", "the job to make (default: that of the backup)", parseJob)
    .option(
      "--shards <n>",
      "number of its shards (default: as many as the job had)",
      wholeNumber(1, SHARDS_MAX),
    )
    .option(
      "--replicas <n>",
      "copies of its streams (default: as many as the job had)",
      wholeNumber(1, REPLICAS_MAX),
    );
  addOutputOptions(addConnectionOptions(command)).action((path: string, flags: RestoreFlags) =>
    runRestore(context, path, flags),
  );
  addHelp(command, {
    "What it does": [
      "  As pserver fork does it from a broker: the job begins with the parameters, values and optimizer",
      "  state of the backup, and has the settings that the job had. Sessions, members and steps begin",
      "  anew. A job of this name must not exist. Hosts that are started with --job serve it. Until it is",
      "  complete they do not: repeat a restore that was interrupted, or remove what there is of the job",
      '  with "pserver remove".',
      "  The whole file is read and checked first: one that was cut off or changed makes no job.",
      "  With --shards the command needs memory for the whole model, else for one shard at a time.",
    ],
    Permissions: HISTORY_PERMISSIONS,
    "With --json": [
      '  {"file","of","job","parameters","bytes","unfinished":[name, …],"openBlocks"}, as pserver fork.',
    ],
    Examples: [
      "  pserver restore /backups/mnist --url nats://other:4222",
      "  pserver restore /backups --of mnist --as mnist-8 --shards 8",
      "  pserver host --job mnist-8",
    ],
  });
}

async function runRestore(context: CliContext, path: string, flags: RestoreFlags): Promise<void> {
  const output = openOutput(context, flags);
  const { signal } = context;
  // Loaded here, so that other commands start faster.
  const { newestBackup } = await import("../../../history/archive/backups.ts");
  const { openHistory } = await import("../../../history/open-journal.ts");
  const { resolvePoint } = await import("../../../history/resolve-point.ts");
  const { describeMade, makeJob } = await import("../../history/make-job.ts");
  const isDirectory = (await io("open", path, stat(path))).isDirectory();
  const file = isDirectory ? (await newestBackup(path, flags.of)).path : path;
  const place = { kind: "archive", archive: file } as const;
  const source = await output
    .progress(`checking ${file}`)
    .during(unlessAborted(signal, openHistory(place)));
  try {
    const { cut } = await resolvePoint(source, { kind: "now" }, signal);
    output.message(`restoring job ${source.job} from ${file}, the cut ${showCut(cut)}`);
    const { as = source.job, shards, replicas } = flags;
    const settings = replicas === undefined ? {} : { replicas };
    const history = { source, place };
    const made = await makeJob(context, output, { history, cut, as, shards, settings, flags });
    if (output.json) output.value({ file, of: source.job, ...made });
    else describeMade(output, made);
  } finally {
    await source.close();
  }
}
