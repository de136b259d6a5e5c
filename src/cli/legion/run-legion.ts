import { resolve } from "node:path";
import { CommanderError } from "commander";
import { mismatch } from "../../protocol/mismatch.ts";
import type { CliProcess } from "../context.ts";
import { EXIT } from "../exit-codes.ts";
import { makePaint, wantsColor } from "../output/colors.ts";
import { messageWidth } from "../output/output.ts";
import { reportError } from "../output/report-error.ts";
import {
  checkCommand,
  checkScript,
  findExecutable,
  type TrainerCommand,
} from "../run/command-line.ts";
import { runProgram } from "../run/run-program.ts";
import { runCli } from "../run-cli.ts";
import { type LegionFlags, legionCommand } from "./legion-command.ts";

const SHELL_TIMEOUT_MS = 10_000;

/** Runs one command line of `legion`, without the program's name; returns the exit code and never throws. */
export async function runLegion(args: readonly string[], cliProcess: CliProcess): Promise<number> {
  const { stdout, stderr, environment } = cliProcess;
  let runArguments: readonly string[] | undefined;
  const command = legionCommand(async (script, flags) => {
    for (const name of ["log_level", "debug_pycharm"] as const) {
      if (flags[name] !== undefined) stderr.write(`legion: --${name} has no effect any more\n`);
    }
    runArguments = toRunArguments(script, flags, environment["PATH"]);
    await checkScriptArguments(flags.user_script_args, environment);
  })
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, "legion: ")),
    });
  try {
    await command.parseAsync([...args], { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.badArguments;
    const paint = makePaint(wantsColor(stderr.isTTY === true, environment, false));
    const style = { json: false, paint, command: "run", width: messageWidth(stderr) };
    const { text, exitCode } = reportError(error, style);
    stderr.write(`${text}\n`);
    return exitCode;
  }
  return runArguments === undefined ? EXIT.ok : await runCli(runArguments, cliProcess);
}

/**
 * Translates a command line of `legion` into one of `pserver`.
 * @throws BAD_VALUE for flags that exclude each other, and for a missing script.
 */
export function toRunArguments(
  script: string,
  flags: LegionFlags,
  path: string | undefined,
): string[] {
  const { debug = false, debug_devices: devices, debug_pycharm: pycharm } = flags;
  if (!debug && flags.instances === undefined)
    throw mismatch("BAD_VALUE", "--instances", "a number", "none");
  if (!debug && devices !== undefined)
    throw mismatch("BAD_VALUE", "--debug_devices", "--debug with it", "none");
  if (!debug && pycharm === true)
    throw mismatch("BAD_VALUE", "--debug_pycharm", "--debug with it", "none");
  const instances = flags.instances ?? 1;
  const deviceCount = devices?.split(/[,;]/).length ?? instances;
  if (deviceCount !== instances) {
    const expected = `one for each of ${instances}`;
    throw mismatch("BAD_VALUE", "--debug_devices", expected, String(deviceCount));
  }
  const launcher = flags.launcher ?? (debug ? "local" : launcherHere(path));
  const isBatch = launcher === "slurm" || launcher === "pbs";
  const gpus = flags.gpus ?? 1;
  const given = {
    "--instances": instances,
    "--job": jobOf(flags.job_name),
    "--launcher": launcher,
    "--walltime": flags.walltime,
    "--devices": devices,
    "--advertise": flags.advertise,
    "--save": flags.save,
    "--restarts": flags.restarts,
    ...(isBatch && {
      "--account": flags.allocation,
      "--max-simultaneous": flags.max_simultaneous_instances,
      "--constraint": flags.want_helios_k80 === true ? "k80" : undefined,
      "--gpus": gpus === 0 ? undefined : gpus,
    }),
  };
  const command = commandOf(script, flags.user_script_args);
  checkCommand(command, path);
  checkScript(script);
  const variables = [
    `legion_job_name=${flags.job_name}`,
    `legion_debug=${debug}`,
    `legion_script_path=${resolve(script)}`,
  ];
  return [
    "run",
    ...Object.entries(given).flatMap(([flag, value]) =>
      // Flag and value in one word, because a value may begin with a dash.
      value === undefined ? [] : [`${flag}=${value}`],
    ),
    ...variables.map((variable) => `--env=${variable}`),
    "--",
    ...command,
  ];
}

/** The batch system of this machine, if it has one. */
function launcherHere(path: string | undefined): "slurm" | "pbs" | "local" {
  if (findExecutable("sbatch", path) !== undefined) return "slurm";
  return findExecutable("qsub", path) === undefined ? "local" : "pbs";
}

/** A job name for a name of Legion's: characters that are not allowed become dashes. */
function jobOf(name: string): string {
  const job = name.replaceAll(/[^A-Za-z0-9-]+/g, "-").replaceAll(/^-+|-+$/g, "");
  return job.slice(0, 40) || "legion";
}

/** The trainer's command. Legion gave the arguments to a shell as one text, so a shell reads them here, too. */
function commandOf(script: string, scriptArguments: string): TrainerCommand {
  const isPython = script.endsWith(".py");
  const path = isPython || script.includes("/") ? script : `./${script}`;
  const command: TrainerCommand = isPython ? ["python3", path] : [path];
  if (scriptArguments.trim() === "") return command;
  return ["sh", "-c", withArguments(scriptArguments), "legion", ...command];
}

/** A shell program whose arguments are the script. */
function withArguments(scriptArguments: string): string {
  return `exec "$@" ${scriptArguments}`;
}

/** @throws BAD_VALUE for arguments that a shell cannot read, with which every instance would fail. */
async function checkScriptArguments(
  scriptArguments: string,
  environment: CliProcess["environment"],
): Promise<void> {
  const question = ["sh", "-n", "-c", withArguments(scriptArguments)] as const;
  const options = { environment, timeoutMs: SHELL_TIMEOUT_MS };
  const { code, stderr } = await runProgram(question, options);
  if (code === 0) return;
  const expected = "words as a shell reads them";
  const received = `${JSON.stringify(scriptArguments)}: ${stderr.trim()}`;
  throw mismatch("BAD_VALUE", "--user_script_args", expected, received);
}
