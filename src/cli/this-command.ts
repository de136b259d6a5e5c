import { extname, join } from "node:path";

/** The program and first arguments that start another `pserver`, whichever of the package's programs runs now. */
export function thisCommand(): [program: string, ...args: string[]] {
  const main = `pserver${extname(import.meta.filename)}`;
  // Next to this file in the sources, and next to all chunks in the package.
  return [process.execPath, ...process.execArgv, join(import.meta.dirname, main)];
}
