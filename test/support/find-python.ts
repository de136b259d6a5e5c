/** Finds Python: one of this machine, or with the wheel in an environment of scripts/python-environment.sh. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageRoot } from "../../src/broker/broker-config.ts";

const run = promisify(execFile);

/**
 * `empty`: a virtual environment with the wheel, its dependencies and the tools of the tests, the newest
 * of each. `system`: one with the wheel that sees the modules of the system, PyTorch and h5py among them.
 */
export type PythonEnvironment = "empty" | "system";

/**
 * The Python in an environment that has the wheel of `make wheel`.
 * @throws one line that says what is missing.
 */
export function pythonOf(environment: PythonEnvironment): Promise<string> {
  return script("python-environment.sh", [environment]);
}

/**
 * A Python of this machine that has these modules, to be run with {@link TREE} as `PYTHONPATH`.
 * @throws one line that says what the ones found lack.
 */
export function findPython(...modules: string[]): Promise<string> {
  return script("find-python.sh", modules);
}

/** What `PYTHONPATH` must hold to import `pserver` and `legion` from this checkout, after `make build`. */
export const TREE: string = join(packageRoot(), "src", "client", "python");

/** The path that a script of set-up prints. */
async function script(name: string, args: string[]): Promise<string> {
  try {
    const { stdout } = await run(join(packageRoot(), "scripts", name), args);
    return stdout.trim();
  } catch (error) {
    throw new Error((error as { stderr?: string }).stderr?.trim() || String(error), {
      cause: error,
    });
  }
}
