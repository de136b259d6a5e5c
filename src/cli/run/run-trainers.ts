import { setTimeout as delay } from "node:timers/promises";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import type { CliContext } from "../context.ts";
import { untilAborted } from "../interrupts.ts";
import { formatBytes, formatCount } from "../output/amounts.ts";
import type { Output } from "../output/output.ts";
import { checkCommand, type TrainerCommand } from "./command-line.ts";
import { checkServerFlags, openServer } from "./job-server.ts";
import { inWords, type TrainerEnd } from "./kept-trainer.ts";
import type { Launch } from "./launch.ts";
import { findLauncher } from "./launchers.ts";
import type { RunFlags } from "./run-flags.ts";
import type { RunningTrainers } from "./trainer-team.ts";
import { formatWallTime } from "./wall-time.ts";

/** The longest that a timer of the runtime can wait. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * Runs trainers, on a server of their own or one that is there, to their end; then saves the model, if that
 * is asked for, and stops the server. The exit code is the worst of those that ended by themselves.
 * @throws what a start failed for; why no broker or no host is left; ABORTED by Ctrl-C or the wall time; what
 * saving the model failed for. No trainer is left then.
 */
export async function runTrainers(
  context: CliContext,
  output: Output,
  flags: RunFlags,
  command: TrainerCommand,
): Promise<void> {
  const launcher = findLauncher(flags.launcher);
  checkServerFlags(flags, context.environment);
  if (flags.devices !== undefined) checkDevices(flags.devices, flags.instances);
  if (launcher.isCommandHere) checkCommand(command, context.environment["PATH"]);
  launcher.check(context, flags);
  if (flags.dryRun === true) {
    context.stdout.write(await launcher.describe(context, flags, command));
    return;
  }
  const server = await openServer(context, output, flags);
  let isDone = false;
  try {
    const launch: Launch = { context, output, flags, command, server };
    const ends = await untilEnded(launch, await launcher.start(launch));
    const exitCode = Math.max(...ends.map((end) => end.exitCode));
    context.setExitCode(exitCode);
    isDone = exitCode === 0;
  } finally {
    await server.stop(isDone);
    if (!isDone && flags.store === undefined) {
      output.message(`what the run left is in ${server.directory}; go on from it with --store`);
    }
  }
}

/** How those trainers ended that did so by themselves; the others are stopped, and the model saved. */
async function untilEnded(
  launch: Launch,
  trainers: RunningTrainers,
): Promise<readonly TrainerEnd[]> {
  const { output, flags, server, context } = launch;
  tellStart(launch);
  const timer = new AbortController();
  let ends: readonly TrainerEnd[];
  try {
    ends = await Promise.race([
      trainers.ended,
      ...[
        server.failed,
        interruption(context.signal),
        wallTimeOver(flags.walltime, timer.signal),
      ].map((reason) =>
        reason.then((error): never => {
          throw error;
        }),
      ),
    ]);
    for (const end of ends) tellFailure(output, end);
  } catch (error) {
    output.message("stopping; Ctrl-C again stops at once");
    await trainers.stop();
    // A server that is gone saves nothing.
    if (ensureError(error).code === "ABORTED") await saveAnyway(launch);
    throw error;
  } finally {
    timer.abort();
  }
  await trainers.stop();
  if (ends.some(({ exitCode }) => exitCode !== 0)) await saveAnyway(launch);
  else if (flags.save !== undefined) await save(launch, flags.save);
  return ends;
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

function tellFailure(output: Output, { exitCode, trainer, restarts }: TrainerEnd): void {
  if (exitCode === 0) return;
  const again = restarts === 0 ? "" : `; it was started again ${formatCount(restarts, "time")}`;
  output.warning(`${trainer} ended ${inWords(exitCode)}${again}; stopping the others`);
}

async function save({ output, server }: Launch, path: string): Promise<void> {
  const saved = await server.save(path);
  const { file, bytes, format, host } = saved;
  const where = host === undefined ? file : `${file} on host ${host}`;
  if (output.json) output.value({ saved });
  else output.message(`saved ${formatBytes(bytes)} as ${format}: ${where}`);
}

/** Saves what there is after a failure: that failure is what the run ends with. */
async function saveAnyway(launch: Launch): Promise<void> {
  const { flags, output } = launch;
  if (flags.save === undefined) return;
  try {
    await save(launch, flags.save);
  } catch (error) {
    const { code, message } = ensureError(error);
    output.warning(`the model is not saved: ${code}: ${message}`);
  }
}

async function interruption(signal: AbortSignal): Promise<PserverError> {
  await untilAborted(signal);
  return ensureError(signal.reason);
}

async function wallTimeOver(
  seconds: number | undefined,
  signal: AbortSignal,
): Promise<PserverError> {
  if (seconds === undefined) return await new Promise(() => {});
  const endMs = performance.now() + seconds * 1000;
  try {
    for (let leftMs = seconds * 1000; leftMs > 0; leftMs = endMs - performance.now()) {
      await delay(Math.min(leftMs, TIMER_MS_MAX), undefined, { signal });
    }
  } catch {
    // The trainers have ended before.
    return await new Promise(() => {});
  }
  return new PserverError("ABORTED", `the wall time of ${formatWallTime(seconds)} is over`);
}

function checkDevices(devices: readonly string[], instances: number): void {
  if (devices.length === instances) return;
  const expected = `one device for each of ${formatCount(instances, "trainer")}`;
  const message = `--devices: expected ${expected}; received ${devices.length}`;
  throw new PserverError("BAD_VALUE", message, { expected, received: devices.length });
}
