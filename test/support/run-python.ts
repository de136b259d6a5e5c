import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { findPython } from "./find-python.ts";
import { HANG_MS } from "./limits.ts";

/**
 * Runs a program of Python, with numpy and h5py, with arguments and more environment; answers what it
 * prints, or fails with what it complains.
 */
export async function runPython(
  program: string,
  args: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const python = await findPython("numpy", "h5py");
  const { stdout } = await promisify(execFile)(python, ["-c", program, ...args], {
    timeout: HANG_MS,
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", ...environment },
  });
  return stdout;
}
