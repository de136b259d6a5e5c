import { resolve } from "node:path";
import { Command, CommanderError, Option } from "commander";
import { mismatch } from "../../protocol/errors.js";
import { addHelp } from "../context.js";
import { wholeNumber } from "../options/parse-values.js";
import { makePaint, wantsColor } from "../output/colors.js";
import { messageWidth } from "../output/output.js";
import { EXIT, reportError } from "../report-error.js";
import { runCli } from "../run-cli.js";
import { LAUNCHERS, parseWallTime } from "./run-flags.js";
import { checkCommand, checkScript, findExecutable, runProgram, } from "./trainer-command.js";
const INSTANCES_MAX = 4_096;
const LOG_LEVEL_MAX = 50;
const COUNT_MAX = 1_024;
/** Makes the command line of `legion`; `act` is called with the script and the flags. */
export function legionCommand(act) {
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
        .option("--max_simultaneous_instances <n>", "most instances that run at the same time (default: all)", instances)
        .option("--want_helios_k80", "only machines with the feature k80")
        .addOption(new Option("--launcher <kind>", "what starts the instances (default: slurm or pbs where it is, else local)").choices(LAUNCHERS))
        .option("--gpus <n>", "GPUs for each instance in a batch system, 0 for none (default: 1)", wholeNumber(0, COUNT_MAX))
        .option("--advertise <address>", "address of this machine for the others")
        .option("--save <file>", "save the model at the end")
        .option("--restarts <n>", "how often an instance that fails is started again", wholeNumber(0, COUNT_MAX))
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
function checkedWallTime(text) {
    parseWallTime(text);
    return text;
}
const SHELL_TIMEOUT_MS = 10_000;
/** Runs one command line of `legion`, without the program's name; returns the exit code and never throws. */
export async function runLegion(args, cliProcess) {
    const { stdout, stderr, environment } = cliProcess;
    let runArguments;
    const command = legionCommand(async (script, flags) => {
        for (const name of ["log_level", "debug_pycharm"]) {
            if (flags[name] !== undefined)
                stderr.write(`legion: --${name} has no effect any more\n`);
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
    }
    catch (error) {
        if (error instanceof CommanderError)
            return error.exitCode === 0 ? EXIT.ok : EXIT.badArguments;
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
export function toRunArguments(script, flags, path) {
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
    const values = {
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
        ...Object.entries(values).flatMap(([flag, value]) => 
        // Flag and value in one word, because a value may begin with a dash.
        value === undefined ? [] : [`${flag}=${value}`]),
        ...variables.map((variable) => `--env=${variable}`),
        "--",
        ...command,
    ];
}
/** Returns the batch system of this machine; `local` if it has none. */
function launcherHere(path) {
    if (findExecutable("sbatch", path) !== undefined)
        return "slurm";
    return findExecutable("qsub", path) === undefined ? "local" : "pbs";
}
/** Makes a job's name from a name of Legion's: characters that are not allowed become dashes. */
function jobOf(name) {
    const job = name.replaceAll(/[^A-Za-z0-9-]+/g, "-").replaceAll(/^-+|-+$/g, "");
    return job.slice(0, 40) || "legion";
}
/**
 * Returns the trainer's command. Legion gave the arguments to a shell as one text, so a shell reads them here,
 * too.
 */
function commandOf(script, scriptArguments) {
    const isPython = script.endsWith(".py");
    const path = isPython || script.includes("/") ? script : `./${script}`;
    const command = isPython ? ["python3", path] : [path];
    if (scriptArguments.trim() === "")
        return command;
    return ["sh", "-c", withArguments(scriptArguments), "legion", ...command];
}
/** Writes a shell program whose arguments are the script. */
function withArguments(scriptArguments) {
    return `exec "$@" ${scriptArguments}`;
}
/** @throws BAD_VALUE for arguments that a shell cannot read, with which every instance would fail. */
async function checkScriptArguments(scriptArguments, environment) {
    const question = ["sh", "-n", "-c", withArguments(scriptArguments)];
    const options = { environment, timeoutMs: SHELL_TIMEOUT_MS };
    const { code, stderr } = await runProgram(question, options);
    if (code === 0)
        return;
    const expected = "words as a shell reads them";
    const received = `${JSON.stringify(scriptArguments)}: ${stderr.trim()}`;
    throw mismatch("BAD_VALUE", "--user_script_args", expected, received);
}
//# sourceMappingURL=run-legion.js.map