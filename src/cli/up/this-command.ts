/** The program that runs now and its first arguments: what starts another `pserver`. */
export function thisCommand(): [program: string, ...args: string[]] {
  const [program = process.execPath, script = ""] = process.argv;
  return [program, ...process.execArgv, script];
}
