import { ensureError, type PserverError } from "../../protocol/errors.ts";
import { mismatch } from "../../protocol/mismatch.ts";
import type { CliContext } from "../context.ts";
import { untilAborted } from "../interrupts.ts";
import { formatCount } from "../output/amounts.ts";
import type { Output } from "../output/output.ts";
import { checkCommand, type TrainerCommand } from "./command-line.ts";
import { checkServerFlags, openServer } from "./job-server.ts";
import type { Launch } from "./launch.ts";
import { LAUNCHERS_BY_NAME } from "./launchers.ts";
import { checkPythonScript } from "./python-script.ts";
import type { RunFlags } from "./run-flags.ts";
import type { RunningTrainers } from "./running-trainers.ts";
import { checkSavePath, saveAnyway, saveModel } from "./save-at-end.ts";
import { checkTorchFlags } from "./torch-rendezvous.ts";
import { tellEnds, tellFailure } from "./trainer-ends.ts";
import { wallTimeOver } from "./wall-time.ts";

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
    const trainers = await launcher.start(launch);
    await untilEnded(launch, trainers).finally(() =>
      tellEnds(output, trainers.ends(), flags.instances),
    );
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
    output.value({ ready: true, url, job, instances, launcher, directory: server.directory });
  } else {
    const what = formatCount(flags.instances, "trainer");
    const isQueued = flags.launcher === "slurm" || flags.launcher === "pbs";
    const state = isQueued ? "in the queue" : "started";
    output.message(`${what} of job ${flags.job} ${state}; the broker is ${url}`);
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
