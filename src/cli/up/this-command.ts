import { extname, join } from "node:path";

/** What starts another `pserver`, whichever of the package's programs runs now: a program and its first arguments. */
export function thisCommand(): [program: string, ...args: string[]] {
  const main = `main${extname(import.meta.filename)}`;
  return [process.execPath, ...process.execArgv, join(import.meta.dirname, "..", main)];
}
