import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { PserverError } from "../../../protocol/errors.ts";
import { io } from "../../../system/file-errors.ts";
import type { CliContext } from "../../context.ts";
import { checkProgram, type TrainerCommand } from "../command-line.ts";
import { usesRunningServer } from "../job-server.ts";
import { inheritedEnvironment, type Launch, type Launcher, trainerOutput } from "../launch.ts";
import { reachableAddress } from "../reachable-address.ts";
import { type RunFlags, refuseFlags } from "../run-flags.ts";
import { runProgram } from "../run-program.ts";
import { accessOf } from "../server-access.ts";
import { shellCommand } from "../shell-words.ts";
import { sharedVariables, trainerId } from "../trainer-variables.ts";
import { BatchJob } from "./batch-job.ts";
import { batchScript } from "./batch-script.ts";
import type { BatchSystem } from "./batch-system.ts";

const SUBMIT_TIMEOUT_MS = 120_000;
const VERSION_TIMEOUT_MS = 10_000;
const SCRIPT = "run.sh";

/** Starts trainers as the tasks of one batch job. All machines must share this directory. */
export function launchBatch(system: BatchSystem): Launcher {
  return {
    isCommandHere: true,
    check(context, flags) {
      refuseFlags(flags, ["machines", "devices"]);
      checkProgram(flags, system.submitProgram, context.environment);
      // Throws for values that cannot be written into a script.
      system.header(flags, "");
    },
    describe: (context, flags, command) => describe(system, context, flags, command),
    start: (launch) => submit(system, launch),
  };
}

async function describe(
  system: BatchSystem,
  context: CliContext,
  flags: RunFlags,
  command: TrainerCommand,
): Promise<string> {
  const url = await plannedUrl(context, flags);
  const logDirectory = resolve(flags.store ?? join(".pserver", "run-TIME-PID"), "batch");
  const script = await scriptFor(system, { context, flags, command }, url, logDirectory);
  const submission = [system.submitProgram, ...system.submitArguments(SCRIPT)];
  return `${script}# ${shellCommand(submission)}\n`;
}

/** The broker's address for trainers. Before the broker starts, its port may be unknown: `PORT`. */
async function plannedUrl(context: CliContext, flags: RunFlags): Promise<string> {
  if (usesRunningServer(flags, context.environment))
    return accessOf(flags, context.environment).url;
  const { advertised } = await reachableAddress(flags.advertise);
  const host = advertised.includes(":") ? `[${advertised}]` : advertised;
  return `nats://${host}:${flags.port ?? "PORT"}`;
}

async function submit(system: BatchSystem, launch: Launch): Promise<BatchJob> {
  const { context, flags, server, output } = launch;
  const { environment } = context;
  const logDirectory = join(server.directory, `batch-${process.pid}-${Date.now()}`);
  await io("make", logDirectory, mkdir(logDirectory, { recursive: true }));
  const text = await scriptFor(system, launch, server.access.url, logDirectory);
  const script = join(logDirectory, SCRIPT);
  await io("write", script, writeFile(script, text, { mode: 0o700 }));
  await io("write", script, chmod(script, 0o700));
  const submission = [system.submitProgram, ...system.submitArguments(script)] as const;
  const answer = await runProgram(submission, {
    // Credentials go into the environment: others may read the script, as a file and in the queue.
    environment: { ...inheritedEnvironment(launch), ...server.access.credentials },
    // The batch system writes its own messages beside the script.
    directory: logDirectory,
    timeoutMs: SUBMIT_TIMEOUT_MS,
  });
  const jobId = answer.code === 0 ? system.jobId(answer.stdout) : undefined;
  if (jobId === undefined) {
    const said = `${answer.stderr} ${answer.stdout}`.trim();
    const message = `${system.submitProgram} did not take the job: ${said || `exit code ${answer.code}`}`;
    throw new PserverError("UNSUPPORTED", message, { exitCode: answer.code });
  }
  output.message(`submitted as job ${jobId}; what trainers print is also in ${logDirectory}`);
  return BatchJob.follow({
    system,
    jobId,
    instances: flags.instances,
    logDirectory,
    trainerId: (rank) => trainerId(flags, rank),
    output: trainerOutput(launch),
    environment,
    onMessage: (message) => output.warning(message),
  });
}

async function scriptFor(
  system: BatchSystem,
  { context, flags, command }: Pick<Launch, "context" | "flags" | "command">,
  url: string,
  logDirectory: string,
): Promise<string> {
  const options = { environment: context.environment, timeoutMs: VERSION_TIMEOUT_MS };
  const { stdout, stderr } = await runProgram([system.submitProgram, "--version"], options);
  return batchScript({
    header: system.header(flags, `${stdout}${stderr}`),
    rank: system.rank,
    flags,
    command,
    variables: sharedVariables(flags, command, url),
    directory: process.cwd(),
    logDirectory,
  });
}
