import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { HANG_MS } from "./limits.ts";

/** The Python of the distribution, which has numpy and h5py; another one may be named. */
export const PYTHON = process.env["PSERVER_TEST_PYTHON"] ?? "/usr/bin/python3";

/**
 * Runs a program of Python with arguments, and more environment; answers what it prints, or fails with
 * what it complains.
 */
export async function runPython(
  program: string,
  args: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { stdout } = await promisify(execFile)(PYTHON, ["-c", program, ...args], {
    timeout: HANG_MS,
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", ...environment },
  });
  return stdout;
}
