import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, delimiter, dirname, join, resolve } from "node:path";
import { mismatch, PserverError } from "../../protocol/errors.js";
import { quoteName } from "../../protocol/names.js";
import { io } from "../../system/file-errors.js";
/** Interpreters: their first argument is a script, unless it is an option. */
const INTERPRETER = /^(?:python(?:\d(?:\.\d+)?)?|pypy3?|node|bash|sh|dash|perl|ruby|Rscript|julia)$/;
/** Returns the script that a command runs: an interpreter's first argument, else the program itself. */
export function scriptOf([program, first]) {
    const isScript = first !== undefined && !first.startsWith("-");
    return isScript && INTERPRETER.test(basename(program)) ? first : program;
}
/**
 * Checks that the program of a command can be found, and its script.
 * @throws BAD_VALUE if it cannot.
 */
export function checkCommand(command, path) {
    const [program] = command;
    if (findExecutable(program, path) === undefined) {
        const expected = program.includes("/") ? "an executable file" : "a program on the PATH";
        throw badCommand(expected, program);
    }
    const script = scriptOf(command);
    if (script !== program)
        checkScript(script);
}
/** @throws BAD_VALUE if there is no such file. */
export function checkScript(script) {
    if (!isFile(script))
        throw badCommand("a script that exists", script);
}
/**
 * Checks that the program that a launcher needs can be found. `--dry-run` needs none.
 * @throws BAD_VALUE if it is missing.
 */
export function checkProgram({ launcher, dryRun }, program, environment) {
    if (dryRun === true || findExecutable(program, environment["PATH"]) !== undefined)
        return;
    const expected = `${program} on the PATH`;
    throw mismatch("BAD_VALUE", `--launcher ${launcher}`, expected, "none");
}
/** Returns the path of a program as a shell finds it; undefined if there is none. */
export function findExecutable(program, path = "") {
    if (program.includes("/"))
        return isExecutable(resolve(program)) ? resolve(program) : undefined;
    const candidates = path.split(delimiter).map((directory) => join(directory, program));
    return candidates.find(isExecutable);
}
function badCommand(expected, received) {
    return mismatch("BAD_VALUE", "command", expected, quoteName(received));
}
function isExecutable(path) {
    try {
        accessSync(path, constants.X_OK);
        return isFile(path);
    }
    catch {
        // It does not exist, or this user may not run it.
        return false;
    }
}
function isFile(path) {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
/** The most output of a program that is kept. */
const OUTPUT_BYTES_MAX = 1024 * 1024;
const NOT_RUN = 127;
const ENDED = 137;
/** Runs a program, and kills it after `timeoutMs`; if it cannot be run, the code is 127. */
export function runProgram([program, ...args], { environment, directory, timeoutMs }) {
    return new Promise((resolve) => {
        const child = spawn(program, args, {
            stdio: ["ignore", "pipe", "pipe"],
            // A process group of its own: what a terminal sends to its jobs reaches only this process, which may ignore it.
            detached: true,
            env: environment,
            timeout: timeoutMs,
            killSignal: "SIGKILL",
            ...(directory === undefined ? {} : { cwd: directory }),
        });
        const texts = { stdout: "", stderr: "" };
        for (const name of ["stdout", "stderr"]) {
            child[name].setEncoding("utf8").on("data", (text) => {
                texts[name] = (texts[name] + text).slice(0, OUTPUT_BYTES_MAX);
            });
        }
        child.once("error", (error) => resolve({ code: NOT_RUN, stdout: "", stderr: error.message }));
        child.once("close", (code) => resolve({ code: code ?? ENDED, ...texts }));
    });
}
const PYTHON = /^python(?:\d(?:\.\d+)?)?$/;
/** An unconditional import of one of our packages, at the beginning of a line. */
const IMPORT = /^(?:import[ \t]+(?:.*,[ \t]*)?|from[ \t]+)(legion|pserver)\b/m;
const QUESTION_TIMEOUT_MS = 20_000;
/** A Python program that prints the first of the modules that it does not find from the script's directory. */
const QUESTION = `
import sys
from importlib.util import find_spec
sys.path[0] = sys.argv[1]
print(next((name for name in sys.argv[2:] if find_spec(name) is None), ""))
`;
/**
 * Checks that the Python of a command finds the package `legion` or `pserver` that its script imports, and
 * numpy, which both need. Without the check every trainer would fail at each restart. A script that
 * changes `sys.path` is not checked.
 * @throws BAD_VALUE if one is missing.
 */
export async function checkPythonScript(command, environment) {
    const at = command.findIndex((word, i) => {
        return PYTHON.test(basename(word)) && command[i + 1]?.endsWith(".py") === true;
    });
    const [python, script] = command.slice(at, at + 2);
    if (at < 0 || python === undefined || script === undefined)
        return;
    const needed = neededPackage(await io("read the script", script, readFile(script, "utf8")));
    if (needed === undefined)
        return;
    const { code, stdout } = await ask(python, script, [needed, "numpy"], environment);
    const missing = stdout.trim();
    // If Python fails here, it reports why when it runs the script.
    if (code !== 0 || missing === "")
        return;
    // The package index has no package of ours, and the name there may be somebody else's.
    const how = missing === "numpy" ? "numpy" : "WHEEL, the file that make wheel builds in a clone";
    const expected = `a ${python} that has the module ${missing} (python3 -m pip install ${how})`;
    const message = `${script}: expected ${expected}; received one that has not`;
    throw new PserverError("BAD_VALUE", message, { expected, received: python });
}
/** Returns the package of ours that a script imports; undefined if it imports none. */
function neededPackage(text) {
    return text.includes("sys.path") ? undefined : IMPORT.exec(text)?.[1];
}
function ask(python, script, modules, environment) {
    const words = ["-c", QUESTION, dirname(resolve(script)), ...modules];
    return runProgram([python, ...words], { environment, timeoutMs: QUESTION_TIMEOUT_MS });
}
//# sourceMappingURL=trainer-command.js.map