import { readFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { PserverError } from "../../protocol/errors.ts";
import { io } from "../../system/file-errors.ts";
import { type ProgramAnswer, runProgram } from "./run-program.ts";

const PYTHON = /^python(?:\d(?:\.\d+)?)?$/;

/** An unconditional import of one of our packages, at the beginning of a line. */
const IMPORT = /^(?:import[ \t]+(?:.*,[ \t]*)?|from[ \t]+)(legion|pserver)\b/m;

const QUESTION_TIMEOUT_MS = 20_000;

/** Prints the first of the modules that Python does not find from the script's directory. */
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
export async function checkPythonScript(
  command: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const at = command.findIndex((word, i) => {
    return PYTHON.test(basename(word)) && command[i + 1]?.endsWith(".py") === true;
  });
  const [python, script] = command.slice(at, at + 2);
  if (at < 0 || python === undefined || script === undefined) return;
  const needed = neededPackage(await io("read the script", script, readFile(script, "utf8")));
  if (needed === undefined) return;
  const { code, stdout } = await ask(python, script, [needed, "numpy"], environment);
  const missing = stdout.trim();
  // If Python fails here, it reports why when it runs the script.
  if (code !== 0 || missing === "") return;
  // The package index has no package of ours, and the name there may be somebody else's.
  const how = missing === "numpy" ? "numpy" : "WHEEL, the file that make wheel builds in a clone";
  const expected = `a ${python} that has the module ${missing} (python3 -m pip install ${how})`;
  const message = `${script}: expected ${expected}; received one that has not`;
  throw new PserverError("BAD_VALUE", message, { expected, received: python });
}

/** Our package that a script imports, if it does. */
function neededPackage(text: string): string | undefined {
  return text.includes("sys.path") ? undefined : IMPORT.exec(text)?.[1];
}

function ask(
  python: string,
  script: string,
  modules: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<ProgramAnswer> {
  const words = ["-c", QUESTION, dirname(resolve(script)), ...modules];
  return runProgram([python, ...words], { environment, timeoutMs: QUESTION_TIMEOUT_MS });
}
