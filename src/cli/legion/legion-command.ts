import { Command, Option } from "commander";
import { addHelp } from "../help-text.ts";
import { wholeNumber } from "../options/parse-values.ts";
import { LAUNCHERS, type LauncherName } from "../run/run-flags.ts";
import { parseWallTime } from "../run/wall-time.ts";

/** Flags of `legion`, under the names that they have always had. */
export interface LegionFlags {
  readonly instances?: number;
  readonly walltime: string;
  readonly debug?: boolean;
  readonly debug_pycharm?: boolean;
  readonly debug_devices?: string;
  readonly allocation?: string;
  readonly job_name: string;
  readonly user_script_args: string;
  readonly log_level?: number;
  readonly max_simultaneous_instances?: number;
  readonly want_helios_k80?: boolean;

  readonly launcher?: LauncherName;
  readonly gpus?: number;
  readonly advertise?: string;
  readonly save?: string;
  readonly restarts?: number;
}

const INSTANCES_MAX = 4_096;
const LOG_LEVEL_MAX = 50;
const COUNT_MAX = 1_024;

/** The command line of `legion`; `act` is called with the script and the flags. */
export function legionCommand(act: (script: string, flags: LegionFlags) => Promise<void>): Command {
  const instances = wholeNumber(1, INSTANCES_MAX);
  const command = new Command("legion")
    .description("start the instances of a script with a parameter server, as Legion did")
    .argument("<script>", "what each instance runs; a .py file by python3")
    .option("--instances <n>", "how many; 1 with --debug if not given", instances)
    .option("--walltime <time>", "time for the job, HH:MM:SS", checkedWallTime, "12:00:00")
    .option("--debug", "run the instances on this machine")
    .option("--debug_pycharm", "with --debug; has no effect any more")
    .option("--debug_devices <names>", "with --debug, a device for each instance: gpu0,gpu1")
    .option("--allocation <name>", "the account to charge")
    .option("--job_name <name>", "name of the job", "[Unspecified]")
    .option("--user_script_args <words>", "arguments of the script, as a shell reads them", "")
    .option("--log_level <n>", "has no effect any more", wholeNumber(0, LOG_LEVEL_MAX))
    .option(
      "--max_simultaneous_instances <n>",
      "most instances that run at the same time (default: all)",
      instances,
    )
    .option("--want_helios_k80", "only machines with the feature k80")
    .addOption(
      new Option(
        "--launcher <kind>",
        "what starts the instances (default: slurm or pbs where it is, else local)",
      ).choices(LAUNCHERS),
    )
    .option(
      "--gpus <n>",
      "GPUs for each instance in a batch system, 0 for none (default: 1)",
      wholeNumber(0, COUNT_MAX),
    )
    .option("--advertise <address>", "address of this machine for the others")
    .option("--save <file>", "save the model at the end")
    .option(
      "--restarts <n>",
      "how often an instance that fails is started again",
      wholeNumber(0, COUNT_MAX),
    )
    .helpOption("-h, --help", "print this help")
    .action(act);
  addHelp(command, {
    "What is new": [
      '  All is done by "pserver run", whose help says what instances get and when it ends.',
    ],
    Examples: [
      '  legion train.py --instances 4 --walltime 3:00:00 --user_script_args "--epochs 10"',
      "  legion train.py --debug --instances 2 --debug_devices gpu0,gpu1",
    ],
  });
  return command;
}

/** Checks a wall time, so that errors name this program; `pserver run` reads it again. */
function checkedWallTime(text: string): string {
  parseWallTime(text);
  return text;
}
