import { statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { formatOf, unknownFormat } from "../../model-files/index.ts";
import { ensureError, mismatch, type PserverError, visible } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import type { CliContext } from "../context.ts";
import { formatBytes, formatCount, formatRanges } from "../output/amounts.ts";
import type { Output } from "../output/output.ts";
import { untilAborted } from "../signals.ts";
import { inWords } from "./guarded-process.ts";
import { checkServerFlags, openServer } from "./job-server.ts";
import { checkTorchFlags, type Launch, type RunningTrainers, type TrainerEnd } from "./launch.ts";
import { LAUNCHERS_BY_NAME } from "./process-launchers.ts";
import { type RunFlags, wallTimeOver } from "./run-flags.ts";
import { checkCommand, checkPythonScript, type TrainerCommand } from "./trainer-command.ts";
import { describeStats, StatsDirectory } from "./trainer-stats.ts";

/**
 * Checks the path of `--save` before any trainer starts.
 * @throws BAD_PATH if its ending names no format, and it is no directory here.
 */
function checkSavePath(path: string): void {
  const isDirectory = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (formatOf(path) === undefined && !isDirectory) throw unknownFormat(path);
}

/** Saves the model if `--save` asks for it. @throws as `Client.saveModel` does. */
async function saveModel({ flags, output, server }: Launch): Promise<void> {
  if (flags.save === undefined) return;
  const saved = await server.save(flags.save);
  const { file, bytes, format, host } = saved;
  const place = isAbsolute(file) ? file : `${file} on host ${host}`;
  if (output.json) output.value({ saved });
  else output.message(`saved ${formatBytes(bytes)} as ${format}: ${place}`);
}

/** Saves the model after a failure. An error here is only a warning: the run ends with the failure. */
async function saveAnyway(launch: Launch): Promise<void> {
  try {
    await saveModel(launch);
  } catch (error) {
    const { code, message } = ensureError(error);
    launch.output.warning(`the model was not saved: ${code}: ${message}`);
  }
}

/** Prints which trainer's failure ends the run. */
function tellFailure(output: Output, end: TrainerEnd, instances: number): void {
  const others = instances === 1 ? "" : "; stopping the others";
  output.warning(`${end.trainer} ${fate(end)}${others}`);
}

/** Prints how each trainer ended; those that were stopped are not among `ends`. */
function tellEnds(output: Output, ends: readonly TrainerEnd[], instances: number): void {
  if (output.json) output.value({ trainers: asJson(ends, instances) });
  else for (const line of endLines(ends, instances)) output.message(line);
}

/** Prints what the clients of the trainers have done. If that cannot be read, the run goes on all the same. */
async function tellStats(output: Output, directory: StatsDirectory): Promise<void> {
  try {
    const stats = await directory.take();
    if (output.json) output.value({ stats });
    else for (const each of stats) output.message(visible(describeStats(each)));
  } catch (error) {
    output.warning(ensureError(error).message);
  }
}

/** Writes one line for each way of ending, with the ranks that ended so. */
export function endLines(ends: readonly TrainerEnd[], instances: number): string[] {
  const ranksByFate = new Map<string, number[]>();
  for (const [rank, end] of byRank(ends, instances).entries()) {
    const words = fate(end);
    ranksByFate.set(words, [...(ranksByFate.get(words) ?? []), rank]);
  }
  const rows = [...ranksByFate].map(([words, ranks]) => {
    return [`${ranks.length === 1 ? "rank" : "ranks"} ${formatRanges(ranks)}`, words] as const;
  });
  const width = Math.max(...rows.map(([ranks]) => ranks.length));
  return rows.map(([ranks, words]) => `${ranks.padEnd(width)}  ${words}`);
}

function asJson(ends: readonly TrainerEnd[], instances: number): unknown[] {
  return byRank(ends, instances).map((end, rank) => {
    return end === undefined
      ? { rank, stopped: true }
      : { rank, exitCode: end.exitCode, restarts: end.restarts };
  });
}

function byRank(ends: readonly TrainerEnd[], instances: number): (TrainerEnd | undefined)[] {
  const known = new Map(ends.map((end) => [end.rank, end]));
  return Array.from({ length: instances }, (_, rank) => known.get(rank));
}

function fate(end: TrainerEnd | undefined): string {
  if (end === undefined) return "stopped";
  const { exitCode, restarts } = end;
  const again = restarts === 0 ? "" : `; it was started again ${formatCount(restarts, "time")}`;
  return `${exitCode === 0 ? "ended well" : `ended ${inWords(exitCode)}`}${again}`;
}

/**
 * Runs trainers to their end, on a new server or one that already runs; then saves the model, if that is
 * asked for, and stops the server. The exit code is the highest of the trainers that ended by themselves.
 * @throws the error that kept it from starting; why no broker or no host is left; ABORTED by Ctrl-C or the
 * wall time; why the model could not be saved. No trainer runs any more then.
 */
export async function runTrainers(
  context: CliContext,
  output: Output,
  flags: RunFlags,
  command: TrainerCommand,
): Promise<void> {
  const launcher = LAUNCHERS_BY_NAME[flags.launcher];
  checkServerFlags(flags, context.environment);
  if (flags.save !== undefined) checkSavePath(flags.save);
  if (flags.devices !== undefined) checkDevices(flags.devices, flags.instances);
  checkTorchFlags(flags);
  if (launcher.isCommandHere) checkCommand(command, context.environment["PATH"]);
  launcher.check(context, flags);
  if (flags.dryRun === true) {
    context.stdout.write(await launcher.describe(context, flags, command));
    return;
  }
  if (flags.launcher === "local") {
    await checkPythonScript(command, { ...context.environment, ...flags.env });
  }
  const server = await openServer(context, output, flags);
  let isDone = false;
  try {
    const launch: Launch = { context, output, flags, command, server };
    const stats = await StatsDirectory.make(server.directory);
    const trainers = await launcher.start(launch);
    await untilEnded(launch, trainers).finally(async () => {
      await tellStats(output, stats);
      tellEnds(output, trainers.ends(), flags.instances);
    });
    const exitCode = Math.max(...trainers.ends().map((end) => end.exitCode));
    context.setExitCode(exitCode);
    isDone = exitCode === 0;
  } finally {
    await server.stop(isDone);
    if (!isDone && flags.store === undefined) {
      output.message(`the data of this run is in ${server.directory}; continue with --store`);
    }
  }
}

/** Waits for the end of the run; then stops the trainers that still run, and saves the model. */
async function untilEnded(launch: Launch, trainers: RunningTrainers): Promise<void> {
  const { output, flags, server, context } = launch;
  tellStart(launch);
  const timer = new AbortController();
  const reasons = [
    server.failed,
    interruption(context.signal),
    wallTimeOver(flags.walltime, timer.signal),
  ];
  try {
    await Promise.race([
      trainers.ended,
      ...reasons.map((reason) =>
        reason.then((error): never => {
          throw error;
        }),
      ),
    ]);
  } catch (error) {
    output.message("stopping; Ctrl-C again stops at once");
    await trainers.stop();
    // After any other error there is no server that could save the model.
    if (ensureError(error).code === "ABORTED") await saveAnyway(launch);
    throw error;
  } finally {
    timer.abort();
  }
  const failed = trainers.ends().find(({ exitCode }) => exitCode !== 0);
  if (failed !== undefined) tellFailure(output, failed, flags.instances);
  await trainers.stop();
  if (failed === undefined) await saveModel(launch);
  else await saveAnyway(launch);
}

function tellStart({ output, flags, server }: Launch): void {
  const { url } = server.access;
  if (output.json) {
    const { job, instances, launcher } = flags;
    const { directory, http } = server;
    output.value({ ready: true, url, job, instances, launcher, directory, ...defined({ http }) });
  } else {
    const what = formatCount(flags.instances, "trainer");
    const isQueued = flags.launcher === "slurm" || flags.launcher === "pbs";
    const state = isQueued ? "in the queue" : "started";
    const metrics = server.http === undefined ? "" : `, metrics are at ${server.http}/metrics`;
    output.message(`${what} of job ${flags.job} ${state}; the broker is ${url}${metrics}`);
  }
}

async function interruption(signal: AbortSignal): Promise<PserverError> {
  await untilAborted(signal);
  return ensureError(signal.reason);
}

function checkDevices(devices: readonly string[], instances: number): void {
  if (devices.length === instances) return;
  const expected = `one device for each of ${formatCount(instances, "trainer")}`;
  throw mismatch("BAD_VALUE", "--devices", expected, devices.length);
}
