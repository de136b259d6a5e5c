import { createInterface } from "node:readline";
import type { CliContext } from "./context.ts";
import { unlessAborted } from "./interrupts.ts";

/**
 * Asks a person a question on the message stream; returns the line of the answer without blanks around
 * it, "" at the end of the input.
 * @throws the signal's reason at Ctrl-C.
 */
export async function askLine(
  { stdin, stderr, signal }: Pick<CliContext, "stdin" | "stderr" | "signal">,
  question: string,
): Promise<string> {
  // `terminal: false`: the terminal itself edits the line and turns Ctrl-C into a signal.
  const lines = createInterface({ input: stdin, terminal: false });
  try {
    stderr.write(`${question} `);
    const answer = new Promise<string>((resolve) => {
      lines.once("line", resolve);
      lines.once("close", () => resolve(""));
    });
    return (await unlessAborted(signal, answer)).trim();
  } finally {
    lines.close();
  }
}
