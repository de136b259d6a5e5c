import { extname, join } from "node:path";

/** The program and first arguments that start another `pserver`, whichever of the package's programs runs now. */
export function thisCommand(): [program: string, ...args: string[]] {
  const main = `main${extname(import.meta.filename)}`;
  return [process.execPath, ...process.execArgv, join(import.meta.dirname, "..", main)];
}
