/** Runs files of the pytest suite on the installed wheel. */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type PythonEnvironment, pythonOf, TREE } from "./find-python.ts";
import { TEST_MS } from "./limits.ts";
import { signalGroup } from "./signals.ts";

/** Groups of processes to be ended when the process of the tests exits before they do. */
const running = new Set<number>();
process.once("exit", () => {
  for (const group of running) signalGroup(group, "SIGKILL");
});

/**
 * Runs files of src/client/python/tests to their end, with the installed wheel.
 * @throws what pytest printed unless every test in them passed or was skipped for a reason it told.
 */
export async function runPytest(
  environment: PythonEnvironment,
  files: readonly string[],
): Promise<void> {
  const python = await pythonOf(environment);
  const scratch = await mkdtemp(join(tmpdir(), "pserver-pytest-"));
  try {
    const settings = ["-c", join(TREE, "pyproject.toml"), "-p", "no:cacheprovider"];
    const output = ["-q", "--color=no", `--basetemp=${join(scratch, "tests")}`];
    const paths = files.map((file) => join(TREE, "tests", file));
    const args = ["-m", "pytest", ...settings, ...output, ...paths];
    const { code, text } = await runToEnd(python, args, scratch);
    if (code !== 0) throw new Error(`pytest ${files.join(" ")} ended with ${code}\n${text}`);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

interface Ended {
  readonly code: number | NodeJS.Signals | null;
  /** Both outputs, in the order in which they came. */
  readonly text: string;
}

/** Runs a program in a group of its own, of which nothing is left afterwards. */
async function runToEnd(program: string, args: string[], cwd: string): Promise<Ended> {
  const child = spawn(program, args, {
    cwd,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: pytestVariables(),
  });
  const group = child.pid;
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
  }
  if (group !== undefined) running.add(group);
  const limit = setTimeout(() => killGroup(group), TEST_MS);
  try {
    return await new Promise((resolve, reject) => {
      child.once("error", reject);
      // What the tests left running keeps the outputs open: it must not keep this waiting.
      child.once("exit", () => killGroup(group));
      child.once("close", (code, signal) => resolve({ code: code ?? signal, text }));
    });
  } finally {
    clearTimeout(limit);
    if (group !== undefined) running.delete(group);
  }
}

function killGroup(group: number | undefined): void {
  if (group === undefined) return;
  try {
    signalGroup(group, "SIGKILL");
  } catch (error) {
    // Nothing of it is left.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/**
 * Node as it runs here, and nothing that would have the sources imported or written to. Numpy and PyTorch compute
 * in one thread: more, on processors that other tests use, wait for each other in loops.
 */
function pytestVariables(): NodeJS.ProcessEnv {
  const { PYTHONPATH: _, LD_LIBRARY_PATH: __, ...inherited } = process.env;
  return {
    ...inherited,
    PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
    PYTHONDONTWRITEBYTECODE: "1",
    OMP_NUM_THREADS: "1",
    OPENBLAS_NUM_THREADS: "1",
    PSERVER_TEST_INSTALLED: "1",
  };
}
