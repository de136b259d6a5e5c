import type { Command } from "commander";
import { addHelp, type CliContext, openOutput } from "../../context.ts";
import { pointEntry, resolvePointText, withHistory } from "../../history/with-history.ts";
import {
  addHistoryOptions,
  HISTORY_PERMISSIONS,
  type HistoryFlags,
  POINT_HELP,
} from "../../options/history-options.ts";
import { formatBytes, formatRecords } from "../../output/amounts.ts";

interface BackupFlags extends HistoryFlags {
  readonly at: string;
}

/** Adds the command `pserver backup`, which writes a job as it was at one moment into a directory. */
export function registerBackup(program: Command, context: CliContext): void {
  const command = program
    .command("backup")
    .summary("copy a whole job, as of one moment, into a directory")
    .description("copy a whole job, as of one moment, into a directory, for pserver restore")
    .argument("<dir>", "the directory, made if it is not there; it may have other backups")
    .option("--at <point>", "the moment", "now");
  addHistoryOptions(command).action((directory: string, flags: BackupFlags) =>
    runBackup(context, directory, flags),
  );
  addHelp(command, {
    "What it does": [
      "  Writes one file, JOB-TIME.pserver: the model with its optimizer state at one cut of all shards,",
      "  as snapshots and the records after them, and the settings of the job. Training goes on, and no",
      "  host has to run. The file appears whole or not at all, and never changes: the directory can be",
      "  copied to an object store at any time. Every byte has a checksum; pserver archive FILE --check",
      "  reads all of them. A file that was cut off or changed is refused by pserver restore.",
      "  The broker must keep what trainers send while it is read (pserver host --retain).",
      "  For the whole history see pserver archive.",
    ],
    Points: POINT_HELP,
    Permissions: HISTORY_PERMISSIONS,
    "With --json": [
      '  {"file","bytes","records","point":{…},"shards":[{"shard","from":{"generation","seq"},"to":{…}}]}',
    ],
    Examples: [
      "  pserver backup /backups/mnist --job mnist",
      "  pserver backup /backups/mnist --job mnist --at step:1000",
      "  pserver restore /backups/mnist --url nats://other:4222",
    ],
  });
}

async function runBackup(
  context: CliContext,
  directory: string,
  flags: BackupFlags,
): Promise<void> {
  const output = openOutput(context, flags);
  const { signal } = context;
  await withHistory(context, flags, async ({ source }) => {
    const nowMs = Date.now();
    const point = await resolvePointText(context, output, source, flags.at);
    // Loaded here, so that other commands start faster.
    const { writeBackup } = await import("../../../history/archive/backups.ts");
    const backup = await output
      .progress("copying", formatRecords)
      .reported((onProgress) =>
        writeBackup(directory, source, point.cut, nowMs, { signal, onProgress }),
      );
    if (output.json) output.value({ ...backup, point: await pointEntry(point) });
    else output.message(`wrote ${formatBytes(backup.bytes)}: ${backup.file}`);
  });
}
